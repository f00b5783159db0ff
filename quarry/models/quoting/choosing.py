"""Chooses the sentences that answer a question, or none.

The figures were chosen on the example corpora and on the same questions with their evidence taken
away; each stands in the middle of a range in which the outcome is the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set

import regex

from quarry.models.quoting.asked import Part, parts
from quarry.models.quoting.reading import Source, Unit, read
from quarry.models.quoting.senses import WordSenses
from quarry.models.quoting.weighing import Weighed, weigh
from quarry.ports import Embedder
from quarry.records import Evidence
from quarry.text import embedded_text
from quarry.text.marks import without_marks_of_its_own

LEAST_SUPPORT = 0.6
"""Part of the ask that one source must speak of, else the part is not answered."""
LEAST_SUPPORT_WITH_CODE = 0.4
LEAST_KNOWN = 0.5
"""Part of ask and statements that the sources together must speak of."""
_RIVAL = 0.3
"""Sources with less than this share of the best support are left out."""
_NEARNESS = 3.0
"""What the embedder's cosine of question and sentence weighs against the words (at most 1)."""
_TRUST = 2.0
"""The fewer words the ask has, the less their coverage counts: two may meet by chance."""
_NEAR = 0.65
"""Sentences below this share of the best cosine …"""
_FAR_COST = 1.0
"""… lose this much: they share words with the question by chance."""
_OPPOSED_COST = 0.5
_TITLE_COST = 0.5
_SAME_DOCUMENT = 0.5
"""For a later part of a question: the document that answered an earlier one."""
_CLOSE = 0.7
"""A second sentence of the same source is quoted from this share of the first one's score on …"""
_NEWS = 0.15
"""… and one of any source if it has so much of the ask that the first has not …"""
_AS_NEAR = 0.8
"""… and, in another source, this share of its cosine: else it only shares words with the ask."""
_SAID = 0.25
"""A sentence with less of the ask's own words does not answer more than what a code is."""
_QUOTES_A_PART = 2
_QUOTES = 4
_REFERS_BACK = regex.compile(
    r"(?:it|this|that|they|these|those|such|he|she|there|then)\b"
    r"|[^.!?]{0,60}\b(?:these|those)\b",
    regex.IGNORECASE,
)


class Chooser:
    """Needs no embedder; with one it knows words that mean the same, and nearness in meaning."""

    def __init__(self, embedder: Embedder | None) -> None:
        self._embedder = embedder
        self._senses = WordSenses(embedder)

    def quotes(self, question: str, evidence: Sequence[Evidence]) -> list[str]:
        """One to four verbatim quotes, each followed by its citation; none if nothing answers."""
        sources = read(evidence)
        chosen: list[Unit] = []
        for part in parts(question):
            weighed = weigh(part, sources, self._senses)
            before = {sources[unit.source].evidence.document.doc_id for unit in chosen}
            chosen += [unit for unit in self._choose(weighed, before) if unit not in chosen]
        return [_quote(sources[unit.source], unit, chosen) for unit in chosen[:_QUOTES]]

    def _choose(self, weighed: Weighed, before: Set[str]) -> list[Unit]:
        """The best sentence for one part, and one more if it adds to it."""
        near = self._nearness(weighed, _candidates(weighed))
        scores = _scores(weighed, near, before)
        order = sorted(scores, key=lambda unit: -scores[unit])
        if not order:
            return []
        best = weighed.sources[order[0].source]
        chosen = [order[0]]
        if weighed.about and (best in weighed.about or weighed.own(order[0]) < _SAID):
            # What a code is: the section that is named for it begins with that.
            chosen = [weighed.about[0].units[0]]
        for unit in order:
            close = scores[unit] >= _CLOSE * scores[order[0]] and not order[0].is_row
            beside = unit.source == chosen[0].source
            on_topic = beside or near[unit] >= _AS_NEAR * near.get(chosen[0], 0.0)
            has_news = on_topic and weighed.adds(unit, chosen) >= _NEWS
            if unit not in chosen and ((close and beside) or has_news):
                chosen.append(unit)
            if len(chosen) == _QUOTES_A_PART:
                break
        return chosen

    def _nearness(self, weighed: Weighed, units: Sequence[Unit]) -> dict[Unit, float]:
        """Cosine of question and sentence, alone and under its header, mean of both."""
        if self._embedder is None or not units:
            return dict.fromkeys(units, 0.0)
        headers = [weighed.sources[unit.source].evidence.chunk.header for unit in units]
        headed = [embedded_text(h, unit.text) for h, unit in zip(headers, units, strict=True)]
        vectors = self._embedder.embed_documents([*(unit.text for unit in units), *headed])
        cosines = vectors @ self._embedder.embed_question(weighed.part.text)
        means = (cosines[: len(units)] + cosines[len(units) :]) / 2
        return {unit: float(mean) for unit, mean in zip(units, means, strict=True)}


def _scores(weighed: Weighed, near: Mapping[Unit, float], before: Set[str]) -> dict[Unit, float]:
    least = _NEAR * max(near.values(), default=0.0)
    asked = len(weighed.words)
    scores = {}
    for unit, cosine in near.items():
        source = weighed.sources[unit.source]
        follows = not weighed.codes and source.evidence.document.doc_id in before
        scores[unit] = (
            weighed.coverage(unit) * asked / (asked + _TRUST)
            + weighed.named(unit)
            + weighed.situation(source)
            + _NEARNESS * cosine
            + _SAME_DOCUMENT * follows
            - _FAR_COST * (cosine < least)
            - _OPPOSED_COST * weighed.opposed(source)
            - _TITLE_COST * unit.is_title
        )
    return scores


def _candidates(weighed: Weighed) -> list[Unit]:
    """Sentences of the sources that speak of the ask; none if no source does."""
    support = [weighed.support(source) for source in weighed.sources]
    best = max(support, default=0.0)
    least = LEAST_SUPPORT_WITH_CODE if weighed.codes else LEAST_SUPPORT
    if best < least or weighed.known() < LEAST_KNOWN:
        return []
    return [
        unit
        for source, held in zip(weighed.sources, support, strict=True)
        for unit in source.units
        if held >= _RIVAL * best and _speaks_of_codes(weighed.part, source, unit)
    ]


def _speaks_of_codes(part: Part, source: Source, unit: Unit) -> bool:
    """Where the header does not name the code asked for, the sentence itself must."""
    return (source.header.identifiers | unit.words.identifiers).issuperset(part.identifiers)


def _quote(source: Source, unit: Unit, chosen: Sequence[Unit]) -> str:
    """The sentence, with the one before it if it speaks of that."""
    start = unit.start
    before = source.units[unit.position - 1] if unit.position else None
    if before and before not in chosen and _REFERS_BACK.match(unit.text):
        start = before.start
    quoted = without_marks_of_its_own(source.evidence.text[start : unit.end])
    return f"{quoted} [{source.evidence.label}]"
