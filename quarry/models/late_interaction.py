"""Reranking by late interaction over the embedder's own token vectors.

MaxSim: each token of the question takes its best cosine with a token of the passage, and the score
is the mean of these. Source: Khattab and Zaharia, "ColBERT: Efficient and Effective Passage Search
via Contextualized Late Interaction over BERT", SIGIR 2020, section 3.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Protocol, TypeAlias, TypeGuard

import numpy as np
from cachetools import LRUCache

from quarry.ids import digest
from quarry.ports import Embedder
from quarry.records import Vectors


class TokenEmbedder(Embedder, Protocol):
    """An embedder that also gives the vectors of single tokens."""

    def token_embeddings(self, texts: Sequence[str], *, question: bool = False) -> list[Vectors]:
        """Unit vectors, shape (tokens, dimension) each; a text without tokens gives no row."""
        ...


def has_token_vectors(embedder: Embedder | None) -> TypeGuard[TokenEmbedder]:
    return hasattr(embedder, "token_embeddings")


Halves: TypeAlias = np.ndarray[tuple[int, ...], np.dtype[np.float16]]


class LateInteractionReranker:
    """Needs no model of its own. Its ranks are fused with the first stage's (`fuses`), because
    MaxSim alone is worse than the first stage: nDCG@10 on Cranfield 0.540 against 0.558.

    Encoding the passages is nearly all of the work, and the same passages come again and again. So
    `cache_mb` MiB of their vectors are kept, the latest used, under a digest of the passage.
    Safe to call from several threads.
    """

    def __init__(self, embedder: TokenEmbedder, *, cache_mb: int) -> None:
        self._embedder = embedder
        self._kept: LRUCache[str, Halves] = LRUCache(cache_mb << 20, getsizeof=_bytes)
        self._guard = threading.Lock()

    @property
    def name(self) -> str:
        return f"late_interaction:{self._embedder.fingerprint.model_id}"

    @property
    def fuses(self) -> bool:
        return True

    def score(self, question: str, passages: Sequence[str]) -> list[float]:
        """From -1 to 1; -1 where question or passage has no token."""
        if not passages:
            return []
        asked = self._embedder.token_embeddings([question], question=True)[0]
        vectors = self._vectors(passages)
        return [_max_sim(asked, told.astype(np.float32)) for told in vectors]

    def _vectors(self, passages: Sequence[str]) -> list[Halves]:
        keys = [digest(passage) for passage in passages]
        with self._guard:
            found = {key: kept for key in keys if (kept := self._kept.get(key)) is not None}
        missing = {key: each for key, each in zip(keys, passages, strict=True) if key not in found}
        if missing:
            told = self._embedder.token_embeddings(list(missing.values()))
            # In the precision of those that are kept, so that they score alike. They are equal to
            # some 0.001: in bfloat16 a vector depends a little on what is encoded beside it.
            fresh = {key: each.astype(np.float16) for key, each in zip(missing, told, strict=True)}
            found |= fresh
            with self._guard:
                for key, halves in fresh.items():
                    if _bytes(halves) <= self._kept.maxsize:
                        self._kept[key] = halves
        return [found[key] for key in keys]


def _bytes(halves: Halves) -> int:
    return max(1, halves.nbytes)


def _max_sim(asked: Vectors, told: Vectors) -> float:
    if not len(asked) or not len(told):
        return -1.0
    return float(np.max(asked @ told.T, axis=1).mean())
