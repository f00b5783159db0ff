"""Paragraphs and tables of a PDF as blocks: headings by their style, table names carried on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from textwrap import dedent

from ingest.parsers.blocks import placed, table
from ingest.parsers.pdf.joining import joined, vocabulary
from ingest.parsers.pdf.lines import Line
from ingest.parsers.pdf.paragraphs import BULLET, Item, Paragraph, Table
from quarry.records import Block, BlockKind

_LARGER = 1.12
"""Size of a heading as a part of the text's."""
_MAX_HEADING = 200
_MAX_BOLD_HEADING = 100
_BOLD_DOCUMENT = 0.4
"""Share of bold letters from which bold says nothing."""
_OPENING = frozenset("§“”„«‹\"'‘(¿¡[「『【《<#")
_EDGE = 4.0
"""Points by which the columns of a table may shift from page to page."""


@dataclass(frozen=True, slots=True)
class Styles:
    """What is usual in a document."""

    body: float
    """Font size of most letters."""
    bold_counts: bool
    words: frozenset[str]
    marks_blanks: bool

    @classmethod
    def of(cls, pages: Iterable[Sequence[Line]]) -> Styles:
        sizes: Counter[float] = Counter()
        bold = letters = 0
        texts: list[str] = []
        marks_blanks = False
        for line in (line for page in pages for line in page if not line.table):
            count = len(line.text)
            letters += count
            bold += count * line.bold
            if not line.mono:
                sizes[line.size] += count
            texts.append(line.text)
            marks_blanks = marks_blanks or (line.spaced and _is_hangul(line.text.rstrip()[-1:]))
        body = sizes.most_common(1)[0][0] if sizes else 10.0
        counts = bold < letters * _BOLD_DOCUMENT
        return cls(body, counts, vocabulary(texts), marks_blanks)


def document_blocks(items: Sequence[Item], styles: Styles) -> tuple[Block, ...]:
    return placed(_blocks(items, styles))


def _blocks(items: Sequence[Item], styles: Styles) -> Iterator[Block]:
    headings = {id(item) for item in items if isinstance(item, Paragraph) and _heads(item, styles)}
    levels = _levels(
        [item for item in items if isinstance(item, Paragraph) and id(item) in headings]
    )
    before: Table | None = None
    for item in items:
        if isinstance(item, Table):
            block = _table(item, before if item.goes_on else None)
            before = item
            if block:
                yield block
            continue
        text = _text(item, styles)
        if item.mono:
            yield Block(kind=BlockKind.CODE, text=text, page=item.page)
        elif id(item) in headings:
            level = levels[item.size]
            yield Block(kind=BlockKind.HEADING, text=text, level=level, page=item.page)
        else:
            last = item.last_page if item.last_page != item.page else None
            kind = BlockKind.LIST_ITEM if item.marker else BlockKind.PARAGRAPH
            bullet = BULLET.match(text)
            text = text[bullet.end() :] if bullet else text
            yield Block(kind=kind, text=text, page=item.page, last_page=last)


def _text(paragraph: Paragraph, styles: Styles) -> str:
    if paragraph.mono:
        return dedent("\n".join(paragraph.lines))
    return joined(paragraph.lines, paragraph.spaced, styles.words, marks_blanks=styles.marks_blanks)


def _heads(paragraph: Paragraph, styles: Styles) -> bool:
    """Whether a paragraph is a heading: short, larger than the text, or bold where bold is rare."""
    if paragraph.mono or paragraph.aside or paragraph.marker == "•":
        return False
    text = " ".join(paragraph.lines)
    if not (text[0].isalnum() or text[0] in _OPENING):
        return False
    letters = sum(1 for char in text if char.isalpha())
    if len(text) > _MAX_HEADING or letters < 2 or " … " in text:
        return False
    if paragraph.size >= styles.body * _LARGER:
        return True
    bold = paragraph.bold and styles.bold_counts and paragraph.size >= styles.body * 0.95
    return bold and len(text) <= _MAX_BOLD_HEADING and not text.endswith((".", ",", ";"))


def _levels(headings: Sequence[Paragraph]) -> dict[float, int]:
    """Levels by font size, the larger the higher."""
    sizes = sorted({heading.size for heading in headings}, reverse=True)
    return {size: min(number, 6) for number, size in enumerate(sizes, start=1)}


def _table(item: Table, before: Table | None) -> Block | None:
    """The table with its names: its own, or those of the table that it goes on from."""
    grid = item.grid
    own = 0
    while own < len(grid.rows) - 1 and grid.bold[own]:
        own += 1
    if before is not None and _same_columns(item, before) and before.grid.header:
        names = list(before.grid.header)
        rows = grid.rows[1:] if grid.rows[0] == names else grid.rows
        if not own or grid.rows[0] == names:
            grid.header = before.grid.header
            return table([names, *rows], header_rows=1, page=item.page)
    block = table(grid.rows, header_rows=own or None, page=item.page)
    if block is not None and any(block.header) and len(block.header) == len(grid.edges) - 1:
        grid.header = block.header
    return block


def _same_columns(one: Table, other: Table) -> bool:
    a, b = one.grid.edges, other.grid.edges
    return len(a) == len(b) and all(abs(x - y) <= _EDGE for x, y in zip(a, b, strict=True))


def _is_hangul(char: str) -> bool:
    return "\uac00" <= char <= "\ud7af"
