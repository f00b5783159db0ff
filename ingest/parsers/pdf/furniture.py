"""Page numbers and running heads: read once where they say something, not on every page."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from ingest.parsers.pdf.lines import Line

_MARGIN = 0.12
"""Share of the page's height at its top and bottom where furniture stands."""
_MIN_PAGES = 3
_FIGURES = re.compile(r"\d+")
_PAGE_NUMBER = re.compile(
    r"\W*(?:page|p\.|seite|página|pagina|стр\.?)?\W*(\d{1,4}|[ivxlc]{1,6})(?:\s*(?:of|/|von|de)\s*\d{1,4})?\W*",
    re.I,
)


@dataclass(frozen=True, slots=True)
class _Candidate:
    page: int
    line: Line
    key: tuple[str, int]
    """What it says, figures aside, and roughly where."""


def without_furniture(pages: Sequence[tuple[int, float, list[Line]]]) -> list[list[Line]]:
    """The lines of each page (its number, height, lines) without what repeats in the margins.

    A running head stays where it stands first; page numbers go everywhere.
    """
    candidates = [
        _Candidate(number, line, (_key(line.text), round(line.middle / 12)))
        for number, height, lines in pages
        for line in lines
        if _in_margin(line, height) and not line.table
    ]
    counts = Counter(key for key in {(c.page, c.key): c.key for c in candidates}.values())
    offsets = Counter(
        offset for c in candidates if (offset := _offset(c.line.text, c.page)) is not None
    )
    seen: set[tuple[str, int]] = set()
    dropped: set[int] = set()
    for candidate in candidates:
        offset = _offset(candidate.line.text, candidate.page)
        if offset is not None and (offset == 0 or offsets[offset] > 1):
            dropped.add(id(candidate.line))
        elif counts[candidate.key] >= _MIN_PAGES:
            if candidate.key in seen:
                dropped.add(id(candidate.line))
            seen.add(candidate.key)
    return [[line for line in lines if id(line) not in dropped] for _, _, lines in pages]


def _in_margin(line: Line, height: float) -> bool:
    return line.middle < height * _MARGIN or line.middle > height * (1 - _MARGIN)


def _key(text: str) -> str:
    return _FIGURES.sub("#", " ".join(text.split()).lower())


def _offset(text: str, page: int) -> int | None:
    """How far a page number is from the number of its page; None if the text is none."""
    match = _PAGE_NUMBER.fullmatch(text.strip())
    return int(match[1]) - page if match and match[1].isdecimal() else None
