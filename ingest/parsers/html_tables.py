"""HTML tables as regular grids: spans repeated, lists and tables inside cells told in words."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from ingest.parsers.blocks import MAX_CELLS, table, without_pictures
from quarry.errors import ParseError
from quarry.records import Block, BlockKind, DocState

_MAX_SPAN = 1_000
_LAYOUT_CELL = 1_500
"""Characters of a cell beyond which the table holds a page, not data."""
_SPACE = re.compile(r"\s+")
_PIECES = frozenset({"p", "div", "br", "dd", "dt", "blockquote", "pre", "caption"})
_ITEMS = frozenset({"li", "tr"})
_ITEM, _CELL = "\x1e", "\x1f"
"""Separators while a cell is being read."""


def is_data_table(node: Any) -> bool:
    """Whether a table holds data rather than the layout of a page."""
    if node.attributes.get("role") in ("presentation", "none"):
        return False
    rows = list(_rows(node))
    if max((len(cells) for cells, _ in rows), default=0) < 2:
        return False
    cells = [cell for cells, _ in rows for cell in cells]
    if any(cell.css_first("h1, h2, h3, h4, h5, h6") for cell in cells):
        return False
    return all(len(cell.text()) <= _LAYOUT_CELL for cell in cells)


def table_blocks(node: Any) -> Iterator[Block]:
    """The caption as a paragraph, then the table."""
    caption = node.css_first("caption")
    if caption is not None and cell_text(caption):
        yield Block(kind=BlockKind.PARAGRAPH, text=cell_text(caption))
    rows = list(_rows(node))
    grid = _grid([cells for cells, _ in rows])
    heads = 0
    while heads < len(rows) and rows[heads][1]:
        heads += 1
    block = table(grid, header_rows=heads if 0 < heads < len(rows) else None)
    if block:
        yield block


def cell_text(node: Any) -> str:
    """The text of a cell on one line: items apart by semicolons, rows of an inner table too."""
    parts: list[str] = []
    stack: list[tuple[Any, str | None]] = _inside(node)
    while stack:
        item, closing = stack.pop()
        if closing is not None:
            parts.append(closing)
        elif item.is_text_node:
            parts.append(item.text_content or "")
        elif item.is_element_node:
            if item.tag == "img":
                parts.append(f" {item.attributes.get('alt') or ''} ")
            mark = _ITEM if item.tag in _ITEMS else " " if item.tag in _PIECES else ""
            parts.append(mark)
            stack.append((item, _CELL if item.tag in ("td", "th") else mark))
            stack.extend(_inside(item))
    return _tidy(without_pictures("".join(parts)))


def _inside(node: Any) -> list[tuple[Any, str | None]]:
    return [(child, None) for child in reversed(list(node.iter(include_text=True)))]


def _tidy(text: str) -> str:
    """Separators as punctuation: none at the ends, none doubled."""
    items: list[str] = []
    for item in text.split(_ITEM):
        cells = (_SPACE.sub(" ", cell).strip() for cell in item.split(_CELL))
        joined = ", ".join(cell for cell in cells if cell)
        if joined:
            items.append(joined)
    return "; ".join(items)


def _rows(node: Any) -> Iterator[tuple[list[Any], bool]]:
    """Cells of each row of this table, not of tables inside it, and whether it is a header row."""
    for part in node.iter():
        if part.tag == "tr":
            yield _cells(part, "tbody")
        elif part.tag in ("thead", "tbody", "tfoot"):
            for row in part.iter():
                if row.tag == "tr":
                    yield _cells(row, part.tag)


def _cells(row: Any, part: str) -> tuple[list[Any], bool]:
    cells = [cell for cell in row.iter() if cell.tag in ("td", "th")]
    return cells, part == "thead" or (bool(cells) and all(cell.tag == "th" for cell in cells))


def _grid(rows: list[list[Any]]) -> list[list[str]]:
    """Text of every position, spans repeated in all that they cover."""
    grid: list[dict[int, str]] = [{} for _ in rows]
    filled = 0
    for number, cells in enumerate(rows):
        column = 0
        for cell in cells:
            while column in grid[number]:
                column += 1
            text = cell_text(cell)
            wide, high = _span(cell, "colspan"), _span(cell, "rowspan")
            high = min(high or len(rows), len(rows) - number)
            filled += wide * high
            if filled > MAX_CELLS:
                raise ParseError(DocState.TOO_LARGE, f"A table has more than {MAX_CELLS} cells.")
            for below in range(number, number + high):
                for right in range(column, column + max(wide, 1)):
                    grid[below].setdefault(right, text)
            column += max(wide, 1)
    return [[row.get(n, "") for n in range(max(row, default=-1) + 1)] for row in grid]


def _span(cell: Any, name: str) -> int:
    """0 for a rowspan of 0, which means: to the end of the table."""
    text = (cell.attributes.get(name) or "1").strip()
    return min(int(text), _MAX_SPAN) if text.isdecimal() and len(text) < 7 else 1
