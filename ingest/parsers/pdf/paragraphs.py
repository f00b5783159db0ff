"""Rows of a column put together to paragraphs, and paragraphs that go on in the next column."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from statistics import median
from typing import TypeAlias

from ingest.parsers.pdf.grid import Grid
from ingest.parsers.pdf.layout import Column, Row

BULLET = re.compile(r"([•‣◦▪●·■□○▶►✓✔➢➤–—∙*\uf0b7\uf0a7\uf0d8\u2043]|-)\s+(?=\S)")
_DOT = re.compile(r"\s*[•‣◦▪●]")
"""Bullets that do not occur in code."""
_LEADER = " … "
_LEADERS = re.compile(r"(?:\s?\.){5,}\s*")
"""Dots that lead to a page number."""
_NUMBER = re.compile(r"(?:\(?(?:\d{1,3}|[a-z]|[ivx]{1,4})[.)]|\[\d{1,3}\])\s+(?=\S)")
CAPTION = re.compile(
    r"(?:fig(?:ure|\.)?|tab(?:le|\.)|listing|algorithm|abb(?:ildung|\.))\s*\d", re.I
)
_ENDS = re.compile(r"[.!?:;。！？؟।]['\"”’»)\]⁰-⁹¹²³*∗†‡]*$")

_SAME_SIZE = 0.08
_INDENT = 0.7
"""Font sizes."""
_LOOSE = 1.45
"""Line distances, as parts of the usual one, from which a paragraph ends."""
_LOW = 0.6
"""Share of the page below which a column may end that is full."""
_SHORT = 20
"""Characters up to which a line is a label, however narrow its column is."""
_LOOK_BACK = 20
"""Items between the halves of a paragraph at most: figures, captions, notes."""


@dataclass(slots=True, kw_only=True)
class Paragraph:
    """Some rows that belong together."""

    lines: list[str]
    spaced: list[bool]
    size: float
    bold: bool
    mono: bool
    page: int
    x0: float
    marker: str = ""
    """`•` for bullets, `1` for numbers."""
    prose: bool = False
    """Whether a line of it is as long as the column allows, unlike labels and addresses."""
    open: bool = False
    """Whether it stops in mid-sentence at the end of a full line."""
    bottom: float = 0.0
    """Where its last line stands on the page, in points."""
    low: bool = False
    """Whether that is near the end of its column."""
    last_page: int = 0
    aside: bool = False
    """Not part of the running text: a caption, a stamp in the margin, a field of a form."""

    def starts_low(self) -> bool:
        return self.lines[0][:1].islower()


@dataclass(slots=True, kw_only=True)
class Table:
    grid: Grid
    page: int
    goes_on: bool = False
    """Whether nothing stands between it and the table on the page before."""


Item: TypeAlias = Paragraph | Table


@dataclass(slots=True)
class _Row:
    text: str
    x0: float
    x1: float
    middle: float
    height: float
    size: float
    bold: bool
    mono: bool
    spaced: bool
    aside: bool

    @classmethod
    def of(cls, row: Row, left: float) -> _Row:
        mono = all(line.mono for line in row) and not _DOT.match(row[0].text)
        letters = max(row, key=lambda line: len(line.text))
        return cls(
            text=_code_line(row, left) if mono else _text_line(row),
            x0=min(line.x0 for line in row),
            x1=max(line.x1 for line in row),
            middle=letters.middle,
            height=letters.height,
            size=letters.size,
            bold=all(line.bold for line in row),
            mono=mono,
            spaced=row[-1].spaced,
            aside=row[0].aside,
        )

    @property
    def glyph(self) -> float:
        """Width of a character on average."""
        return (self.x1 - self.x0) / max(len(self.text), 1)


@dataclass(slots=True)
class Flow:
    """The items of a document in reading order, while its columns are being added."""

    body: float
    """Font size of its text."""
    items: list[Item] = field(default_factory=list)

    def add(self, column: Column, page: int, *, height: float) -> None:
        """Adds what stands in a column, below or beside all that was added before."""
        sizes: set[float] = set()
        low = height * _LOW
        for item in _items(column, page):
            if isinstance(item, Table):
                last = self.items[-1] if self.items else None
                item.goes_on = isinstance(last, Table)
                self.items.append(item)
                continue
            item.low = item.bottom > low
            if not self._goes_on(item, first=item.size not in sizes):
                self.items.append(item)
            if item.prose:
                sizes.add(item.size)

    def add_fields(self, fields: Sequence[str], page: int) -> None:
        """What is filled in on a form, one item a field."""
        for text in fields:
            self.items.append(
                Paragraph(
                    lines=[text],
                    spaced=[False],
                    size=0.0,
                    bold=False,
                    mono=False,
                    page=page,
                    last_page=page,
                    x0=0.0,
                    aside=True,
                )
            )

    def _goes_on(self, paragraph: Paragraph, *, first: bool) -> bool:
        """Appends it to the paragraph that it goes on from, if there is one.

        That is the nearest prose of its size, over figures, captions and notes, if it stopped in
        mid-sentence. Then one that starts with a small letter goes on from there, and so does the
        first prose of a column that starts otherwise, if the other stood at the foot of one.
        """
        if paragraph.mono or paragraph.bold or paragraph.marker or paragraph.aside:
            return False
        if paragraph.size > self.body * (1 + _SAME_SIZE):
            return False
        for item in reversed(self.items[-_LOOK_BACK:]):
            if isinstance(item, Table) or item.aside or item.mono or item.bold:
                continue
            if abs(item.size - paragraph.size) > _SAME_SIZE * item.size:
                continue
            if not item.prose and not _ENDS.search(item.lines[-1]):
                continue
            runs_on = first and paragraph.prose and item.low
            if not item.open or not (paragraph.starts_low() or runs_on):
                return False
            item.lines.extend(paragraph.lines)
            item.spaced.extend(paragraph.spaced)
            item.last_page, item.open = paragraph.last_page, paragraph.open
            item.low = paragraph.low
            return True
        return False


def _items(column: Column, page: int) -> Iterator[Item]:
    waiting: list[Row] = []
    for row in column:
        if row[0].table is None:
            waiting.append(row)
            continue
        yield from _paragraphs(waiting, page)
        waiting = []
        yield Table(grid=row[0].table, page=page)
    yield from _paragraphs(waiting, page)


def _paragraphs(column: Sequence[Row], page: int) -> Iterator[Paragraph]:
    if not column:
        return
    left = min(line.x0 for row in column for line in row)
    rows = [_Row.of(row, left) for row in column]
    for group in _groups(rows):
        if group[0].mono and len(group) > 1:
            yield _code(group, page)
            continue
        right = max(row.x1 for row in group)
        edge = right if len(group) > 2 else max(row.x1 for row in rows)
        current = [group[0]]
        for row in group[1:]:
            if _starts(current, row, right):
                yield _paragraph(current, page, edge)
                current = [row]
            else:
                current.append(row)
        yield _paragraph(current, page, edge)


def _groups(rows: Sequence[_Row]) -> Iterator[list[_Row]]:
    """Rows of one style, without a larger gap between them."""
    distances = [
        below.middle - above.middle
        for above, below in pairwise(rows)
        if _alike(above, below) and 0 < below.middle - above.middle < 3 * above.size
    ]
    regular = len(distances) > 1 and max(distances) < 1.2 * min(distances)
    usual = median(distances) if regular or len(distances) > 2 else 0.0
    group: list[_Row] = []
    for row in rows:
        if group and (not _alike(group[-1], row) or _apart(group[-1], row, usual)):
            yield group
            group = []
        group.append(row)
    if group:
        yield group


def _alike(above: _Row, below: _Row) -> bool:
    if above.mono != below.mono:
        return False
    return abs(above.size - below.size) <= _SAME_SIZE * max(above.size, below.size)


def _apart(above: _Row, below: _Row, usual: float) -> bool:
    distance = below.middle - above.middle
    if above.mono:
        return distance > 3 * above.size
    expected = max(min(usual, 2 * above.size), 1.15 * above.size)
    return distance > _LOOSE * expected


def _starts(paragraph: Sequence[_Row], row: _Row, right: float) -> bool:
    """Whether this row starts a new paragraph, below rows of its style at the usual distance."""
    above, first = paragraph[-1], paragraph[0]
    full, ended = _full(above, row, right), _ENDS.search(above.text) is not None
    if BULLET.match(row.text) or _LEADER in above.text:
        return True
    if _NUMBER.match(row.text) and (not full or ended or abs(row.x0 - above.x0) > 1):
        return True
    if above.bold != row.bold and not (above.bold and full):
        return True
    if not full and (ended or not row.text[:1].islower()):
        return True
    indent = _INDENT * row.size
    if _marker(first.text):
        return len(paragraph) > 1 and row.x0 < above.x0 - indent
    if row.x0 > above.x0 + indent:
        return ended or not full
    return len(paragraph) > 1 and row.x0 < above.x0 - indent and above.x0 > first.x0 - indent


def _full(above: _Row, below: _Row, right: float) -> bool:
    """Whether the line above ended because the next word had no room on it."""
    word = below.text.split(maxsplit=1)[0] if below.text.strip() else ""
    wide = len(word) if below.text[:1].isascii() else min(len(word), 2)
    return above.x1 + (wide + 1) * below.glyph > right - 0.02 * (right - above.x0)


def _paragraph(rows: Sequence[_Row], page: int, right: float) -> Paragraph:
    last = rows[-1]
    text = " ".join(row.text for row in rows[:2])
    return Paragraph(
        lines=[row.text.strip() for row in rows],
        spaced=[row.spaced for row in rows],
        size=rows[0].size,
        bold=all(row.bold for row in rows),
        mono=False,
        page=page,
        last_page=page,
        x0=rows[0].x0,
        marker=_marker(rows[0].text),
        prose=any(_reaches(row, right) for row in rows),
        open=_reaches(last, right) and _ENDS.search(last.text) is None,
        bottom=last.middle,
        aside=rows[0].aside or last.mono or _LEADER in text or CAPTION.match(text) is not None,
    )


def _reaches(row: _Row, right: float) -> bool:
    return len(row.text) > _SHORT and row.x1 >= right - 8 * row.glyph


def _marker(text: str) -> str:
    return "•" if BULLET.match(text) else "1" if _NUMBER.match(text) else ""


def _code(rows: Sequence[_Row], page: int) -> Paragraph:
    lines = [rows[0].text]
    for above, row in pairwise(rows):
        if row.middle - above.middle > 1.7 * row.size:
            lines.append("")
        lines.append(row.text)
    return Paragraph(
        lines=lines,
        spaced=[False] * len(lines),
        size=rows[0].size,
        bold=False,
        mono=True,
        page=page,
        last_page=page,
        x0=rows[0].x0,
    )


def _text_line(row: Row) -> str:
    text = " ".join(line.text.strip() for line in row)
    return _LEADERS.sub(_LEADER, text).strip() if "..." in text or ". ." in text else text


def _code_line(row: Row, left: float) -> str:
    """A line of code with its indent and inner distances as blanks."""
    text = ""
    glyph = max((line.x1 - line.x0) / max(len(line.text), 1) for line in row) or 1.0
    for line in row:
        column = round((line.x0 - left) / glyph)
        text = text.ljust(column) if len(text) < column else f"{text} " if text else text
        text += line.text.rstrip()
    return text
