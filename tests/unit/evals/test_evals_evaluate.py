"""Several systems asked the same set: each by its own depths, judge and index."""

from __future__ import annotations

from contextlib import contextmanager
from types import SimpleNamespace

import pytest

from evals.evaluate import Contestant, Options, evaluate
from evals.gate import Gate
from evals.measuring.retrieval import Depths
from evals.running.observe import Variant
from evals.running.system import Inside
from evals.running.system import System as Opened
from quarry.records import DocState, Document, Principal
from tests.unit.evals.evals_world import System, answer_json, case, search_json

CASES = [case("a", question="A"), case("b", question="B")]
DEPTHS = Depths(sent=8, reranked=50)
BROKEN = Document(doc_id="d", source="s", address="broken.pdf", uri="broken.pdf",
                  state=DocState.CORRUPT, error="It is damaged.")  # fmt: skip


def index(*, unsaid=(), unread=()):
    """A corpus in which no document says what these cases need."""
    gone = {name: ["it is this"] for name in unsaid}
    return SimpleNamespace(
        unread=unread,
        unsaid=lambda _cases: gone,
        outdated=lambda _cases: {} if unread else gone,
        unreadable=lambda _person, _documents: set(),
    )


def contestant(label, corpus=None, *, depths=DEPTHS, judge=None):
    found = search_json(*["x"] * 5, "it is this")
    ask = System(search=dict.fromkeys("AB", found), answer=dict.fromkeys("AB", answer_json()))
    inside = corpus and Inside(
        corpus=corpus, people=lambda _case: Principal(), exact=None, explain=None, plain=None
    )

    @contextmanager
    def opened():
        yield Opened(ask=ask, inside=inside)

    variants = {"": Variant()}
    return Contestant(
        label=label, settings="", open=opened, variants=variants, depths=depths, judge=judge
    )


def report(*contestants, **options):
    return evaluate(["set"], CASES, contestants, Options(**options))


@pytest.mark.parametrize("order", [1, -1])
def test_a_case_is_outdated_only_in_the_runs_whose_index_does_not_say_it(order):
    parts = [contestant("old", index()), contestant("new", index(unsaid=["a"]))][::order]
    told = report(*parts)
    assert {run.label: run.whole.judged for run in told.runs} == {"old": 2, "new": 1}
    assert told.comparisons[0].cases == 1 and list(told.outdated) == ["a"]
    assert any("some of the runs" in note and "a" in note for note in told.notes)


def test_what_is_outdated_everywhere_is_said_so():
    told = report(*(contestant(name, index(unsaid=["b"])) for name in "xy"))
    assert any("in no figure: 1 of the cases" in note for note in told.notes)


@pytest.mark.parametrize("order", [1, -1])
def test_each_system_is_measured_by_its_own_depths_and_at_those_of_the_others(order):
    few, many = Depths(sent=1, reranked=20), Depths(sent=8, reranked=50)
    told = report(*[contestant("few", depths=few), contestant("many", depths=many)][::order])
    runs = {run.label: run.whole.measures for run in told.runs}
    assert runs["few"]["all_evidence@8"] == runs["many"]["all_evidence@8"] == 1.0
    assert (runs["few"]["context_recall"], runs["many"]["context_recall"]) == (0.0, 1.0)


def test_each_system_is_judged_by_its_own_judge():
    def saying(value):
        async def judge(_case, _seen):
            return {"judged_faithfulness": value}

        return judge

    told = report(contestant("x", judge=saying(0.0)), contestant("y", judge=saying(1.0)))
    assert [run.whole.measures["judged_faithfulness"] for run in told.runs] == [0.0, 1.0]


def test_documents_that_failed_are_named_counted_and_held_to_a_gate():
    gate = Gate(maximum={"failed_documents": 0})
    told = report(contestant("x", index(unsaid=["b"], unread=[BROKEN])), gate=gate)
    (run,) = told.runs
    assert run.whole.measures["failed_documents"] == 1.0 and not told.passed
    assert run.whole.outdated == 0 and run.whole.judged == 2
    assert any("broken.pdf (corrupt)" in note for note in told.notes)
    assert any("not called outdated: b" in note for note in told.notes)
    assert told.as_json()["runs"][0]["failed_documents"] == [
        {"uri": "broken.pdf", "state": "corrupt", "reason": "It is damaged."}
    ]
    assert report(contestant("x", index()), gate=gate).passed


def test_nobody_counts_the_failed_documents_of_a_server():
    assert "failed_documents" not in report(contestant("x")).runs[0].whole.measures
