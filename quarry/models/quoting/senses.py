"""Which single words mean nearly the same, as an embedder sees them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

import numpy as np

from quarry.ports import Embedder
from quarry.records import Vector, Vectors

_ALIKE = ("postage shipping", "father parent", "spectacles glasses", "car vehicle", "buy purchase")
_APART = ("postage glasses", "father shipping", "spectacles car", "vehicle parent", "buy weekday")
_BAR = 0.65
"""Where, between the mean cosines of unlike and like pairs, a word begins to speak for another. On
MiniLM that is 0.60: postage–shipping 0.68 passes, daycare–parent 0.50 and lab–test 0.46 do not."""
_LEAST_GAP = 0.15
"""An embedder that does not tell like pairs from unlike ones is not asked about words."""
_LIFT = 0.2
"""Added to a cosine above the bar, so that a clear synonym counts like the word itself."""
_REMEMBERED = 20_000

Senses = dict[str, dict[str, float]]
"""For each asked word, the other words that speak for it and how well, from 0 to 1."""


class WordSenses:
    """Calibrates itself on the embedder's own scale; without an embedder no word has another."""

    def __init__(self, embedder: Embedder | None) -> None:
        self._embedder = embedder
        self._known: dict[str, Vector] = {}
        self._bar = self._calibrated(embedder) if embedder else None

    def of(self, asked: Collection[str], said: Iterable[str], names: frozenset[str]) -> Senses:
        """Said words for each asked one. A name neither gives nor gets a sense, for Norway does not
        speak for Iceland; an asked word as like a name as like words are is taken for one."""
        words, others = list(asked), sorted(set(said))
        if self._embedder is None or self._bar is None or not words or not others:
            return {}
        cosines = self._vectors(self._embedder, words) @ self._vectors(self._embedder, others).T
        found: Senses = {}
        for word, row in zip(words, cosines, strict=True):
            near = {others[int(i)]: float(row[i]) for i in np.flatnonzero(row >= self._bar)}
            if names.isdisjoint(near.keys() - {word}):
                found[word] = {o: min(1.0, cosine + _LIFT) for o, cosine in near.items()}
        return found

    def _vectors(self, embedder: Embedder, words: Sequence[str]) -> Vectors:
        known = self._known
        unknown = [word for word in dict.fromkeys(words) if word not in known]
        if unknown:
            kept = known if len(known) < _REMEMBERED else {w: known[w] for w in words if w in known}
            new = zip(unknown, embedder.embed_documents(unknown), strict=True)
            # Replaced as a whole: other threads go on with the dictionary that they hold.
            known = self._known = kept | dict(new)
        return np.array([known[word] for word in words], dtype=np.float32)

    def _calibrated(self, embedder: Embedder) -> float | None:
        like, unlike = (_mean_cosine(embedder, pairs) for pairs in (_ALIKE, _APART))
        gap = like - unlike
        return unlike + _BAR * gap if gap >= _LEAST_GAP else None


def _mean_cosine(embedder: Embedder, pairs: Sequence[str]) -> float:
    left, right = zip(*(pair.split() for pair in pairs), strict=True)
    rows = embedder.embed_documents(left) * embedder.embed_documents(right)
    return float(rows.sum(axis=1).mean())
