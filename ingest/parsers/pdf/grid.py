"""Ruled tables: the grid that the drawn lines make, and the glyphs that stand in each cell."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, TypeAlias

from ingest.parsers.pdf.lines import Box, Drawn, Turn, mended

_SNAP = 3.0
"""Points by which lines that meet may miss each other."""
_THIN = 2.5
"""Filled boxes up to this are lines."""
_MIN_RULES = 5
"""Fewer lines than these make no grid; most pages end here."""
_UNRULED = 3
"""Lines in the first cell of a row below the names from which on each line is a row of its own."""
_MIN_CELLS = 4
"""Cells with text from which boxes are a table rather than parts of a drawing."""
_MIN_FILLED = 0.3
"""Share of cells that hold something; the grids of charts hold nothing."""


@dataclass(slots=True)
class Grid:
    """A table: cell texts by row, spans repeated, and whether each row is all bold."""

    box: Box
    edges: tuple[float, ...]
    """Column borders from left to right."""
    rows: list[list[str]]
    bold: list[bool]
    header: tuple[str, ...] = ()
    """Column names, given by the table itself or by the one that it goes on from."""


@dataclass(slots=True)
class _Rules:
    """Lines that touch one another."""

    across: list[Box] = field(default_factory=list)
    down: list[Box] = field(default_factory=list)


def ruled_tables(page: Any, turn: Turn) -> list[Grid]:
    """The ruled tables of a page from top to bottom, in upright coordinates."""
    across, down = _rules(page, turn)
    if len(across) + len(down) < _MIN_RULES or not down:
        return []
    glyphs: list[tuple[float, float, str, bool, int]] | None = None
    found: list[Grid] = []
    for rules in _components(_merged(across, axis=0), _merged(down, axis=1)):
        lattice = _Lattice.of(rules)
        if lattice is None:
            continue
        glyphs = _glyphs(page, turn) if glyphs is None else glyphs
        grid = lattice.filled(glyphs)
        if grid is not None:
            found.append(grid)
    return sorted(found, key=lambda grid: (grid.box[1], grid.box[0]))


@dataclass(slots=True)
class _Lattice:
    xs: list[float]
    ys: list[float]
    rules: _Rules

    @classmethod
    def of(cls, rules: _Rules) -> _Lattice | None:
        """The lattice of some rules, open sides closed; None if it has one row or one column."""
        ends_x = [edge for rule in rules.across for edge in (rule[0], rule[2])]
        ends_y = [edge for rule in rules.down for edge in (rule[1], rule[3])]
        if not ends_x or not ends_y:
            return None
        inner_x = [(rule[0] + rule[2]) / 2 for rule in rules.down]
        inner_y = [(rule[1] + rule[3]) / 2 for rule in rules.across]
        xs = _snapped([*inner_x, min(ends_x), max(ends_x)])
        ys = _snapped([*inner_y, min(ends_y), max(ends_y)])
        return cls(xs, ys, rules) if len(xs) > 2 and len(ys) > 2 else None

    def filled(self, glyphs: Sequence[tuple[float, float, str, bool, int]]) -> Grid | None:
        owners = self._owners()
        texts: dict[tuple[int, int], dict[int, _Text]] = defaultdict(lambda: defaultdict(_Text))
        thin: set[int] = set()
        seen: set[int] = set()
        for x, y, char, bold, line in glyphs:
            column, row = _place(self.xs, x), _place(self.ys, y)
            if column is None or row is None:
                continue
            texts[owners[row, column]][line].add(char, y)
            if not char.isspace():
                seen.add(row)
                if not bold:
                    thin.add(row)
        cells = {owner: _lines(found) for owner, found in texts.items()}
        filled = sum(1 for lines in cells.values() if lines)
        if filled < max(_MIN_CELLS, _MIN_FILLED * len(set(owners.values()))):
            return None
        columns, rows = len(self.xs) - 1, len(self.ys) - 1
        lined = [[cells.get(owners[r, c], []) for c in range(columns)] for r in range(rows)]
        heavy = [row in seen and row not in thin for row in range(rows)]
        if rows == 2 and len(lined[1][0]) >= _UNRULED:
            lined = [lined[0], *_parted(lined[1])]
            heavy += [False] * (len(lined) - rows)
        grid = [[" ".join(text for _, text in cell) for cell in row] for row in lined]
        box = (self.xs[0], self.ys[0], self.xs[-1], self.ys[-1])
        return Grid(box, tuple(self.xs), grid, heavy)

    def _owners(self) -> dict[tuple[int, int], tuple[int, int]]:
        """For each position the first position of its cell: where no rule parts two, they are one.

        Rows are never joined over the whole width, since tables often rule only some of them.
        """
        owners: dict[tuple[int, int], tuple[int, int]] = {}
        for row in range(len(self.ys) - 1):
            for column in range(len(self.xs) - 1):
                owner = (row, column)
                if column and not self._parted_right(row, column - 1):
                    owner = owners[row, column - 1]
                elif row and not self._parted_below(row - 1, column):
                    owner = owners[row - 1, column]
                owners[row, column] = owner
        return owners

    def _parted_right(self, row: int, column: int) -> bool:
        x, top, bottom = self.xs[column + 1], self.ys[row], self.ys[row + 1]
        return any(
            abs((rule[0] + rule[2]) / 2 - x) <= _SNAP
            and min(rule[3], bottom) - max(rule[1], top) > (bottom - top) / 2
            for rule in self.rules.down
        )

    def _parted_below(self, row: int, column: int) -> bool:
        y, left, right = self.ys[row + 1], self.xs[column], self.xs[column + 1]
        return any(
            abs((rule[1] + rule[3]) / 2 - y) <= _SNAP
            and min(rule[2], right) - max(rule[0], left) > (right - left) / 2
            for rule in self.rules.across
        )


@dataclass(slots=True)
class _Text:
    """The glyphs of one line inside one cell."""

    y: float = 0.0
    chars: list[str] = field(default_factory=list)

    def add(self, char: str, y: float) -> None:
        self.y = y
        self.chars.append(char)


_Cell: TypeAlias = list[tuple[float, str]]
"""Lines of a cell from top to bottom, each with the height that it stands at."""


def _lines(found: dict[int, _Text]) -> _Cell:
    lines = ((text.y, " ".join("".join(text.chars).split())) for text in found.values())
    return [(y, text) for y, text in lines if text]


def _parted(row: list[_Cell]) -> list[list[_Cell]]:
    """One row a line of the first cell; lines of other cells belong to the row that they stand in
    or below."""
    starts = [y - _SNAP for y, _ in row[0]]
    parts: list[list[_Cell]] = [[[] for _ in row] for _ in starts]
    for column, cell in enumerate(row):
        for y, text in cell:
            number = max(sum(1 for start in starts if start <= y) - 1, 0)
            parts[number][column].append((y, text))
    return parts


def _rules(page: Any, turn: Turn) -> tuple[list[Box], list[Box]]:
    """Straight lines across and down: strokes, borders of boxes, and boxes as thin as a line."""
    across: list[Box] = []
    down: list[Box] = []
    for drawing in page.get_cdrawings():
        stroked = "s" in drawing["type"]
        for item in drawing["items"]:
            for box in _straight(item, stroked=stroked):
                x0, y0, x1, y1 = turn(box)
                if y1 - y0 <= _THIN < x1 - x0:
                    across.append((x0, y0, x1, y1))
                elif x1 - x0 <= _THIN < y1 - y0:
                    down.append((x0, y0, x1, y1))
    return across, down


def _straight(item: Any, *, stroked: bool) -> Iterator[Box]:
    if item[0] == "l" and stroked:
        (xa, ya), (xb, yb) = item[1], item[2]
        yield min(xa, xb), min(ya, yb), max(xa, xb), max(ya, yb)
    elif item[0] == "re":
        x0, y0, x1, y1 = item[1]
        if not stroked or min(x1 - x0, y1 - y0) <= _THIN:
            yield x0, y0, x1, y1
        else:
            yield from ((x0, y0, x1, y0), (x0, y1, x1, y1), (x0, y0, x0, y1), (x1, y0, x1, y1))


def _merged(rules: Iterable[Box], *, axis: int) -> list[Box]:
    """Rules on one line that touch or overlap, as one; `axis` 0 for rules across, 1 for down."""
    along, beside = axis, 1 - axis
    merged: list[Box] = []
    for rule in sorted(rules, key=lambda r: (round(r[beside] / _SNAP), r[along])):
        last = merged[-1] if merged else None
        if (
            last is not None
            and abs(last[beside] - rule[beside]) <= _SNAP
            and rule[along] <= last[along + 2] + _SNAP
        ):
            joined = list(last)
            joined[along + 2] = max(last[along + 2], rule[along + 2])
            merged[-1] = (joined[0], joined[1], joined[2], joined[3])
        else:
            merged.append(rule)
    return merged


def _components(across: Sequence[Box], down: Sequence[Box]) -> Iterator[_Rules]:
    """Rules grouped by what they touch."""
    waiting_across, waiting_down = list(across), list(down)
    while waiting_down:
        rules = _Rules(down=[waiting_down.pop()])
        grown = True
        while grown:
            touched = [a for a in waiting_across if any(_touch(a, d) for d in rules.down)]
            waiting_across = [a for a in waiting_across if a not in touched]
            rules.across.extend(touched)
            met = [d for d in waiting_down if any(_touch(a, d) for a in rules.across)]
            waiting_down = [d for d in waiting_down if d not in met]
            rules.down.extend(met)
            grown = bool(touched or met)
        yield rules


def _touch(across: Box, down: Box) -> bool:
    return (
        across[0] - _SNAP <= down[2]
        and down[0] <= across[2] + _SNAP
        and down[1] - _SNAP <= across[3]
        and across[1] <= down[3] + _SNAP
    )


def _snapped(values: Iterable[float]) -> list[float]:
    """Sorted, those closer than the snap distance as one."""
    places: list[float] = []
    for value in sorted(values):
        if not places or value - places[-1] > _SNAP:
            places.append(value)
    return places


def _place(edges: Sequence[float], value: float) -> int | None:
    for number, (low, high) in enumerate(pairwise(edges)):
        if low <= value < high:
            return number
    return None


def _glyphs(page: Any, turn: Turn) -> list[tuple[float, float, str, bool, int]]:
    """Centre, character, boldness and number of the line of every glyph."""
    import pymupdf

    flags = pymupdf.TEXT_PRESERVE_LIGATURES | pymupdf.TEXT_PRESERVE_WHITESPACE
    found: list[tuple[float, float, str, bool, int]] = []
    drawn = Drawn()
    number = 0
    for block in page.get_text("rawdict", flags=flags)["blocks"]:
        for line in block.get("lines", ()):
            number += 1
            for span in line["spans"]:
                bold = bool(span["flags"] & 16) or "bold" in span["font"].lower()
                for glyph in span["chars"]:
                    char = mended(glyph["c"], tex=False)
                    x0, y0, x1, y1 = turn(glyph["bbox"])
                    if char and not drawn.again(char, x0, y0, span["size"]):
                        found.append(((x0 + x1) / 2, (y0 + y1) / 2, char, bold, number))
    return found
