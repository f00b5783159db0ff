"""Evidence taken apart: each source with its header, its sentences and table rows, their words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import regex

from quarry.records import Evidence
from quarry.text import analyze, embedded_text, identifiers, sentences

_WORD = regex.compile(r"\p{L}[\p{L}\p{M}'’-]*\p{L}")
_ROW = regex.compile(r"[^:;\n]{1,60}: [^;\n]*; ")
_OPENS_SENTENCE = regex.compile(r"(?:^|[:;.!?|\n]\s*|[-*•]\s+)$")
_TITLE_WORDS = 8
"""A line of fewer words without a full stop is a title."""


@dataclass(frozen=True, slots=True)
class Words:
    """What a text says, for comparing: analysed tokens, words as written, identifiers."""

    tokens: frozenset[str]
    written: frozenset[str]
    """Lower case, without stop words."""
    identifiers: frozenset[str]


@dataclass(frozen=True, slots=True)
class Unit:
    """A sentence or table row: what is quoted."""

    source: int
    """Number of its source."""
    position: int
    """Its number in the source."""
    text: str
    start: int
    end: int
    """Where it stands in the text of its evidence."""
    words: Words

    @property
    def is_row(self) -> bool:
        """A table row, each cell with its column's name."""
        return _ROW.match(self.text) is not None

    @property
    def is_title(self) -> bool:
        words = len(self.text.split())
        return words < _TITLE_WORDS and self.text[-1].isalnum() and not self.is_row


@dataclass(frozen=True, slots=True)
class Source:
    evidence: Evidence
    units: tuple[Unit, ...]
    words: Words
    """Of header and text."""
    header: Words
    names: frozenset[str]
    """Words that always have a capital inside a sentence; lower case here."""


def read(evidence: Sequence[Evidence]) -> list[Source]:
    return [_source(number, item) for number, item in enumerate(evidence)]


def _source(number: int, item: Evidence) -> Source:
    header = item.chunk.header
    return Source(
        evidence=item,
        units=tuple(_units(number, item.text)),
        words=_words(embedded_text(header, item.text)),
        header=_words(header),
        names=_names(item.text),
    )


def _units(number: int, text: str) -> Iterator[Unit]:
    for position, (start, end) in enumerate(sentences(text)):
        own = text[start:end]
        yield Unit(number, position, own, start, end, _words(own))


def _words(text: str) -> Words:
    return Words(
        tokens=frozenset(analyze(text)),
        written=frozenset(word.lower() for word in _WORD.findall(text) if analyze(word)),
        identifiers=frozenset(identifiers(text)),
    )


def _names(text: str) -> frozenset[str]:
    capital: set[str] = set()
    small: set[str] = set()
    for match in _WORD.finditer(text):
        word = match.group()
        if word[0].islower():
            small.add(word)
        elif not _OPENS_SENTENCE.search(text[max(0, match.start() - 4) : match.start()]):
            capital.add(word.lower())
    return frozenset(capital - small)
