"""What every Reranker does; an implementation's test inherits this and gives `reranker`."""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor

import pytest

from quarry.ports import Reranker

QUESTION = "Must the tent be dry?"


class RerankerContract:
    @pytest.fixture
    def reranker(self) -> Reranker:
        raise NotImplementedError

    def test_no_passage_gives_no_score(self, reranker: Reranker) -> None:
        assert reranker.score(QUESTION, []) == []

    @pytest.mark.parametrize("count", [1, 100])
    def test_each_passage_gets_one_finite_float(self, reranker: Reranker, count: int) -> None:
        passages = [f"Passage {number} about tents. " * (number % 7) for number in range(count)]
        scores = reranker.score(QUESTION, passages)
        assert len(scores) == count
        assert all(type(score) is float and math.isfinite(score) for score in scores)

    def test_scores_stand_in_the_order_of_the_passages(self, reranker: Reranker) -> None:
        passages = ["Tents are clean and dry.", "Customs duties.", "A stove. " * 40, ""]
        forward = reranker.score(QUESTION, passages)
        backward = reranker.score(QUESTION, passages[::-1])
        assert backward[::-1] == pytest.approx(forward, abs=0.02)

    def test_several_threads_may_score_at_once(self, reranker: Reranker) -> None:
        passages = ["Tents are clean and dry.", "Customs duties.", "A stove. " * 40]
        expected = reranker.score(QUESTION, passages)
        with ThreadPoolExecutor(4) as pool:
            found = list(pool.map(lambda _: reranker.score(QUESTION, passages), range(8)))
        assert all(scores == pytest.approx(expected, abs=0.02) for scores in found)

    def test_it_has_a_name_and_says_whether_its_ranks_are_fused(self, reranker: Reranker) -> None:
        assert reranker.name
        assert isinstance(reranker.fuses, bool)
