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
_FIGURES = re.compile(r"\d{1,4}(?!\d)")
_PAGE_NUMBER = re.compile(
    r"\W*(?:page|p\.|seite|página|pagina|стр\.?)?\W*(\d{1,4})(?:\s*(?:of|/|von|de)\s*\d{1,4})?\W*",
    re.I,
)


@dataclass(frozen=True, slots=True)
class _Candidate:
    line: Line
    keys: frozenset[tuple[str, int]]
    """What it says and roughly where; also with each number told by its distance to the page's."""
    offset: int | None
    """How far it is from the number of its page, if it is a page number and nothing else."""


def without_furniture(pages: Sequence[tuple[int, float, list[Line]]]) -> list[list[Line]]:
    """The lines of each page (its number, height, lines) without what repeats in the margins.

    A running head stays where it stands first; page numbers go everywhere.
    """
    candidates = [
        _Candidate(line, _keys(line, number), _offset(line.text, number))
        for number, height, lines in pages
        for line in lines
        if _in_margin(line, height) and not line.table
    ]
    repeats = Counter(key for candidate in candidates for key in candidate.keys)
    numbers = Counter(candidate.offset for candidate in candidates)
    seen: set[tuple[str, int]] = set()
    dropped: set[int] = set()
    for candidate in candidates:
        offset = candidate.offset
        running = {key for key in candidate.keys if repeats[key] >= _MIN_PAGES}
        numbered = offset is not None and (offset == 0 or numbers[offset] > 1)
        if numbered or running & seen:
            dropped.add(id(candidate.line))
        seen |= running
    return [[line for line in lines if id(line) not in dropped] for _, _, lines in pages]


def _in_margin(line: Line, height: float) -> bool:
    return line.middle < height * _MARGIN or line.middle > height * (1 - _MARGIN)


def _keys(line: Line, page: int) -> frozenset[tuple[str, int]]:
    text, place = " ".join(line.text.split()).lower(), round(line.middle / 12)
    told = [
        f"{text[: match.start()]}{int(match[0]) - page:+}{text[match.end() :]}"
        for match in _FIGURES.finditer(text)
    ]
    return frozenset((key, place) for key in (text, *told))


def _offset(text: str, page: int) -> int | None:
    match = _PAGE_NUMBER.fullmatch(text.strip())
    return int(match[1]) - page if match and match[1].isdecimal() else None
