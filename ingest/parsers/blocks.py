"""What every parser does with its blocks: tables made regular, offsets given."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

from quarry.errors import ParseError
from quarry.records import Block, BlockKind, DocState

GAP = 2
"""Characters between two blocks of an extracted text."""
MAX_CELLS = 500_000
"""Cells of one table, spans repeated."""

_VALUE = re.compile(r"[-+−±~≈<>=$€£¥%().,:/\s\d]*\d[-+−±~≈<>=$€£¥%().,:/\s\d]*[A-Za-z%]{0,3}")
_PICTURE = re.compile(r"data:image/[\w.+-]+(?:;[\w.+=-]+)*,[^\s\"'()<>]{64,}", re.I)
"""A picture written out in the text; shorter ones are examples that someone writes about."""


def without_pictures(text: str) -> str:
    """The text without pictures that are embedded in it as data: addresses."""
    return _PICTURE.sub("", text) if "data:" in text.lower() else text


def placed(blocks: Iterable[Block]) -> tuple[Block, ...]:
    """The blocks that say something, with offsets in the text that they make a blank line apart."""
    position = 0
    found: list[Block] = []
    for block in blocks:
        if says_something(block):
            end = position + len(block.text)
            found.append(replace(block, start=position, end=end))
            position = end + GAP
    return tuple(found)


def says_something(block: Block) -> bool:
    return bool(block.text.strip()) or any(any(map(str.strip, row)) for row in block.rows)


def table(
    grid: Sequence[Sequence[str]], *, header_rows: int | None, page: int | None = None
) -> Block | None:
    """A table block: equal row lengths, empty rows and columns dropped, header rows joined.

    `header_rows` None: decided from what the first row looks like. None if nothing is in it.
    """
    width = max((len(row) for row in grid), default=0)
    if width * len(grid) > MAX_CELLS:
        raise ParseError(DocState.TOO_LARGE, f"A table has more than {MAX_CELLS} cells.")
    rows = [[_flat(cell) for cell in row] + [""] * (width - len(row)) for row in grid]
    heads = [row for row in rows[: header_rows or 0] if any(row)]
    body = [row for row in rows[header_rows or 0 :] if any(row)]
    if header_rows is None and looks_like_header(body):
        heads, body = body[:1], body[1:]
    kept = [n for n in range(width) if any(row[n] for row in (*heads, *body))]
    if not kept:
        return None
    header = tuple(_joined([row[n] for row in heads]) for n in kept)
    cells = tuple(tuple(row[n] for n in kept) for row in body)
    return Block(
        kind=BlockKind.TABLE, text=table_text(header, cells), header=header, rows=cells, page=page
    )


def table_text(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [header, *rows] if any(header) else rows
    return "\n".join(" | ".join(line) for line in lines)


def looks_like_header(rows: Sequence[Sequence[str]]) -> bool:
    """Whether the first of the rows names the columns: full, no figures, no repeats, figures below
    it or at least longer cells."""
    if len(rows) < 2:
        return False
    first, *body = rows
    names = [cell for cell in first if cell]
    if len(names) < 2 or len(names) < len(first) - 1 or len(set(names)) < len(names):
        return False
    if any(len(name) > 40 or is_value(name) for name in names):
        return False
    cells = [cell for row in body for cell in row if cell]
    if any(is_value(cell) for cell in cells):
        return True
    lengths = sorted(len(cell) for cell in cells)
    return bool(lengths) and lengths[len(lengths) // 2] > max(len(name) for name in names)


def is_value(text: str) -> bool:
    """A figure, date or amount, with a short unit at most."""
    return bool(_VALUE.fullmatch(text.strip()))


def _flat(cell: str) -> str:
    return " ".join(cell.split())


def _joined(names: Sequence[str]) -> str:
    """Names of one column from several header rows; a span that repeats is said once."""
    return " ".join(dict.fromkeys(name for name in names if name))
