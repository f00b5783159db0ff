"""Tuning: settings are picked on one half of the cases and shown on the other."""

from __future__ import annotations

import asyncio
from contextlib import contextmanager

import pytest

from evals.improving.tune import (
    MOST,
    as_yaml,
    changed_settings,
    grid,
    halves,
    parse_choices,
    rows,
    tune,
)
from evals.running.system import System as Opened
from quarry.errors import UsageError
from quarry.settings import Settings
from tests.unit.evals.evals_world import System, case, search_json

SETTINGS = Settings()
TUNING = [case(f"t{n}", question=f"t{n}") for n in range(4)]
HELD_OUT = [case(f"h{n}", question=f"h{n}", held_out=True) for n in range(4)]


class Index:
    """A system whose ranking depends on rrf_k: evidence is first at 20, fifth otherwise."""

    def __init__(self):
        self.asked = {}

    def __call__(self, settings):
        k = settings.retrieval.rrf_k
        good = search_json("it is this", "x")
        bad = search_json("x", "x", "x", "x", "it is this")
        table = {each.question: good if k == 20 else bad for each in TUNING + HELD_OUT}
        ask = System(search=table)
        self.asked.setdefault(k, []).append(ask)

        @contextmanager
        def opened():
            yield Opened(ask=ask)

        return opened

    def questions(self, k):
        return {body["question"] for ask in self.asked[k] for _, body in ask.asked}


def tuned(measure="nDCG@10", index=None):
    trials = grid(SETTINGS, parse_choices(["retrieval.rrf_k=20,30,60"]))
    return tune(TUNING + HELD_OUT, trials, index or Index(), measure=measure)


def test_the_best_settings_of_the_tuning_half_are_compared_on_the_held_out_half():
    found = tuned()
    assert found.best.changed == {"retrieval.rrf_k": 20} and found.tuning == 4
    assert (found.held_out.first, found.held_out.second) == ("as it is", "retrieval.rrf_k=20")
    difference = found.held_out.differences["nDCG@10"]
    assert difference.cases == 4 and difference.second == 1.0 > difference.first
    assert next(label for label, _ in rows(found)) == "retrieval.rrf_k=20"


def test_only_the_settings_in_force_and_the_winner_ever_see_the_held_out_half():
    index = Index()
    tuned(index=index)
    held_out = {each.question for each in HELD_OUT}
    assert held_out <= index.questions(20) and held_out <= index.questions(60)
    assert held_out.isdisjoint(index.questions(30))


def test_settings_that_nothing_beats_stay():
    trials = grid(SETTINGS, {"retrieval.rrf_k": [30, 60]})
    assert tune(TUNING + HELD_OUT, trials, Index(), measure="R@5").best.changed == {}


@pytest.mark.parametrize("measure", ["nDCG", "search_ms_p50", "prompt_tokens", "R@7"])
def test_a_figure_that_cannot_be_tuned_for_is_an_error_that_names_the_others(measure):
    with pytest.raises(UsageError, match=f"'{measure}'.*nDCG@10.*search_ms"):
        tuned(measure=measure)


def test_of_times_the_lowest_is_the_best():
    class Slow(System):
        async def __call__(self, endpoint, body):
            await asyncio.sleep(0.02)
            return await super().__call__(endpoint, body)

    def opening(settings):
        made = Slow if settings.retrieval.rrf_k == 20 else System

        @contextmanager
        def opened():
            yield Opened(ask=made())

        return opened

    trials = grid(SETTINGS, {"retrieval.rrf_k": [20, 30]})
    found = tune(TUNING + HELD_OUT, trials, opening, measure="search_ms")
    assert found.best.changed != {"retrieval.rrf_k": 20}
    assert [label for label, _ in rows(found)][-1] == "retrieval.rrf_k=20"
    assert found.held_out.differences["search_ms"].cases == 4


@pytest.mark.parametrize("measure", ["R@10", "R@20"])
def test_settings_of_other_depths_are_held_to_the_same_figure(measure):
    table = {each.question: search_json(*["x"] * 8, "it is this") for each in TUNING + HELD_OUT}
    depths = []

    def opening(settings):
        ask = System(search=table)

        @contextmanager
        def opened():
            yield Opened(ask=ask)
            depths.append(ask.asked[0][1]["top_k"])

        return opened

    trials = grid(SETTINGS, {"reranker.depth": [5, 20]})
    found = tune(TUNING + HELD_OUT, trials, opening, measure=measure)
    assert {trial.value for trial in found.trials} == {1.0} and set(depths) == {50}


def test_without_marks_ids_decide_and_the_same_way_each_time():
    plain = [case(f"c{n}") for n in range(30)]
    tuning, held_out, by_id = halves(plain)
    assert by_id and len(tuning) + len(held_out) == 30 and tuning and held_out
    assert halves(list(reversed(plain)))[1][::-1] == held_out
    assert halves(TUNING + HELD_OUT) == (TUNING, HELD_OUT, False)
    with pytest.raises(UsageError, match="too small"):
        halves(HELD_OUT)


def test_every_combination_is_tried_once_and_the_settings_in_force_first():
    choices = {"retrieval.rrf_k": [20, 60], "reranker.depth": [20, 50]}
    labels = [trial.label for trial in grid(SETTINGS, choices)]
    assert labels[0] == "as it is" and len(labels) == 4  # 60 and 50 are in force
    with pytest.raises(UsageError, match=f"{MOST} are the most"):
        grid(SETTINGS, {"retrieval.rrf_k": list(range(1, MOST + 2))})


def test_choices_are_read_as_yaml():
    choices = parse_choices(["a.b=1,x", "c=true"])
    assert choices == {"a.b": [1, "x"], "c": [True]}
    with pytest.raises(UsageError, match="NAME=VALUE"):
        parse_choices(["retrieval.rrf_k"])


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"retrieval.rrf": 1}, "no setting 'retrieval.rrf'"),
        ({"retrieval": 1}, "no setting 'retrieval'"),
        ({"retrieval.rrf_k.x": 1}, "no setting"),
        ({"retrieval.rrf_k": 0}, "rrf_k"),
        ({"chunking.max_tokens": 32, "chunking.min_tokens": 32}, "min_tokens"),
    ],
)
def test_settings_that_do_not_exist_or_hold_are_named(changed, told):
    with pytest.raises(UsageError, match=told):
        changed_settings(SETTINGS, changed)


def test_the_winner_is_printed_as_it_stands_in_a_settings_file():
    text = as_yaml({"retrieval.rrf_k": 20, "retrieval.candidates": 50, "reranker.depth": 20})
    assert text == "retrieval:\n  rrf_k: 20\n  candidates: 50\nreranker:\n  depth: 20\n"
