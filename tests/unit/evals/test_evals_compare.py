"""Comparing two runs by case: what flipped, how sure one can be, and whether the set can tell."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from evals.compare import FEWEST_FLIPS, compare, difference, interval, sign_test, verdict
from evals.measuring.results import CaseResult
from tests.unit.evals.evals_world import case


def results(passes, **measures):
    return [
        CaseResult(
            case=case(f"c{number}"),
            passed=passed,
            measures={name: values[number] for name, values in measures.items()},
        )
        for number, passed in enumerate(passes)
    ]


def test_flips_are_named_in_both_directions():
    found = compare(("a", results([1, 1, 0, 0])), ("b", results([1, 0, 1, 0])))
    assert (found.gained, found.lost, found.cases) == (("c2",), ("c1",), 4)


def test_only_cases_that_both_runs_have_and_neither_holds_outdated_are_compared():
    first, second = results([0, 0, 0]), results([1, 1, 1])
    second[1] = replace(second[1], outdated=True)
    found = compare(("a", first), ("b", second[1:]))
    assert (found.cases, found.gained) == (1, ("c2",))


def test_a_difference_has_its_means_its_direction_by_case_and_its_interval():
    found = difference([(0.0, 1.0), (0.5, 1.0), (1.0, 0.5), (1.0, 1.0)])
    assert (found.first, found.second) == (0.625, 0.875)
    assert (found.better, found.worse) == (2, 1)
    assert found.low <= 0.25 <= found.high


def test_the_interval_is_that_of_the_normal_for_many_cases():
    change = np.random.default_rng(3).normal(0.1, 0.5, 400)
    low, high = interval(change)
    half = 1.96 * change.std() / 20
    assert low == pytest.approx(change.mean() - half, abs=0.01)
    assert high == pytest.approx(change.mean() + half, abs=0.01)
    assert (low, high) == interval(change)


def test_where_every_case_changes_alike_there_is_no_interval():
    assert interval(np.array([0.5, 0.5, 0.5])) == (0.5, 0.5)
    assert interval(np.array([0.25])) == (0.25, 0.25)


@pytest.mark.parametrize(
    ("better", "worse", "p"),
    [(0, 0, 1.0), (5, 0, 2 / 2**5), (6, 0, 2 / 2**6), (3, 1, 10 / 16), (1, 3, 10 / 16)],
)
def test_the_sign_test_by_hand(better, worse, p):
    assert sign_test(better, worse) == pytest.approx(p)


def test_fewer_flips_than_the_fewest_can_never_tell():
    assert sign_test(FEWEST_FLIPS, 0) < 0.05 <= sign_test(FEWEST_FLIPS - 1, 0)


def pairs(gained, lost, same):
    return [(0.0, 1.0)] * gained + [(1.0, 0.0)] * lost + [(1.0, 1.0)] * same


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ((9, 1, 20), "b is better: 9 of 30 cases gained and 1 lost"),
        ((0, 6, 20), "b is worse: 0 of 26 cases gained and 6 lost"),
        ((3, 1, 32), "This set cannot tell: 3 of 36 cases gained and 1 lost"),
        ((0, 0, 8), "None of the 8 cases changed sides"),
        ((2, 2, 4), "here there is none"),
        ((0, 0, 0), "share no case"),
    ],
)
def test_a_sentence_says_whether_the_set_can_tell(changed, told):
    assert told in verdict("b", pairs(*changed))


def test_the_sentence_says_how_many_cases_would_be_needed():
    # 3 up and 1 down of 36: mean 1/18, sd about 0.33, so (2.8 * 0.33 * 18)^2 cases.
    change = np.array([1, 1, 1, -1] + [0] * 32)
    needed = int(np.ceil((2.8 * change.std() * 18) ** 2))
    assert f"about {needed} cases" in verdict("b", pairs(3, 1, 32))


def test_every_figure_that_both_runs_have_is_compared():
    first = results([1, 1], RR=[0.5, 0.5], old=[1, 1])
    second = results([1, 1], RR=[1.0, 0.5], new=[1, 1])
    found = compare(("a", first), ("b", second)).differences
    assert found.keys() == {"pass", "RR"} and found["RR"].second == 0.75


def test_times_and_tokens_are_compared_beside_quality_without_cases_that_failed():
    first = [replace(each, search_ms=10.0, prompt_tokens=100) for each in results([1, 1])]
    second = [replace(each, search_ms=30.0, prompt_tokens=100) for each in results([1, 1])]
    second[1] = replace(second[1], error="late", search_ms=0.0)
    found = compare(("a", first), ("b", second)).differences
    assert (found["search_ms"].cases, found["search_ms"].second) == (1, 30.0)
    assert found["prompt_tokens"].better == 0 and "completion_tokens" not in found
