"""Exact nearest passages over what one person may read, to hold approximate search against.

Every vector of a live row is read into memory: 1.5 GB a million passages of 384 dimensions.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evals.measuring.corpus import Corpus
from quarry.access.check import Verdict
from quarry.ports import Embedder, VectorStore
from quarry.records import Principal
from quarry.text import clean

_BATCH = 1000
_SAME = 1e-5
"""Scores that differ by less are equal: equal passages have equal vectors, in any order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Near:
    """Exact scores of every permitted passage to one question."""

    scores: Mapping[str, float]
    """By chunk_id."""

    def rank(self, chunk_id: str) -> int | None:
        """1-based rank by exact score, the best of equal ones; None: not permitted or no row."""
        own = self.scores.get(chunk_id)
        if own is None:
            return None
        return 1 + sum(score > own + _SAME for score in self.scores.values())

    def recall(self, found: Collection[str], k: int) -> float:
        """Share of the k nearest that `found` holds, equal scores counting as equal; 1 if nothing
        is permitted."""
        wanted = min(k, len(self.scores))
        if not wanted:
            return 1.0
        least = sorted(self.scores.values(), reverse=True)[wanted - 1] - _SAME
        got = sum(self.scores.get(chunk_id, -np.inf) >= least for chunk_id in found)
        return min(int(got), wanted) / wanted


class ExactSearch:
    """Raises StoreError when the vectors cannot be read."""

    def __init__(self, corpus: Corpus, vectors: VectorStore, embedder: Embedder) -> None:
        self._corpus = corpus
        self._embedder = embedder
        self._chunks = [chunk for _, chunks in corpus.chunks() for chunk in chunks]
        rows = [chunk.row_id for chunk in self._chunks]
        held: dict[str, NDArray[np.float32]] = {}
        for start in range(0, len(rows), _BATCH):
            held |= vectors.fetch(rows[start : start + _BATCH])
        self.missing = [row for row in rows if row not in held]
        """Rows of live revisions that the vector store lacks."""
        self._chunks = [chunk for chunk in self._chunks if chunk.row_id in held]
        self._matrix = _stacked([held[chunk.row_id] for chunk in self._chunks])

    def near(
        self, question: str, principal: Principal, filter: str = "", *, versions: bool = False
    ) -> Near:
        """Scores over the passages that this person may see by this filter."""
        if not self._chunks:
            return Near(scores={})
        vector = self._embedder.embed_question(clean(question))
        admitted = {
            doc_id
            for doc_id, document in self._corpus.documents.items()
            if self._corpus.verdict(document, principal, filter, versions=versions)
            is Verdict.ADMITTED
        }
        scores = self._matrix @ vector
        return Near(
            scores={
                chunk.chunk_id: float(score)
                for chunk, score in zip(self._chunks, scores, strict=True)
                if chunk.doc_id in admitted
            }
        )


def _stacked(vectors: Sequence[NDArray[np.float32]]) -> NDArray[Any]:
    return np.stack(vectors) if vectors else np.zeros((0, 0), dtype=np.float32)
