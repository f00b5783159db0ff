"""The order in which a page is read: bands from top to bottom, in each band column after column.

A band is a stretch of the page with a gutter that no line crosses; a line over the whole width ends
it. Whether a gutter parts columns of text or cells of a table is told by how long the lines are.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from statistics import median
from typing import TypeAlias

from ingest.parsers.pdf.lines import Line
from ingest.parsers.pdf.unruled import with_tables

Row: TypeAlias = list[Line]
"""Lines on one baseline, from left to right (from right to left in scripts that run so)."""
Column: TypeAlias = list[Row]
_Span: TypeAlias = tuple[float, float]

_MIN_GUTTER = 0.7
"""Width of a gutter in font sizes."""
_MIN_MEASURE = 8.0
"""Length of a line of text, in font sizes; cells and labels are shorter."""
_MIN_ROWS = 3
_PULLED_BACK = 2.5
"""Line heights over which lines above a band may still belong to it."""
_BREAK = 5.0
"""Font sizes of empty space over the whole width that end a band."""
_RTL = re.compile("[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufeff]")


def reading_order(lines: Sequence[Line], width: float) -> list[Column]:
    """Columns in reading order, each with its rows from top to bottom."""
    letters = [char for line in lines for char in line.text if char.isalpha()]
    leftward = sum(1 for char in letters if _RTL.match(char)) > len(letters) / 2
    if leftward:
        _mirror(lines, width)
    columns = [with_tables(column) for column in _columns(list(lines), depth=0)]
    if leftward:
        _mirror(lines, width)
    return columns


def rows_of(lines: Iterable[Line]) -> list[Row]:
    """Lines grouped by baseline, from top to bottom."""
    rows: list[Row] = []
    for line in sorted(lines, key=lambda line: line.middle):
        if rows and not line.table and not rows[-1][0].table and _level(rows[-1], line):
            rows[-1].append(line)
        else:
            rows.append([line])
    for row in rows:
        row.sort(key=lambda line: line.x0)
    return rows


def _level(row: Row, line: Line) -> bool:
    anchor = max(row, key=lambda other: other.size)
    if line.size < anchor.size * 0.85 and anchor.y0 - 1 <= line.y0 and line.y1 <= anchor.y1 + 2:
        return True  # an index or exponent
    return abs(anchor.middle - line.middle) <= 0.5 * min(anchor.height, max(line.height, 1.0))


def _mirror(lines: Iterable[Line], width: float) -> None:
    for line in lines:
        line.x0, line.x1 = width - line.x1, width - line.x0


@dataclass(slots=True)
class _Band:
    strips: list[list[Line]] = field(default_factory=list)
    gaps: list[_Span] = field(default_factory=list)
    """Stretches across that no line of the band touches."""

    @property
    def lines(self) -> list[Line]:
        return [line for strip in self.strips for line in strip]

    def gutters(self) -> list[_Span]:
        """Gaps with lines on both sides, the widest first."""
        inner = [gap for gap in self.gaps if _both_sides(self.lines, gap)]
        return sorted(inner, key=lambda gap: gap[0] - gap[1])


def _columns(lines: list[Line], *, depth: int) -> Iterator[Column]:
    if not lines:
        return
    bands = _pulled_back(_bands(lines))
    known = [gutter for band in bands for gutter in band.gutters() if _is_text(band.lines, gutter)]
    waiting: list[Line] = []
    for band in bands:
        gutter = _gutter(band, known) if depth < 4 else None
        if gutter is None:
            waiting.extend(band.lines)
            continue
        if waiting:
            yield rows_of(waiting)
            waiting = []
        for side in _sides(band.lines, gutter):
            yield from _columns(side, depth=depth + 1)
    if waiting:
        yield rows_of(waiting)


def _gutter(band: _Band, known: Sequence[_Span]) -> _Span | None:
    """The gutter that parts columns of text; a short band takes over one that the page has."""
    for gutter in band.gutters():
        if _is_text(band.lines, gutter):
            return gutter
        if any(_overlap(gutter, other) for other in known) and not _is_tabular(band):
            return gutter
    return None


def _is_text(lines: Sequence[Line], gutter: _Span) -> bool:
    """Whether both sides hold lines of text rather than cells or labels."""
    sides = [rows_of(side) for side in _sides(lines, gutter)]
    if max(len(rows) for rows in sides) < _MIN_ROWS:
        return False
    return all(_measure(rows) >= _MIN_MEASURE for rows in sides)


def _measure(rows: Sequence[Row]) -> float:
    """Length of text that half of the rows reach, in font sizes."""
    return median(sum(line.x1 - line.x0 for line in row) / row[0].size for row in rows)


def _is_tabular(band: _Band) -> bool:
    rows = rows_of(band.lines)
    return len(rows) >= _MIN_ROWS and median(len(row) for row in rows) >= 3


def _bands(lines: list[Line]) -> list[_Band]:
    left, right = min(line.x0 for line in lines), max(line.x1 for line in lines)
    bands: list[_Band] = []
    for strip in _strips(lines):
        gaps = _gaps(strip, left, right)
        band = bands[-1] if bands else None
        shared = _shared(band.gaps, gaps, strip) if band else []
        if band is not None and _belongs(band, strip, gaps, shared):
            band.strips.append(strip)
            band.gaps = shared
        else:
            bands.append(_Band([strip], gaps))
    return bands


def _belongs(band: _Band, strip: list[Line], gaps: list[_Span], shared: list[_Span]) -> bool:
    if _distance(band.strips[-1], strip) > _BREAK * median(line.size for line in strip):
        return False
    together = [*band.lines, *strip]
    if any(_both_sides(together, gap) for gap in shared):
        return True
    return not band.gutters() and not any(_both_sides(strip, gap) for gap in gaps)


def _pulled_back(bands: list[_Band]) -> list[_Band]:
    """Lines above a band that keep clear of its gutter, such as the top of a longer column."""
    for above, band in pairwise(bands):
        gutters = band.gutters()
        if not gutters or above.gutters():
            continue
        while above.strips and _nearer(above.strips, band.strips[0]):
            if not all(_clear(line, gutters[0]) for line in above.strips[-1]):
                break
            band.strips.insert(0, above.strips.pop())
    return [band for band in bands if band.strips]


def _nearer(above: Sequence[Sequence[Line]], below: Sequence[Line]) -> bool:
    """Whether the last strip stands close to what is below, and no closer to what is above it."""
    last = above[-1]
    distance = _distance(last, below)
    if distance > _PULLED_BACK * max(line.size for line in last):
        return False
    return len(above) == 1 or distance <= 1.2 * _distance(above[-2], last)


def _distance(above: Sequence[Line], below: Sequence[Line]) -> float:
    return min(line.y0 for line in below) - max(line.y1 for line in above)


def _strips(lines: Iterable[Line]) -> list[list[Line]]:
    """Lines that share heights, from top to bottom. Boxes of lines overlap a little, so their
    middles count."""
    strips: list[list[Line]] = []
    bottom = 0.0
    for line in sorted(lines, key=_top):
        if strips and _top(line) < bottom:
            strips[-1].append(line)
            bottom = max(bottom, _bottom(line))
        else:
            strips.append([line])
            bottom = _bottom(line)
    return strips


def _top(line: Line) -> float:
    return line.y0 if line.table else line.y0 + 0.3 * line.height


def _bottom(line: Line) -> float:
    return line.y1 if line.table else line.y1 - 0.3 * line.height


def _gaps(strip: Sequence[Line], left: float, right: float) -> list[_Span]:
    """What the strip leaves free between the borders of the page's text, if wide enough."""
    least = _MIN_GUTTER * median(line.size for line in strip)
    gaps: list[_Span] = []
    reached = left
    for line in sorted(strip, key=lambda line: line.x0):
        if line.x0 - reached >= least:
            gaps.append((reached, line.x0))
        reached = max(reached, line.x1)
    if right - reached >= least:
        gaps.append((reached, right))
    return gaps


def _shared(one: Sequence[_Span], other: Sequence[_Span], strip: Sequence[Line]) -> list[_Span]:
    least = _MIN_GUTTER * median(line.size for line in strip)
    pairs = ((max(a[0], b[0]), min(a[1], b[1])) for a in one for b in other)
    return [span for span in pairs if span[1] - span[0] >= least]


def _both_sides(lines: Sequence[Line], gap: _Span) -> bool:
    return any(line.x1 <= gap[0] + 0.5 for line in lines) and any(
        line.x0 >= gap[1] - 0.5 for line in lines
    )


def _sides(lines: Sequence[Line], gutter: _Span) -> tuple[list[Line], list[Line]]:
    middle = sum(gutter) / 2
    left = [line for line in lines if (line.x0 + line.x1) / 2 < middle]
    return left, [line for line in lines if (line.x0 + line.x1) / 2 >= middle]


def _clear(line: Line, gutter: _Span) -> bool:
    return line.x1 <= gutter[1] or line.x0 >= gutter[0]


def _overlap(one: _Span, other: _Span) -> bool:
    return min(one[1], other[1]) > max(one[0], other[0])
