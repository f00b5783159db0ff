"""Word documents: paragraphs, lists, tables and text boxes in the order of the body.

Headers and footers stand once, before and after the text; notes follow it.
"""

from __future__ import annotations

import io
import zipfile
import zlib
from collections.abc import Iterator
from itertools import chain
from typing import Any

from ingest.parsers.blocks import is_value, placed, table
from ingest.parsers.docx_styles import Numbering, Styles
from ingest.parsers.docx_text import W, boxes, is_on, paragraph_text
from quarry.errors import ParseError
from quarry.records import Block, BlockKind, DocState, ParsedDocument, Scalar

_MAX_ENTRIES = 10_000
_MAX_SPAN = 200
_DAMAGE = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError)
"""What a damaged archive raises while it is being unpacked."""
_UNRESOLVED = "It holds XML entity references, which are kept as written and not resolved."
_WRAPPERS = frozenset({f"{W}sdt", f"{W}sdtContent", f"{W}ins", f"{W}customXml", f"{W}smartTag"})


def parse_docx(content: bytes, *, memory_mb: int) -> ParsedDocument:
    """Offsets in the extracted text. Raises ParseError: too_large for an archive that unpacks to
    more than a quarter of the memory limit, corrupt if it cannot be read."""
    from docx import Document
    from docx.opc.exceptions import OpcError, PackageNotFoundError
    from lxml.etree import LxmlError

    _check_size(content, memory_mb)
    try:
        document = Document(io.BytesIO(content))
        return _parsed(document)
    except (OpcError, PackageNotFoundError, LxmlError, KeyError, ValueError, *_DAMAGE):
        raise ParseError(DocState.CORRUPT, "It is a damaged Word document.") from None


def _check_size(content: bytes, memory_mb: int) -> None:
    """The sizes that the archive declares bind: unpacking stops there."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            entries = archive.infolist()
    except zipfile.BadZipFile:
        raise ParseError(DocState.CORRUPT, "It is a damaged zip archive.") from None
    markup = sum(e.file_size for e in entries if e.filename.endswith((".xml", ".rels")))
    unpacked = sum(entry.file_size for entry in entries)
    limit = memory_mb * 1_000_000
    if len(entries) > _MAX_ENTRIES or markup > limit // 16 or unpacked > limit // 4:
        raise ParseError(
            DocState.TOO_LARGE, f"It unpacks to {unpacked // 1_000_000} MB in {len(entries)} parts."
        )


def _parsed(document: Any) -> ParsedDocument:
    styles = Styles(document)
    walker = _Walker(styles, Numbering(document))
    body = list(walker.blocks(document.element.body))
    blocks = placed(
        chain(
            _margin(document, "header", walker),
            body,
            _notes(document, walker),
            _margin(document, "footer", walker),
        )
    )
    properties: dict[str, Scalar] = {}
    author, named = _core(document)
    if author:
        properties["author"] = author
    heading = next((b.text for b in body if b.kind is BlockKind.HEADING and b.level == 1), "")
    title = walker.title or heading or named
    reason = _UNRESOLVED if _has_entities(document) else ""
    state = DocState.PARTIAL if reason else DocState.INDEXED
    return ParsedDocument(
        title=title, blocks=blocks, properties=properties, state=state, reason=reason
    )


def _core(document: Any) -> tuple[str, str]:
    """Author and title of the properties that the file has; the library would make some up."""
    from docx.opc.constants import RELATIONSHIP_TYPE

    relations = document.part.package.rels.values()
    if not any(relation.reltype == RELATIONSHIP_TYPE.CORE_PROPERTIES for relation in relations):
        return "", ""
    core = document.core_properties
    return core.author or "", (core.title or "").strip()


def _has_entities(document: Any) -> bool:
    """Whether references stand in the text, or in place of text, of any part that is read."""
    from docx.oxml import parse_xml
    from lxml import etree

    roots = [document.element]
    for relation in document.part.rels.values():
        if relation.is_external:
            continue
        if relation.reltype.endswith(("/header", "/footer")):
            roots.append(relation.target_part.element)
        elif relation.reltype.endswith(("/footnotes", "/endnotes")):
            roots.append(parse_xml(relation.target_part.blob))
    return any(next(root.iter(etree.Entity), None) is not None for root in roots)


class _Walker:
    """Turns block elements into blocks; lists count on through the document."""

    def __init__(self, styles: Styles, numbering: Numbering) -> None:
        self._styles = styles
        self._numbering = numbering
        self.title = ""
        """Text of the first paragraph that is styled as the title."""

    def blocks(self, container: Any) -> Iterator[Block]:
        for element in container.iterchildren():
            if element.tag == f"{W}p":
                yield from self._paragraph(element)
            elif element.tag == f"{W}tbl":
                yield from self._table(element)
            elif element.tag in _WRAPPERS:
                yield from self.blocks(element)

    def _paragraph(self, element: Any) -> Iterator[Block]:
        text = paragraph_text(element)
        style = self._styles.of(element)
        if text and not style.contents:
            number = self._numbering.next(element, style)
            label = f"{number.text} " if number and number.text else ""
            if style.title and not self.title:
                self.title = text
            if style.level:
                yield Block(kind=BlockKind.HEADING, text=label + text, level=style.level)
            elif number:
                level = min(number.level, 5)
                yield Block(kind=BlockKind.LIST_ITEM, text=label + text, level=level)
            else:
                yield Block(kind=BlockKind.PARAGRAPH, text=text)
        for box in boxes(element):
            yield from self.blocks(box)

    def _table(self, element: Any) -> Iterator[Block]:
        rows = _rows(element)
        if max((len(row) for row in rows), default=0) < 2:
            for cell in element.iter(f"{W}tc"):
                if _owner(cell) is element:
                    yield from self.blocks(cell)
            return
        block = table(_grid(rows), header_rows=_header_rows(rows))
        if block:
            yield block


def _rows(element: Any) -> list[list[Any]]:
    """Cells of each row of this table, not of tables inside it."""
    return [
        [cell for cell in row.iter(f"{W}tc") if _owner(cell) is element]
        for row in element.iter(f"{W}tr")
        if _owner(row) is element
    ]


def _owner(element: Any) -> Any:
    return next(element.iterancestors(f"{W}tbl"))


def _grid(rows: list[list[Any]]) -> list[list[str]]:
    grid: list[list[str]] = []
    for row in rows:
        cells: list[str] = [""] * _before(row)
        for cell in row:
            text = _cell_text(cell)
            if _merge(cell) == "continue" and grid and len(cells) < len(grid[-1]):
                text = grid[-1][len(cells)]
            cells.extend([text] * _wide(cell))
        grid.append(cells)
    return grid


def _cell_text(cell: Any) -> str:
    """Paragraphs on one line; rows of an inner table apart by semicolons."""
    parts: list[str] = []
    for element in cell.iterchildren():
        if element.tag == f"{W}p":
            inner = [paragraph_text(element), *(_cell_text(box) for box in boxes(element))]
            parts.append(" ".join(part for part in inner if part))
        elif element.tag == f"{W}tbl":
            lines = (", ".join(filter(None, row)) for row in _grid(_rows(element)))
            parts.append("; ".join(filter(None, lines)))
        elif element.tag in _WRAPPERS:
            parts.append(_cell_text(element))
    return " ".join(" ".join(parts).split())


def _header_rows(rows: list[list[Any]]) -> int | None:
    """Rows marked to repeat on each page, else one that is all bold, else undecided."""
    marked = 0
    for row in rows:
        if not row or row[0].getparent().find(f"{W}trPr/{W}tblHeader") is None:
            break
        marked += 1
    if marked and marked < len(rows):
        return marked
    if len(rows) > 1 and rows[0] and all(_bold(cell) for cell in rows[0]):
        return 1
    return _named_first_row(rows)


def _named_first_row(rows: list[list[Any]]) -> int | None:
    """Word formats a first row as names by default; believed where it is words, full and short."""
    names = [_cell_text(cell) for cell in rows[0]]
    full = len(names) == max(map(len, rows)) and all(names) and len(set(names)) == len(names)
    short = all(len(name) <= 40 and not is_value(name) for name in names)
    return 1 if full and short and len(rows) > 1 else 0


def _bold(cell: Any) -> bool:
    runs = [run for run in cell.iter(f"{W}r") if run.find(f"{W}t") is not None]
    return bool(runs) and all(is_on(run.find(f"{W}rPr/{W}b")) for run in runs)


def _merge(cell: Any) -> str:
    merge = cell.find(f"{W}tcPr/{W}vMerge")
    return "" if merge is None else str(merge.get(f"{W}val", "continue"))


def _wide(cell: Any) -> int:
    return _number(cell.find(f"{W}tcPr/{W}gridSpan"), 1)


def _before(row: list[Any]) -> int:
    return _number(row[0].getparent().find(f"{W}trPr/{W}gridBefore"), 0) if row else 0


def _number(element: Any, default: int) -> int:
    value = element.get(f"{W}val", "") if element is not None else ""
    return min(int(value), _MAX_SPAN) if value.isdecimal() else default


def _margin(document: Any, place: str, walker: _Walker) -> Iterator[Block]:
    """What stands in the headers or footers of any page, each text once."""
    said: set[str] = set()
    for relation in document.part.rels.values():
        if not relation.is_external and relation.reltype.endswith(f"/{place}"):
            for block in walker.blocks(relation.target_part.element):
                if block.text not in said:
                    said.add(block.text)
                    yield block


def _notes(document: Any, walker: _Walker) -> Iterator[Block]:
    """Footnotes and endnotes in their order."""
    from docx.oxml import parse_xml

    for relation in document.part.rels.values():
        if relation.is_external or not relation.reltype.endswith(("/footnotes", "/endnotes")):
            continue
        for note in parse_xml(relation.target_part.blob).iterchildren():
            if note.get(f"{W}type") is None:  # others draw the line above the notes
                yield from walker.blocks(note)
