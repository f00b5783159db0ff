"""The rows of a CSV file, where a quote that is left open does not swallow the rows below it.

Such a row cannot be read. Each line below it, as far as the quote reaches, is a line again: a row
if it has as many cells as the header, else it may as well be text of the cell that was left open,
and may say by chance who reads it. A row whose quotes are right is taken as it is, whatever its
lines look like. Where cells may have moved, and one of them is an acl, the row cannot be read.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice

from ingest.acl import means_acl
from ingest.parsers.csv_header import FIRST, Cut, check_header, cut_of
from quarry.errors import ParseError
from quarry.records import DocState

_MAX_FIELD = 10_000_000
"""Characters of one field."""
_ALIKE = 3
"""Rows of one form that are no chance."""
_PASSES = 50
"""How often the text may be read over again for open quotes before the file is given up."""


@dataclass(frozen=True, slots=True)
class Row:
    """The header, a row below it, or what stands in the place of rows and cannot be read."""

    line: int
    """Its first line, from 1."""
    cells: tuple[str, ...] = ()
    fault: str = ""
    """Why it cannot be read; empty if it can."""


def csv_rows(text: str, *, tabs: bool) -> Iterator[Row]:
    """The header, then all rows that are not blank. Lines in a row that may be text of a cell that
    was left open have one fault together.

    Raises ParseError: corrupt if the header cannot be read, or if quotes are open all over; failed
    if it lacks a column `acl` that is named near it.
    """
    csv.field_size_limit(_MAX_FIELD)
    cut, text = cut_of(text, tabs=tabs)
    rows = _Rows(text, cut).read()
    header = next(rows, Row(line=1))
    check_header(header.cells, text, cut)
    yield header
    yield from _in_place(rows, header.cells, cut) if _can_move(header.cells) else rows


def _can_move(header: Sequence[str]) -> bool:
    """Whether a delimiter too many, or one too few, can put another cell in the place of an acl:
    all cells behind it move, and so an acl that any cell is before."""
    return any(map(means_acl, header[1:]))


def _in_place(rows: Iterator[Row], header: Sequence[str], cut: Cut) -> Iterator[Row]:
    """The rows, and a fault for each whose cells may have moved."""
    columns = len(header)
    acls = [number for number, name in enumerate(header) if means_acl(name)]
    first = list(islice(rows, FIRST))
    wanted = columns + _spare(first, columns)
    # A backslash before a delimiter may have joined two cells, which moves those behind it too.
    least = wanted if wanted > columns or cut.is_escaped else 0
    for row in chain(first, rows):
        count = len(row.cells)
        is_right = least <= count <= wanted and not any(map(str.strip, row.cells[columns:]))
        # Where a cell more is allowed, the blank behind a comma shows that it is one of a sentence.
        if is_right and count > columns:
            is_right = not any(row.cells[number].startswith(" ") for number in acls)
        yield row if row.fault or is_right else _moved(row, columns, wanted)


def _spare(first: Sequence[Row], columns: int) -> int:
    """How many blank cells stand behind all others in each of the first rows, as where a program
    ends each line with the delimiter. In fewer than three rows it may be chance."""
    surplus = {row.cells[columns:] for row in first if not row.fault}
    counts = {len(cells) for cells in surplus}
    is_blank = not any(cell.strip() for cells in surplus for cell in cells)
    read = sum(not row.fault for row in first)
    return counts.pop() if is_blank and len(counts) == 1 and read >= _ALIKE else 0


def _moved(row: Row, columns: int, wanted: int) -> Row:
    than = "the header" if wanted == columns else "the first rows"
    count = "more cells than the header" if len(row.cells) > columns else f"fewer cells than {than}"
    fault = (
        f"Line {row.line} has {count}, so it is not known which of them is its acl; put quotes "
        "round each cell that holds the delimiter, and give each row as many cells as the header."
    )
    return Row(row.line, fault=fault)


class _Rows:
    def __init__(self, text: str, cut: Cut) -> None:
        self._text = text
        self._file = io.StringIO(text, newline="")
        self._cut = cut
        self._columns = 0
        self._can_move = False
        self._opened = 0
        """The last line in which quotes are wrong."""
        self._reach = 0
        """Where the cell ends that begins with this quote."""
        self._is_lost = False
        """The line before may be text of this cell, and so may what follows, until a row fits."""
        self._read_over = 0

    def read(self) -> Iterator[Row]:
        line = 1
        while (start := self._file.tell()) < len(self._text):
            row, lines = self._row(line, start)
            line += lines
            if row.fault:
                if not self._columns:
                    raise ParseError(DocState.CORRUPT, row.fault)
                if not self._is_lost or row.line == self._opened:
                    yield row
                self._is_lost = self._is_lost or start < self._reach
            elif any(cell.strip() for cell in row.cells):
                if not self._columns:
                    self._columns, self._can_move = len(row.cells), _can_move(row.cells)
                self._is_lost = False
                yield row

    def _row(self, line: int, start: int) -> tuple[Row, int]:
        """The row that begins here, and its number of lines, behind which the file stands."""
        cells, lines, error = self._next(self._file, strict=True)
        if error:
            return self._wrong(line, start, error), 1
        in_doubt = self._is_lost or start < self._reach
        if in_doubt and any(cells) and len(cells) != self._columns:
            fault = (
                f"Line {line} has not as many cells as the header and may belong to a cell of line "
                f"{self._opened}, whose quotes are wrong; mend those."
            )
            # All its lines: those within a cell that is quoted well are no rows.
            return Row(line, fault=fault), lines
        return Row(line, cells=cells), lines

    def _wrong(self, line: int, start: int, error: str) -> Row:
        """What stands in this one line, if its quotes end in it and it has all its cells; in doubt
        also about that where an acl may be among them."""
        end = self._file.tell()
        self._file.seek(start)
        first = self._file.readline()
        if self._is_open(first):
            fault = "leaves a quote open, so it and what may belong to the open cell"
            cure = "close the quote, or double it if it is text"
        else:
            cells, _, failure = self._next([first], strict=False)
            if failure:
                return Row(line, fault=f"Line {line} is not CSV: {error}.")
            if not self._can_move and len(cells) == (self._columns or len(cells)):
                return Row(line, cells=cells)
            fault = "has quotes inside a cell, so it and what may belong to that cell"
            cure = "double each quote that is text"
        if '\\"' in first and not self._cut.is_escaped:
            cure = 'quotes escaped by a backslash are not read in this file: double them, as in ""'
        return self._unread(line, start, end, f"Line {line} {fault} cannot be read; {cure}.")

    def _next(self, lines: Iterable[str], *, strict: bool) -> tuple[tuple[str, ...], int, str]:
        """Cells of the next row, its number of lines, and what is wrong with it."""
        reader = self._cut.rows(lines, strict=strict)
        try:
            return tuple(next(reader)), reader.line_num, ""
        except csv.Error as error:
            return (), reader.line_num, str(error)

    def _is_open(self, line: str) -> bool:
        """Whether a quote is open at the end of this line, so that a row takes the next one too."""
        return self._next([line, ""], strict=False)[1] > 1

    def _unread(self, line: int, start: int, end: int, fault: str) -> Row:
        self._opened, self._reach = line, max(end, self._reach)
        self._read_over += end - start
        if self._read_over > _PASSES * len(self._text):
            raise ParseError(DocState.CORRUPT, fault)
        return Row(line, fault=fault)
