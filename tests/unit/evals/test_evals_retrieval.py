"""Retrieval figures of cases, against numbers worked out by hand and ir-measures called by hand."""

from __future__ import annotations

import math

import ir_measures
import pytest

from evals.measuring.retrieval import Depths, alike, judged, measure
from tests.unit.evals.evals_world import case, passage

TWO = [["first piece"], ["second piece", "other words"]]


def at(depth, the_case, *texts):
    passages = [passage(text, f"d{n}") for n, text in enumerate(texts)]
    values = measure({"q": judged(the_case, passages)}, [depth])["q"]
    return {name.partition("@")[0]: value for name, value in values.items()}


def test_two_of_two_pieces_at_ranks_one_and_four():
    values = at(5, case(evidence=TWO), "the first piece", "x", "x", "the second piece", "x")
    assert values["nDCG"] == pytest.approx(0.877, abs=5e-4)
    assert (values["R"], values["RR"], values["all_evidence"], values["hit"]) == (1, 1, 1, 1)


def test_two_pieces_of_which_one_is_below_the_depth():
    values = at(3, case(evidence=TWO), "x", "OTHER words", "x", "the first piece")
    assert (values["R"], values["RR"], values["all_evidence"], values["hit"]) == (0.5, 0.5, 0, 1)
    ideal = 1 + 1 / math.log2(3)
    assert values["nDCG"] == pytest.approx((1 / math.log2(3)) / ideal)


def test_a_passage_with_both_pieces_is_worth_both():
    values = at(5, case(evidence=TWO), "first piece and second piece", "x")
    assert (values["R"], values["nDCG"], values["all_evidence"]) == (1, 1, 1)
    assert at(1, case(evidence=TWO), "first piece and second piece")["R"] == 1


def test_a_second_copy_of_a_piece_gains_nothing():
    values = at(5, case(evidence=TWO), "first piece", "first piece", "second piece")
    worked = (1 + 1 / math.log2(4)) / (1 + 1 / math.log2(3))
    assert values["nDCG"] == pytest.approx(worked)


def test_one_of_two_judged_documents_found_first():
    values = at(10, case(relevant={"d0": 1, "other": 1, "d1": 0}), "x", "y")
    assert values["nDCG"] == pytest.approx(0.613, abs=5e-4)
    assert (values["R"], values["all_evidence"], values["RR"]) == (0.5, 0, 1)


def test_a_document_counts_once_at_its_best_passage():
    passages = [passage("a", "x"), passage("b", "x"), passage("c", "right")]
    ranked = judged(case(relevant={"right": 1}), passages)
    assert list(ranked.run) == ["x", "right"] and list(ranked.found) == [2]
    assert measure({"q": ranked}, [3])["q"]["returned@3"] == 1.0


def test_results_that_are_missing_count_as_nothing_and_are_told():
    values = at(10, case(evidence=TWO))
    assert set(values.values()) == {0.0}
    assert at(4, case(evidence=TWO), "x", "y", "z")["returned"] == 0.75


def test_a_case_without_judgements_is_refused():
    with pytest.raises(ValueError, match="nothing is judged"):
        judged(case(evidence=[], must=["x"]), [])


def test_the_depths_are_those_that_are_sent_and_reranked_beside_the_common_ones():
    assert Depths(sent=8, reranked=50).all == (5, 8, 10, 50)
    assert Depths(sent=5, reranked=10).all == (5, 10)


def test_runs_that_are_compared_are_measured_at_the_depths_of_all_of_them():
    few, many = alike([Depths(sent=1, reranked=20), Depths(sent=8, reranked=50)])
    assert few.all == many.all == (1, 5, 8, 10, 20, 50) and few.deepest == 50
    assert (few.sent, many.sent) == (1, 8)


def test_the_figures_are_those_of_ir_measures_called_by_hand_on_the_same_run():
    the_cases = {
        "a": judged(case(evidence=TWO), [passage(t) for t in ("x", "first piece", "other words")]),
        "b": judged(case(evidence=TWO), [passage(t) for t in ("second piece", "x", "x")]),
        "c": judged(case(evidence=TWO), []),
    }
    qrels = {name: dict(each.gains) for name, each in the_cases.items()}
    run = {
        name: {item: 1.0 / rank for rank, item in enumerate(each.run, start=1)}
        for name, each in the_cases.items()
    }
    wanted = [ir_measures.parse_measure(name) for name in ("nDCG@5", "Success@5", "RR")]
    ours = measure(the_cases, [5])
    for metric in ir_measures.iter_calc(wanted, qrels, run):
        name = {"Success@5": "hit@5", "RR": "RR@5"}.get(str(metric.measure), str(metric.measure))
        assert ours[metric.query_id][name] == pytest.approx(metric.value), metric
    assert ours["c"]["nDCG@5"] == 0.0
