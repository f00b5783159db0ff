"""One evaluation of several systems: what is told before, and what is kept when something fails."""

from __future__ import annotations

from contextlib import contextmanager
from types import SimpleNamespace

import pytest

from evals.evaluate import Contestant, Options, evaluate
from evals.gate import Gate
from evals.measuring.results import CaseResult
from evals.reporting.baseline import Baseline
from evals.running.observe import Variant
from evals.running.system import Inside
from evals.running.system import System as Opened
from quarry.errors import ModelError, StoreUnavailable, UsageError
from tests.unit.evals.evals_world import ASKING, System, answer_json, case, search_json

CASES = [case("a", question="A", must=["this"]), case("b", question="B", must=["this"])]


def answering():
    return System(
        search={name: search_json("it is this") for name in "AB"},
        answer={name: answer_json("It is this.") for name in "AB"},
    )


def contestant(
    label="one", ask=None, *, outdated=(), error=None, exact=None, outside=False, **facts
):
    """A system whose corpus holds these cases outdated; `error` is raised in place of opening."""

    @contextmanager
    def opened():
        if error:
            raise error
        corpus = SimpleNamespace(
            unread=(),
            outdated=lambda _cases: {name: ["it is this"] for name in outdated},
            unreadable=lambda *_: set(),
        )
        inside = Inside(
            corpus=corpus, people=lambda _case: None, exact=exact, explain=None, plain=None
        )
        yield Opened(ask=ask or answering(), inside=None if outside else inside)

    return Contestant(
        **{
            "label": label,
            "settings": "",
            "open": opened,
            "variants": {"": Variant()},
            "depths": ASKING.depths,
            "inside": not outside,
        }
        | facts
    )


def evaluated(*contestants, **options):
    return evaluate(["set"], CASES, contestants, Options(**options))


def test_a_case_that_the_second_system_holds_outdated_is_lost_to_the_gate():
    gate = Gate(no_lost=("all",))
    report = evaluated(contestant("whole"), contestant("gone", outdated=["a"]), gate=gate)
    assert [check.has for check in report.checks if not check.passed] == ["a (outdated now)"]
    assert not report.passed


@pytest.mark.parametrize(
    ("contestants", "options", "told"),
    [
        ([{}], {"gate": Gate(minimum={"recall": 1})}, "recall"),
        ([{}], {"gate": Gate(minimum={"judged_correctness": 1})}, "judged_correctness"),
        ([{"variants": {"": Variant(answers=False)}}], {"gate": Gate(minimum={"pass_rate": 1})},
         "pass_rate"),
        ([{}], {"gate": Gate(no_lost=("all",))}, "needs something to compare with"),
        ([{"outside": True}], {"gate": Gate(leaks=0)}, "Over HTTP"),
        ([{"outside": True}], {"exact": True}, "leave out --url"),
        ([{}], {"repeats": 2, "baseline": Baseline(label="b", asking=ASKING, results=[])},
         "repeats"),
        ([{}], {"baseline": Baseline(label="b", asking=ASKING, results=[]),
                "gate": Gate(no_lost=("all",))}, "no case can be compared"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_told_before_anything_is_asked(contestants, options, told):
    ask = answering()
    with pytest.raises(UsageError, match=told):
        evaluated(*(contestant(ask=ask, **facts) for facts in contestants), **options)
    assert not ask.asked


def test_a_gate_may_name_every_figure_that_a_run_has():
    async def judge(_case, _seen):
        return {"judged_correctness": 1.0}

    everything = evaluated(contestant(judge=judge)).runs[0].whole.measures
    gate = Gate(minimum=dict.fromkeys(everything, 0.0))
    assert evaluated(contestant(judge=judge), gate=gate).passed


def test_a_baseline_is_compared_with_every_run():
    before = [CaseResult(case=each, passed=False) for each in CASES]
    baseline = Baseline(label="before", asking=ASKING, results=before)
    report = evaluated(contestant("one"), contestant("two"), baseline=baseline)
    assert [(each.first, each.second) for each in report.comparisons] == [
        ("before", "one"),
        ("before", "two"),
    ]


def test_a_system_that_cannot_be_opened_leaves_the_runs_before_it():
    broken = contestant("two", error=StoreUnavailable("The store is away."))
    report = evaluated(contestant("one"), broken, gate=Gate())
    assert [run.label for run in report.runs] == ["one"] and not report.checks
    assert not report.passed and report.as_json()["failure"] == "The store is away."
    with pytest.raises(StoreUnavailable):
        evaluated(broken)


def test_a_judge_that_fails_on_the_way_leaves_the_answers_and_is_not_asked_again():
    asked = []

    async def judge(asked_case, _seen):
        asked.append(asked_case.id)
        raise ModelError("The judge is away.")

    report = evaluated(contestant(judge=judge), contestant("two"))
    assert asked == ["a"] and [run.label for run in report.runs] == ["one"]
    assert report.runs[0].whole.measures["pass_rate"] == 1.0
    assert isinstance(report.failure, ModelError) and "The judge failed" in report.notes[0]


def test_exact_search_that_fails_leaves_the_answers():
    def exact():
        raise StoreUnavailable("The vectors are away.")

    report = evaluated(contestant(exact=exact), exact=True)
    assert report.runs[0].whole.measures["pass_rate"] == 1.0
    assert isinstance(report.failure, StoreUnavailable)


def test_a_system_that_answers_nothing_is_a_failure_with_its_report():
    away = StoreUnavailable("Away.")
    silent = System(answer={"A": away, "B": away}, search={"A": away, "B": away})
    report = evaluated(contestant(ask=silent), contestant("two"))
    assert [run.label for run in report.runs] == ["one"]
    assert "No question got a reply" in str(report.failure)


def test_a_figure_that_the_cases_do_not_give_is_told_with_the_report():
    silent = System(search={name: search_json("it is this") for name in "AB"})
    report = evaluated(contestant(ask=silent), gate=Gate(minimum={"citation_precision": 0.5}))
    assert isinstance(report.failure, UsageError) and "citation_precision" in str(report.failure)
    assert len(report.runs) == 1 and not report.passed
