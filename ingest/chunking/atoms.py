"""The pieces that a chunk is made of: sentences, list items, table rows, lines of code."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from quarry.records import Block, BlockKind
from quarry.text import clean, sentences

BLOCK_GAP = "\n\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Atom:
    """A piece that is cut only when it is longer than a whole chunk."""

    text: str
    """Cleaned."""
    gap: str
    """What stands between the piece before it and this one."""
    span: tuple[int, int]
    pages: tuple[int, int] | None
    """First and last page that it may be on."""
    parts: tuple[str, ...] = ()
    """Where to cut it first if it must be cut: sentences of an item, cells of a row."""
    part_gap: str = " "

    @property
    def opens_block(self) -> bool:
        return self.gap.startswith(BLOCK_GAP)


def atoms(block: Block, *, continues_list: bool = False) -> Iterator[Atom]:
    """The pieces of one block in reading order; blank ones are left out."""
    if block.kind is BlockKind.TABLE and (block.header or block.rows):
        yield from _rows(block)
    elif block.kind is BlockKind.CODE:
        yield from _lines(block)
    elif block.kind is BlockKind.LIST_ITEM:
        yield from _item(block, "\n" if continues_list else BLOCK_GAP)
    else:
        yield from _sentences(block)


def heading_atom(block: Block, title: str) -> Atom:
    return Atom(text=title, gap=BLOCK_GAP, span=(block.start, block.end), pages=_pages(block))


def titled(heading: Atom, title: str) -> Atom:
    """Another title in the place of a heading, cut between sentences if it must be cut."""
    parts = tuple(title[start:end] for start, end in sentences(title))
    return replace(heading, text=title, parts=parts)


def _sentences(block: Block) -> Iterator[Atom]:
    end_before = -1
    for start, end in sentences(block.text):
        text = clean(block.text[start:end])
        if text:
            gap = BLOCK_GAP if end_before < 0 else _gap(block.text[end_before:start])
            yield Atom(text=text, gap=gap, span=_span(block, start, end), pages=_pages(block))
            end_before = end


def _gap(between: str) -> str:
    if "\n" in between:
        return BLOCK_GAP if between.count("\n") > 1 else "\n"
    return " " if between else ""


def _item(block: Block, gap: str) -> Iterator[Atom]:
    text = clean(block.text)
    if text:
        parts = tuple(text[start:end] for start, end in sentences(text))
        indent = "  " * block.level
        yield Atom(
            text=text, gap=gap + indent, span=_whole(block), pages=_pages(block), parts=parts
        )


def _lines(block: Block) -> Iterator[Atom]:
    position, blank_lines = 0, 0
    gap = BLOCK_GAP
    for line in block.text.splitlines(keepends=True):
        text = clean(line)
        if text:
            indent = line[: len(line) - len(line.lstrip())]
            gap = gap or "\n" * (1 + blank_lines)
            span = _span(block, position, position + len(line.rstrip()))
            yield Atom(text=f"{indent}{text}", gap=gap, span=span, pages=_pages(block))
            gap, blank_lines = "", 0
        else:
            blank_lines = min(1, blank_lines + 1)
        position += len(line)


def _rows(block: Block) -> Iterator[Atom]:
    names = [_cell(name) for name in block.header]
    gap = BLOCK_GAP
    for row in block.rows:
        cells = _named_cells(names, [_cell(cell) for cell in row])
        if cells:
            yield Atom(
                text="; ".join(cells),
                gap=gap,
                span=_whole(block),
                pages=_pages(block),
                parts=tuple(cells),
                part_gap="; ",
            )
            gap = "\n"
    if not block.rows and any(names):
        text = "; ".join(name for name in names if name)
        yield Atom(text=text, gap=gap, span=_whole(block), pages=_pages(block))


def _named_cells(names: list[str], cells: list[str]) -> list[str]:
    """`name: cell` for each cell that says something; a merged cell is not said twice."""
    said: list[str] = []
    for position, cell in enumerate(cells):
        name = names[position] if position < len(names) else ""
        text = f"{name}: {cell}" if name and name != cell else cell
        if cell and (not said or said[-1] != text):
            said.append(text)
    return said


def _cell(text: str) -> str:
    return " ".join(clean(text).split())


def _whole(block: Block) -> tuple[int, int]:
    return (block.start, block.end)


def _span(block: Block, start: int, end: int) -> tuple[int, int]:
    """Exact where the block is a copy of its source; else the whole block, never a guess."""
    if block.end - block.start == len(block.text):
        return (block.start + start, block.start + end)
    return _whole(block)


def _pages(block: Block) -> tuple[int, int] | None:
    return None if block.page is None else (block.page, block.last_page or block.page)
