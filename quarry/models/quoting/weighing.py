"""How well evidence speaks of what a question asks: its words, weighed by how telling they are.

A word weighs more the fewer sources have it (inverse document frequency among the evidence), so
that what all sources are about decides nothing, and a word that none has weighs most. A word counts
in full where it stands, and in part where another stands that means the same.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from quarry.models.quoting.asked import Part
from quarry.models.quoting.reading import Source, Unit, Words
from quarry.models.quoting.senses import Senses, WordSenses

_STATED = 0.5
"""Weight of all statements together, against 1 for the ask: "I used my tent. Can I return it?"."""
_IDENTIFIER = 3.0
"""A rare identifier weighs as much as so many words that no source has."""
_FEW = 2
"""A section is about a code if its header names it and at most so many headers do."""
_HEADER = 0.7
_AROUND = 0.5
"""What a word counts for a sentence if it stands in the header, or in a sentence beside it."""
_MENTION = 0.8


@dataclass(frozen=True, slots=True)
class Weighed:
    """One part of a question against all sources."""

    part: Part
    sources: Sequence[Source]
    words: Mapping[str, float]
    """Weight of each content word of the ask."""
    codes: Mapping[str, float]
    """Weight of each identifier; words and codes sum to 1."""
    stated: Mapping[str, float]
    """Weight of each word of the statements; they sum to `_STATED`."""
    senses: Senses
    about: tuple[Source, ...]
    """Sources whose header names a code of the question, as few others do."""

    def support(self, source: Source) -> float:
        """From 0 to 1: how much of the ask a source speaks of; 0 if it lacks an identifier."""
        if not source.words.identifiers.issuperset(self.codes):
            return 0.0
        return sum(self.codes.values()) + self._sum(self.words, source.words)

    def known(self) -> float:
        """From 0 to 1: how much of ask and statements any source speaks of."""
        everything = {**self.stated, **self.words}
        held = sum(
            weight * max((self._held(word, s.words) for s in self.sources), default=0.0)
            for word, weight in everything.items()
        )
        held += sum(
            weight
            for code, weight in self.codes.items()
            if any(code in source.words.identifiers for source in self.sources)
        )
        return held / (sum(everything.values()) + sum(self.codes.values()) or 1.0)

    def situation(self, source: Source) -> float:
        """How much a source speaks of the statements, from 0 to `_STATED`."""
        return self._sum(self.stated, source.words)

    def coverage(self, unit: Unit) -> float:
        """How much of the ask a sentence speaks of, its header and neighbours counted in part."""
        source = self.sources[unit.source]
        return sum(
            weight
            * max(
                self._held(word, unit.words),
                _HEADER * self._held(word, source.header),
                _AROUND * self._held(word, source.words),
            )
            for word, weight in self.words.items()
        )

    def own(self, unit: Unit) -> float:
        """The part, from 0 to 1, of the ask's words that the sentence itself has."""
        return self._sum(self.words, unit.words) / (sum(self.words.values()) or 1.0)

    def adds(self, unit: Unit, chosen: Sequence[Unit]) -> float:
        """Weight of the ask's words that this sentence has and the chosen ones have not."""
        return sum(
            weight
            * max(
                0.0,
                self._held(word, unit.words) - max(self._held(word, u.words) for u in chosen),
            )
            for word, weight in self.words.items()
        )

    def named(self, unit: Unit) -> float:
        """1 for a sentence about the code asked for, a little less for one that mentions it."""
        if self.sources[unit.source] in self.about:
            return 1.0
        if not unit.words.identifiers.intersection(self.codes):
            return 0.0
        return 1.0 if unit.is_row else _MENTION

    def opposed(self, source: Source) -> bool:
        """The source speaks of unused things where the question speaks of used ones, or back."""
        said = source.words.written
        asked = {**self.part.words, **self.part.stated}.values()
        return any(word not in said and _opposite(word) in said for word in asked)

    def _sum(self, weights: Mapping[str, float], words: Words) -> float:
        return sum(weight * self._held(token, words) for token, weight in weights.items())

    def _held(self, token: str, words: Words) -> float:
        if token in words.tokens:
            return 1.0
        senses = self.senses.get(token, {})
        return max((value for other, value in senses.items() if other in words.written), default=0)


def weigh(part: Part, sources: Sequence[Source], senses: WordSenses) -> Weighed:
    raw = {
        token: _rarity(sum(token in s.words.tokens for s in sources), sources)
        for token in {**part.words, **part.stated}
    }
    unseen = _rarity(0, sources)
    codes = {}
    for code in part.identifiers:
        # What most headers name, such as the product that all pages are about, tells little.
        share = sum(code in s.header.identifiers for s in sources) / (len(sources) + 1)
        codes[code] = _IDENTIFIER * unseen * (1 - share)
    ask = sum(raw[token] for token in part.words) + sum(codes.values()) or 1.0
    stated = sum(raw[token] for token in part.stated) or 1.0
    about = [s for s in sources if s.header.identifiers.intersection(part.identifiers)]
    return Weighed(
        part=part,
        sources=sources,
        words={token: raw[token] / ask for token in part.words},
        codes={code: weight / ask for code, weight in codes.items()},
        stated={token: raw[token] / stated * _STATED for token in part.stated},
        senses=_senses(part, sources, senses),
        about=tuple(about) if len(about) <= _FEW else (),
    )


def _rarity(having: int, sources: Sequence[Source]) -> float:
    return math.log((len(sources) + 1) / (having + 0.5))


def _senses(part: Part, sources: Sequence[Source], senses: WordSenses) -> Senses:
    """By analysed token. Words of the sources' texts only: headers do not show what is a name."""
    asked = {**part.words, **part.stated}
    said = (word for source in sources for unit in source.units for word in unit.words.written)
    names = frozenset().union(*(source.names for source in sources))
    found = senses.of(frozenset(asked.values()) - part.names, said, names)
    return {token: found.get(word, {}) for token, word in asked.items()}


def _opposite(word: str) -> str:
    return word[2:] if word.startswith("un") else f"un{word}"
