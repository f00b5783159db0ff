"""How a CSV file is cut into cells, told by its header and not by a guess over all of its text.

A header that is misread loses its column `acl`, and its rows would be open to whomever the source
is: so a file that names an ACL in its first lines and has no such column is not read, unless its
first line is plainly the header of what is below it.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING

from ingest.acl import field_name, means_acl
from ingest.metadata import TEXT_FIELDS
from quarry.errors import ParseError
from quarry.records import DocState

if TYPE_CHECKING:
    from _csv import Reader  # csv itself has no name for it

NAME_KEYS = ("_id", "id", "doc_id", "docid", "key", "uuid")
TITLE_KEYS = ("title", "name", "subject", "headline")
TEXT_KEYS = ("text", "body", "content", "contents", "passage")
_KNOWN = frozenset({*NAME_KEYS, *TITLE_KEYS, *TEXT_KEYS, *TEXT_FIELDS})
"""Names of columns; one beside an `acl` tells a header from a row that is about ACLs."""
_SAMPLE = 65_536
_DELIMITERS = ",;\t|"
FIRST = 10
"""Lines or rows that are looked at."""
_SEPARATOR = re.compile(r"(\s*)\"?sep=([^\w\s\"]|\t)\2*\"?[ \t]*(?=[\r\n]|$)", re.I)
"""The line with which Excel is told the delimiter."""
_CELL_END = re.compile(r"[,;|:^~\t\x1f\r\n]")
"""What parts cells in any file."""
_NAME = re.compile(r"#|(?!#).*[^\W\d_].*", re.S)
"""The name of a column: it has a letter, and is no comment."""


@dataclass(frozen=True, slots=True)
class Cut:
    delimiter: str
    is_spaced: bool = False
    """Blanks stand behind each delimiter, before the quotes of a cell too."""
    is_escaped: bool = False
    """A quote in a cell may be escaped by a backslash, not only doubled."""

    def rows(self, lines: Iterable[str], *, strict: bool) -> Reader:
        """Cells of each row. Raises csv.Error when it is iterated."""
        return csv.reader(
            lines,
            delimiter=self.delimiter,
            skipinitialspace=self.is_spaced,
            escapechar="\\" if self.is_escaped else None,
            strict=strict,
        )


def cut_of(text: str, *, tabs: bool) -> tuple[Cut, str]:
    """How it is cut, and the text with nothing in the line that only says so (`sep=;`)."""
    said = _SEPARATOR.match(text)
    if said:
        text = said[1] + text[said.end() :]
    delimiter = said[2] if said else "\t" if tabs else _delimiter(text[:_SAMPLE])
    header = next(_lines(text), "")
    blanks = header.count(f"{delimiter} ")
    cut = Cut(delimiter, is_spaced=0 < blanks == header.count(delimiter))
    return _with_escape(cut, text), text


def check_header(header: Sequence[str], text: str, cut: Cut) -> None:
    """Raises ParseError (failed) if a cell of the first lines, however they are cut, is or is meant
    for `acl`, none of the header is, and a line below it may be the real one."""
    if any(map(means_acl, header)):
        return
    first = "\n".join(islice(_lines(text), FIRST))
    if any(map(means_acl, _CELL_END.split(first))) and not _is_header(header, text, cut):
        raise ParseError(
            DocState.FAILED,
            "Its first lines name an acl, but its header has no such column; make the line with "
            "the names of the columns its first one, or add a column acl.",
        )


def _is_header(header: Sequence[str], text: str, cut: Cut) -> bool:
    """Whether its cells are names of columns, and all first rows have just these columns: then an
    `acl` in one of them is text of a cell. A title or a comment has other cells, or blank ones."""
    parts = (part for name in header for part in _CELL_END.split(name))
    is_named = all(_NAME.fullmatch(name.strip()) for name in header)
    if len(header) < 2 or not is_named or any(map(means_acl, parts)):
        return False
    rows = _strict_rows(text, cut)[1:]
    return bool(rows) and all(len(row) == len(header) and not _names(row) for row in rows)


def _names(row: Sequence[str]) -> bool:
    """Whether these are names of columns, an `acl` among them."""
    return any(map(means_acl, row)) and any(field_name(cell) in _KNOWN for cell in row)


def _with_escape(cut: Cut, text: str) -> Cut:
    """The same with quotes escaped by a backslash, if the first lines have such quotes and can be
    read in no other way."""
    escaped = replace(cut, is_escaped=True)
    is_so = '\\"' in text[:_SAMPLE] and not _is_whole(text, cut) and _is_whole(text, escaped)
    return escaped if is_so else cut


def _is_whole(text: str, cut: Cut) -> bool:
    """Whether no quote of the first lines is wrong."""
    try:
        for _ in cut.rows(io.StringIO(text[:_SAMPLE], newline=""), strict=True):
            pass
    except csv.Error as error:
        # Where the sample ends, a cell of several lines may well be open.
        return len(text) > _SAMPLE and "unexpected end" in str(error)
    return True


def _delimiter(text: str) -> str:
    return max(_DELIMITERS, key=lambda each: _fit(text, each))


def _fit(text: str, delimiter: str) -> tuple[bool, bool, bool, int, int]:
    """The more, the better: a column `acl`, several columns, quotes that are right, rows of as many
    cells, columns."""
    cut = Cut(delimiter)
    header, *rows = _rows(text, cut, strict=False) or [[]]
    columns = len(header)
    same = sum(len(row) == columns for row in rows)
    is_right = bool(_strict_rows(text, cut))
    return any(map(means_acl, header)), columns > 1, is_right, same, columns


def _rows(text: str, cut: Cut, *, strict: bool) -> list[list[str]]:
    """The header and the first rows below it. Raises csv.Error."""
    reader = cut.rows(io.StringIO(text[:_SAMPLE], newline=""), strict=strict)
    return list(islice((row for row in reader if any(map(str.strip, row))), FIRST + 1))


def _strict_rows(text: str, cut: Cut) -> list[list[str]]:
    """The same; none if a quote in them is wrong."""
    try:
        return _rows(text, cut, strict=True)
    except csv.Error:
        return []


def _lines(text: str) -> Iterator[str]:
    """Those of the beginning that are not blank."""
    return filter(str.strip, io.StringIO(text[:_SAMPLE], newline=None))
