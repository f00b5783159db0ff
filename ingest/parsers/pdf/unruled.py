"""Tables without rules: rows of short cells that stand under one another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from statistics import median

from ingest.parsers.pdf.grid import Grid
from ingest.parsers.pdf.lines import Line

_MIN_CELLS = 3
_MIN_ROWS = 3
_LONG_CELL = 26
"""Characters from which a cell is rather a line of a text column."""
_TOUCHING = 0.6
"""Blank in font sizes up to which two runs are one cell."""
_FAR = 2.6
"""Line heights between rows of one table at most."""


def with_tables(rows: list[list[Line]]) -> list[list[Line]]:
    """The rows of a column, those that make a table replaced by one line that holds it."""
    found: list[list[Line]] = []
    start = 0
    while start < len(rows):
        end = _run(rows, start)
        grid = _grid(rows[start:end]) if end - start >= _MIN_ROWS else None
        if grid is None:
            found.append(rows[start])
            start += 1
        else:
            found.append([_as_line(grid, rows[start:end])])
            start = end
    return found


def _run(rows: list[list[Line]], start: int) -> int:
    """End of the rows from here on that may be one table."""
    if len(_cells(rows[start])) < _MIN_CELLS:
        return start
    end = start + 1
    while end < len(rows) and _follows(rows[end - 1], rows[end], first=rows[start]):
        end += 1
    return end


def _follows(before: list[Line], row: list[Line], *, first: list[Line]) -> bool:
    if any(line.table for line in row) or any(line.mono for line in row):
        return False
    if row[0].middle - before[0].middle > _FAR * max(line.height for line in before):
        return False
    cells = _cells(row)
    if len(cells) >= _MIN_CELLS:
        return True
    # A cell that goes on below itself, never the first of a row.
    return all(cell.x0 > first[0].x1 for cell in cells)


def _cells(row: Sequence[Line]) -> list[Line]:
    """Runs of the row that touch, as one cell."""
    if any(line.table or line.mono for line in row):
        return []
    cells: list[Line] = []
    for line in row:
        if cells and line.x0 - cells[-1].x1 <= _TOUCHING * line.size:
            last = cells[-1]
            text = f"{last.text} {line.text}"
            cells[-1] = replace(
                last, text=text, x1=max(last.x1, line.x1), bold=last.bold and line.bold
            )
        else:
            cells.append(line)
    return cells


def _grid(rows: list[list[Line]]) -> Grid | None:
    cells = [_cells(row) for row in rows]
    full = [row for row in cells if len(row) >= _MIN_CELLS]
    if len(full) < _MIN_ROWS:
        return None
    if median(len(cell.text) for row in full for cell in row) >= _LONG_CELL:
        return None
    columns = _columns(full[1:] if len(full) > _MIN_ROWS else full)
    if len(columns) < _MIN_CELLS:
        return None
    grid: list[list[str]] = []
    for row in cells:
        texts = [""] * len(columns)
        for cell in row:
            place = _place(columns, cell)
            texts[place] = f"{texts[place]} {cell.text}".strip()
        if grid and len(row) < _MIN_CELLS and not texts[0]:
            grid[-1] = [
                f"{above} {text}".strip() for above, text in zip(grid[-1], texts, strict=True)
            ]
        else:
            grid.append(texts)
    filled = sum(1 for row in grid for text in row if text)
    if filled < 0.6 * len(grid) * len(columns):
        return None
    box = (
        min(line.x0 for row in rows for line in row),
        min(line.y0 for row in rows for line in row),
        max(line.x1 for row in rows for line in row),
        max(line.y1 for row in rows for line in row),
    )
    edges = (box[0], *((a[1] + b[0]) / 2 for a, b in pairwise(columns)), box[2])
    bold = [all(cell.bold for cell in row) for row in cells[:1]]
    return Grid(box, edges, grid, bold + [False] * (len(grid) - 1))


def _columns(rows: Sequence[Sequence[Line]]) -> list[tuple[float, float]]:
    """Stretches across that cells share, from left to right."""
    columns: list[tuple[float, float]] = []
    for cell in sorted((cell for row in rows for cell in row), key=lambda cell: cell.x0):
        if columns and cell.x0 < columns[-1][1]:
            columns[-1] = (columns[-1][0], max(columns[-1][1], cell.x1))
        else:
            columns.append((cell.x0, cell.x1))
    return columns


def _place(columns: Sequence[tuple[float, float]], cell: Line) -> int:
    """The column that the cell covers most of, or stands nearest to."""
    middle = (cell.x0 + cell.x1) / 2

    def fit(number: int) -> tuple[float, float]:
        low, high = columns[number]
        shared = min(high, cell.x1) - max(low, cell.x0)
        return (max(shared, 0.0), -abs((low + high) / 2 - middle))

    return max(range(len(columns)), key=fit)


def _as_line(grid: Grid, rows: list[list[Line]]) -> Line:
    x0, y0, x1, y1 = grid.box
    size = median(line.size for row in rows for line in row)
    return Line(x0=x0, y0=y0, x1=x1, y1=y1, text="", size=size, table=grid)
