"""Retrieval measures against numbers worked out by hand."""

from __future__ import annotations

import math

import pytest

from evals.measuring.metrics import mean, per_question

ONE = {"q": {"a": 1, "b": 1}}


def test_ndcg_of_two_pieces_at_ranks_one_and_four():
    run = {"q": ["a", "x", "y", "b", "z"]}
    worked = (1 + 1 / math.log2(5)) / (1 + 1 / math.log2(3))
    assert worked == pytest.approx(0.877, abs=5e-4)
    assert mean("nDCG@5", ONE, run) == pytest.approx(worked)


def test_ndcg_of_one_of_two_judged_documents_found_first():
    assert mean("nDCG@10", ONE, {"q": ["a", "x"]}) == pytest.approx(0.613, abs=5e-4)


def test_graded_judgements_weigh_in_ndcg():
    qrels = {"q": {"a": 3, "b": 1}}
    ideal = 3 + 1 / math.log2(3)
    worked = (1 + 3 / math.log2(3)) / ideal
    assert mean("nDCG@10", qrels, {"q": ["b", "a"]}) == pytest.approx(worked)


def test_ties_cannot_happen_because_ranks_decide():
    """trec_eval alone would sort equal scores by document id and put "z" first."""
    assert mean("RR@10", {"q": {"a": 1}}, {"q": ["a", "z"]}) == 1.0
    assert mean("RR@10", {"q": {"z": 1}}, {"q": ["a", "z"]}) == 0.5


def test_reciprocal_rank_stops_at_its_cutoff():
    deep = {"q": [f"x{n}" for n in range(10)] + ["a"]}
    assert mean("RR@10", ONE, deep) == 0.0
    assert mean("RR@11", ONE, deep) == pytest.approx(1 / 11)


def test_recall_counts_only_above_its_cutoff_and_over_all_judged():
    run = {"q": ["a", *(f"x{n}" for n in range(99)), "b"]}
    assert mean("R@100", ONE, run) == 0.5
    assert mean("R@101", ONE, run) == 1.0


def test_a_judgement_of_zero_is_not_relevant():
    qrels = {"q": {"a": 0, "b": 1}}
    assert mean("R@10", qrels, {"q": ["a"]}) == 0.0
    assert mean("P@1", qrels, {"q": ["b"]}) == 1.0


def test_questions_without_results_count_as_zero():
    qrels = {"q": {"a": 1}, "failed": {"a": 1}, "empty": {"a": 1}}
    run = {"q": ["a"], "empty": []}
    assert per_question("nDCG@10", qrels, run) == {"q": 1.0, "failed": 0.0, "empty": 0.0}
    assert mean("nDCG@10", qrels, run) == pytest.approx(1 / 3)
    assert mean("nDCG@10", qrels, {}) == 0.0


def test_questions_without_judgements_are_left_out():
    assert per_question("R@10", ONE, {"q": ["a", "b"], "other": ["a"]}) == {"q": 1.0}


def test_a_run_that_repeats_a_document_is_refused():
    with pytest.raises(ValueError, match="twice"):
        mean("R@10", ONE, {"q": ["a", "a"]})


@pytest.mark.parametrize("measure", ["nDCG", "AP@10", "RR@0", "R@-1"])
def test_other_measures_are_refused(measure):
    with pytest.raises(ValueError, match="not one of"):
        mean(measure, ONE, {})
