"""One PDF file: opening it, its pages, its state and its title."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from ingest.parsers.pdf.blocks import Styles, document_blocks
from ingest.parsers.pdf.furniture import without_furniture
from ingest.parsers.pdf.grid import ruled_tables
from ingest.parsers.pdf.layout import reading_order, rows_of
from ingest.parsers.pdf.lines import Line, page_lines
from ingest.parsers.pdf.ocr import Reader
from ingest.parsers.pdf.paragraphs import Flow
from quarry.errors import ParseError
from quarry.records import Block, BlockKind, DocState, ParsedDocument, Scalar

_MAX_PAGES = 20_000
_TIME_SHARE = 0.8
"""Share of the time limit after which the remaining pages are left unread, and told."""
_SCAN_AREA = 0.5
"""Share of a page that pictures cover from which a page without text is a scan."""
_MANY_DRAWINGS = 200
"""Drawings from which a page without text is text drawn as shapes."""
_UNREADABLE = 0.3
"""Share of letters without a meaning from which the text of a page is of no use."""
_JUNK_TITLE = re.compile(
    r"microsoft (?:word|powerpoint|excel)\b.*|untitled.*|.*\.(?:docx?|pdf|indd|dvi|tex|pptx?)"
    r"|document\d*|slide \d+|title|\W*",
    re.I,
)
_TICKED = ("CheckBox", "RadioButton")
_DAMAGE = re.compile(r"(?:syntax|format|library|read) error|cannot load object")
"""What MuPDF notes of a page that it could not make sense of."""
_MAX_TITLE_WORDS = 40


@dataclass(slots=True)
class _Page:
    number: int
    width: float
    height: float
    lines: list[Line] = field(default_factory=list)
    aside: list[Line] = field(default_factory=list)
    fields: list[str] = field(default_factory=list)
    lost: int = 0
    """Letters of which the file does not say what they mean."""


@dataclass(slots=True)
class _Reading:
    """What became of the pages."""

    pages: list[_Page] = field(default_factory=list)
    scans: list[int] = field(default_factory=list)
    """Scans that nobody read."""
    broken: list[int] = field(default_factory=list)
    late: list[int] = field(default_factory=list)
    pictures: bool = False
    """Whether a scan was read and held no letters."""


def parse_pdf(content: bytes, *, ocr: bool, timeout_s: float) -> ParsedDocument:
    """Blocks with true page numbers; offsets in the extracted text.

    Raises ParseError: encrypted, corrupt, needs_ocr, empty, timed_out, too_large. Some pages that
    could not be read make it partial, with their numbers in the reason.
    """
    deadline = time.monotonic() + timeout_s * _TIME_SHARE
    document = _opened(content)
    with document:
        count = _pages_of(document)
        reading = _read(document, count, ocr=ocr, deadline=deadline)
        repaired = bool(document.is_repaired)
        facts = document.metadata or {}
    blocks, styles = _blocks(reading)
    _raise_if_nothing(reading, blocks, count, repaired=repaired)
    reason = _reason(reading, repaired=repaired)
    return ParsedDocument(
        title=_title(facts, blocks, styles),
        blocks=blocks,
        properties=_properties(facts),
        pages=count,
        state=DocState.PARTIAL if reason else DocState.INDEXED,
        reason=reason,
    )


def _opened(content: bytes) -> Any:
    import pymupdf

    pymupdf.TOOLS.mupdf_display_errors(False)
    pymupdf.TOOLS.mupdf_display_warnings(False)
    try:
        return pymupdf.open(stream=content, filetype="pdf")
    except (*_faults(), pymupdf.FileDataError, pymupdf.EmptyFileError):
        raise ParseError(DocState.CORRUPT, "It is a damaged PDF.") from None


def _pages_of(document: Any) -> int:
    if document.needs_pass and not document.authenticate(""):
        raise ParseError(DocState.ENCRYPTED, "It needs a password.")
    try:
        count = int(document.page_count)
    except _faults():
        count = 0
    if count == 0:
        raise ParseError(DocState.CORRUPT, "It is a damaged PDF without pages.")
    if count > _MAX_PAGES:
        raise ParseError(
            DocState.TOO_LARGE, f"It has {count} pages, and {_MAX_PAGES} are allowed; split it."
        )
    return count


def _faults() -> tuple[type[Exception], ...]:
    """What PyMuPDF raises for damaged files and pages."""
    import pymupdf

    return (RuntimeError, ValueError, pymupdf.mupdf.FzErrorBase)


def _read(document: Any, count: int, *, ocr: bool, deadline: float) -> _Reading:
    reading = _Reading()
    reader = Reader() if ocr else None
    faults = _faults()
    for number in range(1, count + 1):
        if time.monotonic() > deadline:
            reading.late = list(range(number, count + 1))
            break
        try:
            reading.pages.append(_read_page(document, number, reading, reader))
        except faults as error:
            if "alloc" in str(error):
                raise MemoryError from None
            reading.broken.append(number)
    return reading


def _read_page(document: Any, number: int, reading: _Reading, reader: Reader | None) -> _Page:
    import pymupdf

    pymupdf.TOOLS.reset_mupdf_warnings()
    page = document.load_page(number - 1)
    lines = _page(page, number)
    if not _needs_ocr(page, lines):
        if not lines.lines and _DAMAGE.search(pymupdf.TOOLS.mupdf_warnings()):
            reading.broken.append(number)
    elif reader is None:
        reading.scans.append(number)
    else:
        lines = _scanned(page, number, reader)
        reading.pictures = reading.pictures or not lines.lines
    return lines


def _page(page: Any, number: int) -> _Page:
    rotation = page.rotation
    if rotation:
        page.set_rotation(0)  # text has its place on the page as it was before it was turned
    found = page_lines(page)
    tables = ruled_tables(page, found.turn)
    covered = [table.box for table in tables] + [found.turn(box) for box in _buttons(page)]
    text = "".join(line.text for line in (*found.upright, *found.aside))
    fields = list(_fields(page, text))
    if rotation:
        page.set_rotation(rotation)
    lines = [line for line in found.upright if not any(_inside(line, box) for box in covered)]
    lines.extend(
        Line(x0=t.box[0], y0=t.box[1], x1=t.box[2], y1=t.box[3], text="", size=10.0, table=t)
        for t in tables
    )
    return _Page(number, found.width, found.height, lines, found.aside, fields, found.lost)


def _inside(line: Line, box: tuple[float, float, float, float]) -> bool:
    return box[0] <= (line.x0 + line.x1) / 2 <= box[2] and box[1] <= line.middle <= box[3]


def _scanned(page: Any, number: int, reader: Reader) -> _Page:
    rect = page.rect
    lines = reader.lines(page)
    text = "".join(line.text for line in lines)
    return _Page(number, rect.width, rect.height, lines, [], list(_fields(page, text)))


def _needs_ocr(page: Any, lines: _Page) -> bool:
    """Whether what is to be read on the page is a picture, or letters that mean nothing."""
    text = "".join(line.text for line in lines.lines)
    letters = sum(1 for char in text if not char.isspace())
    lost = sum(1 for char in text if char == "\ufffd" or "\ue000" <= char <= "\uf8ff")
    if letters + lines.lost:
        return lost + lines.lost > (letters + lines.lost) * _UNREADABLE
    if lines.lines:
        return False  # tables
    area = abs(page.rect) or 1.0
    covered = sum(_area(info["bbox"]) for info in page.get_image_info())
    return covered >= area * _SCAN_AREA or len(page.get_cdrawings()) >= _MANY_DRAWINGS


def _area(box: tuple[float, float, float, float]) -> float:
    return max(box[2] - box[0], 0.0) * max(box[3] - box[1], 0.0)


def _buttons(page: Any) -> Iterator[tuple[float, float, float, float]]:
    """Where boxes to tick are: the letter that their tick is drawn with is no text."""
    for widget in page.widgets() or ():
        if widget.field_type_string in _TICKED:
            yield tuple(widget.rect)


def _fields(page: Any, shown: str) -> Iterator[str]:
    """What is filled in on a form and not shown in the page's text: label and value."""
    shown = "".join(shown.split())
    for widget in page.widgets() or ():
        value = widget.field_value
        label = " ".join(str(widget.field_label or widget.field_name or "").split())
        if widget.field_type_string in _TICKED:
            value = "yes" if value not in (None, "", "Off", False) else ""
        elif widget.field_type_string in ("Button", "Signature"):
            continue
        if isinstance(value, (list, tuple)):
            value = ", ".join(str(item) for item in value)
        text = " ".join(str(value or "").split())
        if text and "".join(text.split()) not in shown:
            yield f"{label}: {text}" if label else text


def _blocks(reading: _Reading) -> tuple[tuple[Block, ...], Styles]:
    kept = without_furniture([(p.number, p.height, p.lines) for p in reading.pages])
    styles = Styles.of(kept)
    flow = Flow(styles.body)
    for page, lines in zip(reading.pages, kept, strict=True):
        for column in reading_order(lines, page.width):
            flow.add(column, page.number, height=page.height)
        flow.add(rows_of(page.aside), page.number, height=page.height)
        flow.add_fields(page.fields, page.number)
    return document_blocks(flow.items, styles), styles


def _raise_if_nothing(
    reading: _Reading, blocks: tuple[Block, ...], count: int, *, repaired: bool
) -> None:
    if blocks:
        return
    if reading.scans:
        raise ParseError(
            DocState.NEEDS_OCR, "It is a scan; set ingest.ocr to true and run it again."
        )
    if reading.late:
        raise ParseError(DocState.TIMED_OUT, "No page could be read within the time limit.")
    if reading.broken or repaired:
        raise ParseError(DocState.CORRUPT, "It is a damaged PDF of which nothing can be read.")
    what = "only pictures without letters" if reading.pictures else "no text and no scan"
    raise ParseError(DocState.EMPTY, f"There is {what} on its pages ({count}).")


def _reason(reading: _Reading, *, repaired: bool) -> str:
    parts = [
        (reading.broken, "could not be read"),
        (reading.scans, "could not be read without OCR (ingest.ocr)"),
        (reading.late, "could not be read within the time limit"),
    ]
    told = "; ".join(f"{_numbers(pages)} {text}" for pages, text in parts if pages)
    if told:
        return f"{told[0].upper()}{told[1:]}."
    return "The file is damaged; what could be recovered of it was read." if repaired else ""


def _numbers(pages: list[int]) -> str:
    """`page 3` or `pages 3, 5-7`"""
    runs: list[list[int]] = []
    for page in pages:
        if runs and page == runs[-1][-1] + 1:
            runs[-1].append(page)
        else:
            runs.append([page])
    texts = [str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs[:20]]
    told = ", ".join([*texts, "…"] if len(runs) > 20 else texts)
    return f"page {told}" if len(pages) == 1 else f"pages {told}"


def _title(facts: dict[str, Any], blocks: tuple[Block, ...], styles: Styles) -> str:
    """The title that the file names if the first page shows it, else its largest heading."""
    named = " ".join(str(facts.get("title") or "").split())
    named = "" if _JUNK_TITLE.fullmatch(named) else named
    first = [block for block in blocks if block.page == blocks[0].page]
    shown = " ".join(_words(" ".join(block.text for block in first)))
    if named and " ".join(_words(named)) in shown:
        return named
    headings = [block for block in first if block.kind is BlockKind.HEADING]
    if headings:
        best = min(headings, key=lambda block: block.level)
        if len(best.text.split()) <= _MAX_TITLE_WORDS:
            return best.text
    return named


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())


def _properties(facts: dict[str, Any]) -> dict[str, Scalar]:
    author = " ".join(str(facts.get("author") or "").split())
    return {"author": author} if author else {}
