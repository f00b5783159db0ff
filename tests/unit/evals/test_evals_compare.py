"""Comparing two runs by case: what flipped, how sure one can be, and whether the set can tell."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from evals.compare import compare, difference, verdict
from evals.measuring.results import CaseResult
from evals.measuring.significance import (
    FEWEST_FLIPS,
    FEWEST_PAIRS,
    LEVEL,
    POWER,
    cases_needed,
    detectable,
    interval,
    power,
    sign_test,
)
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
    assert (found.cases, found.gained, found.compared) == (1, ("c2",), ("c2",))
    assert found.outdated == ()


def test_a_case_that_passed_and_is_outdated_now_is_named():
    second = [replace(each, outdated=True) for each in results([0, 0])]
    found = compare(("a", results([1, 0])), ("b", second))
    assert (found.outdated, found.lost, found.cases) == (("c0",), (), 0)


def test_a_difference_has_its_means_its_direction_by_case_and_its_interval():
    found = difference([(0.0, 1.0), (0.5, 1.0), (1.0, 0.5), (1.0, 1.0)] * 3)
    assert (found.first, found.second) == (0.625, 0.875)
    assert (found.better, found.worse) == (6, 3)
    assert found.low <= 0.25 <= found.high and found.low < found.high


def test_a_rounding_error_is_no_difference():
    found = difference([(0.6309297535714575, 0.6309297535714574)] * 20)
    assert (found.better, found.worse, found.p, found.low, found.high) == (0, 0, 1.0, 0.0, 0.0)


def test_the_interval_is_that_of_the_normal_for_many_cases():
    change = np.random.default_rng(3).normal(0.1, 0.5, 400)
    low, high = interval(change)
    half = 1.96 * change.std() / 20
    assert low == pytest.approx(change.mean() - half, abs=0.01)
    assert high == pytest.approx(change.mean() + half, abs=0.01)
    assert (low, high) == interval(change)


@pytest.mark.parametrize("pairs", [1, 3, FEWEST_PAIRS - 1])
def test_too_few_cases_have_no_interval_and_that_is_said(pairs):
    found = difference([(0.0, 1.0)] * pairs)
    assert (found.low, found.high, found.tells) == (None, None, False)
    assert found.span() == f"none below {FEWEST_PAIRS} cases"
    assert difference([(0.0, 1.0)] * FEWEST_PAIRS).tells


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


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ((5, 0, 5), "shows a difference of 60 points in the pass rate or more; for this one"),
        ((2, 0, 198), "shows a difference of 3 points in the pass rate or more; for this one"),
        ((0, 3, 0), "3 cases are too few to show any difference; for this one about 6 cases"),
        ((2, 2, 4), "too few to show any difference while 2 change the other way"),
        ((3, 1, 32), "19.4 points in the pass rate or more while 1 change the other way"),
        ((0, 0, 3), "so few can show no difference, for which at least 6 must"),
        ((5001, 4999, 0), "more than 1000000 cases"),
    ],
)
def test_the_sentence_says_what_the_set_can_show_and_never_contradicts_itself(changed, told):
    assert told in verdict("b", pairs(*changed))


@pytest.mark.parametrize("total", [5, 6, 10, 60])
@pytest.mark.parametrize("against", [0, 1, 4])
def test_what_can_be_shown_is_the_least_that_the_sign_test_tells(total, against):
    net = detectable(total, against)
    if net is None:
        most = total - against
        assert most <= against or sign_test(most, against) >= LEVEL
    else:
        assert sign_test(net + against, against) < LEVEL <= sign_test(net + against - 1, against)


def test_the_power_is_that_of_the_sign_test_tried_out():
    rng = np.random.default_rng(5)
    ups, downs, _ = rng.multinomial(60, [0.2, 0.05, 0.75], size=4000).T
    told = np.mean([sign_test(int(up), int(downs[n])) < LEVEL for n, up in enumerate(ups)])
    assert power(60, 0.25, 0.8) == pytest.approx(told, abs=0.03)


@pytest.mark.parametrize(("better", "worse", "total"), [(5, 0, 10), (0, 3, 3), (3, 1, 36)])
def test_as_many_cases_as_are_needed_show_the_difference_most_times(better, worse, total):
    rate, share = (better + worse) / total, max(better, worse) / (better + worse)
    found = cases_needed(better, worse, total)
    assert power(found, rate, share) >= POWER > power(found - 1, rate, share)


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
