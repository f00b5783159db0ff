"""What late interaction keeps of passages: the same scores, within its memory, under threads."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from quarry.models.fakes import FakeEmbedder
from quarry.models.late_interaction import LateInteractionReranker
from quarry.records import Vectors

PASSAGES = [f"the tent number {number} has a broken zipper" for number in range(40)]


class Counting(FakeEmbedder):
    def __init__(self) -> None:
        super().__init__(64)
        self.encoded: list[str] = []

    def token_embeddings(self, texts: Sequence[str], *, question: bool = False) -> list[Vectors]:
        if not question:
            self.encoded += texts
        return super().token_embeddings(texts, question=question)


def test_a_passage_that_comes_again_is_not_encoded_again_and_scores_the_same() -> None:
    embedder = Counting()
    reranker = LateInteractionReranker(embedder, cache_mb=1)
    first = reranker.score("tent zipper", PASSAGES)
    again = reranker.score("tent zipper", [*reversed(PASSAGES), "a new one", PASSAGES[0]])
    assert sorted(embedder.encoded) == sorted([*PASSAGES, "a new one"])
    assert again[: len(first)] == first[::-1]
    assert again[-1] == first[0]
    assert LateInteractionReranker(embedder, cache_mb=0).score("tent zipper", PASSAGES) == first


def test_no_memory_keeps_nothing() -> None:
    embedder = Counting()
    reranker = LateInteractionReranker(embedder, cache_mb=0)
    for _ in range(2):
        reranker.score("tent", PASSAGES)
    assert len(embedder.encoded) == 2 * len(PASSAGES)


def test_the_latest_used_are_kept_within_the_memory() -> None:
    embedder = Counting()
    reranker = LateInteractionReranker(embedder, cache_mb=1)
    long = [f"{number} " + "tent " * 500 for number in range(64)]  # 32 kB each: twice the memory
    reranker.score("tent", long)
    embedder.encoded.clear()
    reranker.score("tent", long[-10:])
    assert embedder.encoded == []
    reranker.score("tent", long[:1])
    assert embedder.encoded == long[:1]


def test_a_passage_larger_than_the_memory_is_scored() -> None:
    embedder = FakeEmbedder(2048, max_tokens=600)
    (score,) = LateInteractionReranker(embedder, cache_mb=1).score("tent", ["tent " * 500])
    assert score == pytest.approx(1, abs=1e-3)


def test_an_empty_passage_is_kept_too() -> None:
    class Empty(Counting):
        def token_embeddings(
            self, texts: Sequence[str], *, question: bool = False
        ) -> list[Vectors]:
            found = super().token_embeddings(texts, question=question)
            none = np.empty((0, 64), np.float32)
            return [each if text else none for text, each in zip(texts, found, strict=True)]

    reranker = LateInteractionReranker(Empty(), cache_mb=1)
    assert reranker.score("tent", ["", ""]) == [-1.0, -1.0]


def test_threads_share_what_is_kept() -> None:
    reranker = LateInteractionReranker(Counting(), cache_mb=1)
    expected = LateInteractionReranker(Counting(), cache_mb=0).score("zipper", PASSAGES)
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: reranker.score("zipper", PASSAGES), range(32)))
    assert all(each == expected for each in found)
