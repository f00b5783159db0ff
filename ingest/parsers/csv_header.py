"""How a CSV file is cut into cells, told by its header and not by a guess over all of its text.

A header that is misread loses its column `acl`, and its rows would be open to whomever the source
is: so a file that names an ACL in its first lines and has no such column is not read.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from ingest.acl import means_acl
from quarry.errors import ParseError
from quarry.records import DocState

_SAMPLE = 65_536
_DELIMITERS = ",;\t|"
_FIRST = 10
"""Lines or rows that are looked at."""
_SEPARATOR = re.compile(r"(\s*)\"?sep=([^\w\s\"]|\t)\2*\"?[ \t]*(?=[\r\n]|$)", re.I)
"""The line with which Excel is told the delimiter."""
_CELL_END = re.compile(r"[,;|:^~\t\x1f\r\n]")
"""What parts cells in any file."""


@dataclass(frozen=True, slots=True)
class Cut:
    delimiter: str
    is_spaced: bool = False
    """Blanks stand behind each delimiter, before the quotes of a cell too."""


def cut_of(text: str, *, tabs: bool) -> tuple[Cut, str]:
    """How it is cut, and the text with nothing in the line that only says so (`sep=;`)."""
    said = _SEPARATOR.match(text)
    if said:
        text = said[1] + text[said.end() :]
    delimiter = said[2] if said else "\t" if tabs else _delimiter(text[:_SAMPLE])
    header = next(_lines(text), "")
    blanks = header.count(f"{delimiter} ")
    return Cut(delimiter, is_spaced=0 < blanks == header.count(delimiter)), text


def check_header(header: Sequence[str], text: str) -> None:
    """Raises ParseError (failed) if a cell of the first lines, however they are cut, is or is meant
    for `acl`, and none of the header is."""
    if any(map(means_acl, header)):
        return
    first = "\n".join(islice(_lines(text), _FIRST))
    if any(map(means_acl, _CELL_END.split(first))):
        raise ParseError(
            DocState.FAILED,
            "Its first lines name an acl, but its header has no such column; make the line with "
            "the names of the columns its first one, or add a column acl.",
        )


def _delimiter(text: str) -> str:
    return max(_DELIMITERS, key=lambda each: _fit(text, each))


def _fit(text: str, delimiter: str) -> tuple[bool, bool, int, int]:
    """The more, the better: a column `acl`, several columns, rows of as many cells, columns."""
    header, *rows = _rows(text, delimiter) or [[]]
    columns = len(header)
    same = sum(len(row) == columns for row in rows)
    return any(map(means_acl, header)), columns > 1, same, columns


def _rows(text: str, delimiter: str) -> list[list[str]]:
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    return list(islice((row for row in reader if any(map(str.strip, row))), _FIRST))


def _lines(text: str) -> Iterator[str]:
    """Those of the beginning that are not blank."""
    return filter(str.strip, io.StringIO(text[:_SAMPLE], newline=None))
