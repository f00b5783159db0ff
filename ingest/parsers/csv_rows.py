"""The rows of a CSV file, where a quote that is left open does not swallow the rows below it.

Such a row cannot be read. Each line below it, as far as the quote reaches, is a line again: a row
if it has as many cells as the header, else it may as well be text of the cell that was left open,
and may say by chance who reads it.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from ingest.acl import means_acl
from ingest.parsers.csv_header import Cut, check_header, cut_of
from quarry.errors import ParseError
from quarry.records import DocState

_MAX_FIELD = 10_000_000
"""Characters of one field."""
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
    check_header(header.cells, text)
    yield header
    # A comma too many moves all cells behind it, and so an acl that any cell is before.
    can_move = any(map(means_acl, header.cells[1:]))
    for row in rows:
        has_more = any(cell.strip() for cell in row.cells[len(header.cells) :])
        yield _moved(row.line) if can_move and has_more else row


def _moved(line: int) -> Row:
    fault = (
        f"Line {line} has more cells than the header, so it is not known which of them is its acl; "
        "put quotes round each cell that holds the delimiter."
    )
    return Row(line, fault=fault)


class _Rows:
    def __init__(self, text: str, cut: Cut) -> None:
        self._text = text
        self._file = io.StringIO(text, newline="")
        self._cut = cut
        self._columns = 0
        self._opened = 0
        """The last line that leaves a quote open."""
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
                self._columns = self._columns or len(row.cells)
                self._is_lost = False
                yield row

    def _row(self, line: int, start: int) -> tuple[Row, int]:
        """The row that begins here, and its number of lines, behind which the file stands."""
        cells, lines, error = self._next(self._file, strict=True)
        end = self._file.tell()
        if error or lines > 1:
            first = self._only_first_line(start)
            if self._is_open(first) if error else self._swallows(cells, self._file.tell(), end):
                return self._left_open(line, start, end), 1
            if error:  # and so of one line: it is taken as it is if it has all its cells
                cells, lines, error = self._next([first], strict=False)
                if cells and self._columns and len(cells) != self._columns:
                    return self._left_open(line, start, end), 1
            else:
                self._file.seek(end)
        if error:
            return Row(line, fault=f"Line {line} is not CSV: {error}."), 1
        in_doubt = self._is_lost or start < self._reach
        if in_doubt and any(cells) and len(cells) != self._columns:
            self._only_first_line(start)
            fault = (
                f"Line {line} has not as many cells as the header and may belong to the cell that "
                f"line {self._opened} leaves open; close that quote."
            )
            return Row(line, fault=fault), 1
        return Row(line, cells=cells), lines

    def _next(self, lines: Iterable[str], *, strict: bool) -> tuple[tuple[str, ...], int, str]:
        """Cells of the next row, its number of lines, and what is wrong with it."""
        cut = self._cut
        reader = csv.reader(
            lines, delimiter=cut.delimiter, skipinitialspace=cut.is_spaced, strict=strict
        )
        try:
            return tuple(next(reader)), reader.line_num, ""
        except csv.Error as error:
            return (), reader.line_num, str(error)

    def _only_first_line(self, start: int) -> str:
        self._file.seek(start)
        return self._file.readline()

    def _is_open(self, line: str) -> bool:
        """Whether a quote is open at the end of this line, so that a row takes the next one too."""
        return self._next([line, ""], strict=False)[1] > 1

    def _swallows(self, cells: tuple[str, ...], start: int, end: int) -> bool:
        """Whether a row that is whole, but of too few or too many cells, is several rows: all
        lines between its first and its last have the cells of the header."""
        if self._columns < 3 or len(cells) == self._columns:  # text often has one comma a line
            return False
        between = list(io.StringIO(self._text[start:end], newline=""))[:-1]
        counts = (len(self._next([line], strict=False)[0]) for line in between)
        return bool(between) and all(count == self._columns for count in counts)

    def _left_open(self, line: int, start: int, end: int) -> Row:
        fault = (
            f"Line {line} leaves a quote open, so it and what may belong to the open cell cannot "
            "be read; close the quote, or double it if it is text."
        )
        self._opened, self._reach = line, max(end, self._reach)
        self._read_over += end - start
        if self._read_over > _PASSES * len(self._text):
            raise ParseError(DocState.CORRUPT, fault)
        return Row(line, fault=fault)
