"""Running a question set: what is asked, and what every case and the whole set come to."""

from __future__ import annotations

import pytest

from evals.measuring.results import by_slice, figures
from evals.measuring.retrieval import Depths
from evals.running.observe import Variant
from evals.running.run import Plan, run_set
from quarry.errors import StoreUnavailable
from quarry.records import Mode
from tests.unit.evals.evals_world import System, answer_json, case, refused, search_json

PLAN = Plan(depths=Depths(sent=2, reranked=3))
CASES = [
    case("right", question="A", must=["this"]),
    case("lost", question="B", must=["this"]),
    case("broken", question="C", must=["this"]),
    refused("no", question="D", slices=["shop"]),
    case("unjudged", question="E", evidence=[], must=["this"], held_out=True),
]


def system():
    return System(
        search={
            "A": search_json("it is this", "x"),
            "B": search_json("x", "y", "it is this"),
            "C": StoreUnavailable("down"),
            "E": search_json("it is this"),
        },
        answer={
            "A": answer_json(quotes=[("d1", "", "it is this")], tokens=(100, 20)),
            "E": answer_json(tokens=(50, 10)),
        },
    )


async def run(plan=PLAN, cases=CASES, ask=None):
    return await run_set(cases, ask or system(), plan)


async def test_every_case_has_a_result_in_order_and_a_failure_does_not_stop_the_run():
    results = await run()
    assert [result.case.id for result in results] == [each.id for each in CASES]
    assert [result.passed for result in results] == [True, False, False, True, True]
    assert results[2].error == "store_unavailable" and results[1].found == (3,)


async def test_failed_cases_count_as_nothing_in_every_mean_and_unjudged_ones_in_none():
    found = figures(await run())
    assert (found.cases, found.judged, found.unjudged, found.failed) == (5, 3, 1, 1)
    assert found.measures["R@2"] == pytest.approx(1 / 3)
    assert found.measures["R@3"] == pytest.approx(2 / 3)
    assert found.measures["RR@3"] == pytest.approx((1 + 1 / 3 + 0) / 3)
    assert found.measures["pass_rate"] == pytest.approx(3 / 5)
    assert found.measures["refused_answerable"] == pytest.approx(1 / 4)
    assert found.measures["answered_unanswerable"] == 0.0
    assert found.measures["prompt_tokens"] == pytest.approx(150 / 4)


async def test_an_answer_that_fails_takes_nothing_from_the_figures_of_its_search():
    ask = System(search={"A": search_json("it is this")}, answer={"A": StoreUnavailable("down")})
    (result,) = await run(cases=CASES[:1], ask=ask)
    assert (result.error, result.passed) == ("store_unavailable", False)
    assert result.measures["R@5"] == 1.0 and figures([result]).failed == 1


async def test_empty_results_of_answerable_cases_are_counted():
    results = await run(ask=System())
    assert figures(results).empty == 3  # the two others name nothing to find


async def test_an_outdated_case_is_counted_and_in_no_figure():
    found = figures(await run(Plan(depths=PLAN.depths, outdated={"lost", "broken"})))
    assert (found.outdated, found.failed, found.measures["R@3"]) == (2, 0, 1.0)


async def test_what_leaks_in_an_outdated_case_is_a_leak_all_the_same():
    plan = Plan(depths=PLAN.depths, outdated={"right"}, unreadable=lambda *_: {"d1"})
    found = figures(await run(plan, CASES[:1]))
    assert (found.outdated, found.leaks) == (1, 1)


async def test_each_repeat_that_answers_or_refuses_wrongly_is_in_the_share():
    no, yes = answer_json(status="refused", text="No"), answer_json()
    ask = System(answer={"A": [yes, no, no], "D": [no, yes, yes]})
    results = await run(Plan(depths=PLAN.depths, repeats=3), [CASES[0], CASES[3]], ask)
    found = figures(results).measures
    assert found["refused_answerable"] == pytest.approx(2 / 3)
    assert found["answered_unanswerable"] == pytest.approx(2 / 3)


async def test_an_answer_that_failed_is_in_every_figure_of_answers_as_nothing():
    async def judge(_case, seen):
        return {"judged_faithfulness": 0.0 if seen.error else 1.0}

    cited = answer_json("It is this.", quotes=[("d1", "", "it is this")])
    ask = System(
        search={"A": search_json("it is this"), "B": search_json("it is this")},
        answer={"A": cited, "B": StoreUnavailable("down")},
    )
    results = await run(Plan(depths=PLAN.depths, judge=judge), CASES[:2], ask)
    found = figures(results).measures
    names = ("citation_coverage", "citation_precision", "faithfulness", "correctness", "pass_rate")
    assert {name: found[name] for name in names} == dict.fromkeys(names, 0.5)
    assert found["judged_faithfulness"] == 0.5


async def test_a_search_that_failed_says_nothing_of_answers_that_nobody_asked_for():
    plan = Plan(depths=PLAN.depths, variant=Variant(answers=False))
    found = figures(await run(plan, CASES[2:4])).measures
    assert found["R@5"] == 0.0
    assert not {"correctness", "faithfulness", "refused_answerable", "pass_rate"} & found.keys()


async def test_an_answer_is_unjudged_where_nothing_says_what_it_must_hold():
    nonsense = System(answer={"A": answer_json("Cats fly."), "B": answer_json("It is this.")})
    found = figures(await run(cases=[case("any", question="A"), CASES[1]], ask=nonsense))
    assert found.unjudged_answers == 1
    assert (found.measures["pass_rate"], found.measures["correctness"]) == (1.0, 1.0)
    alone = figures(await run(cases=[case("any", question="A")], ask=nonsense))
    assert not {"pass_rate", "correctness"} & alone.measures.keys()


async def test_slices_have_their_own_figures_also_those_that_follow_from_a_case():
    slices = by_slice(await run())
    assert {"shop", "kind: unanswerable", "half: held out", "half: tuning"} <= slices.keys()
    assert slices["half: held out"].cases == 1 and slices["kind: answerable"].cases == 4


async def test_repeats_are_averaged_and_a_case_that_ends_differently_is_flaky():
    ask = System(
        search={"A": search_json("it is this")},
        answer={"A": [answer_json("It is this."), answer_json("It is that.")]},
    )
    plan = Plan(depths=PLAN.depths, repeats=2)
    (result,) = await run_set(CASES[:1], ask, plan)
    assert result.flaky and not result.passed
    assert result.measures["correctness"] == 0.5 and result.measures["R@5"] == 1.0


async def test_the_person_the_filter_and_the_conversation_are_part_of_the_request():
    ask = System()
    talk = [{"role": "user", "content": "before"}]
    asked = case(person="mei", filter="region = canada", conversation=talk)
    await run_set([asked], ask, PLAN)
    (_, search), (_, answer) = ask.asked
    assert search == answer | {"top_k": 10}
    assert answer["as"] == "mei" and answer["filter"] == "region = canada"
    assert answer["conversation"] == talk


async def test_a_variant_says_what_is_left_out():
    ask = System()
    variant = Variant(mode=Mode.LEXICAL, rerank=False, filters=False, answers=False)
    plan = Plan(depths=Depths(sent=2, reranked=500), variant=variant)
    await run_set([case(filter="region = canada")], ask, plan)
    (endpoint, body), *rest = ask.asked
    assert (endpoint, rest) == ("search", [])
    assert body == {
        "question": "What is it?",
        "mode": "lexical",
        "rerank": False,
        "all_versions": True,
        "top_k": 100,
    }


@pytest.mark.parametrize(("also", "asked"), [((), 10), ((40,), 40)])
async def test_a_search_goes_as_deep_as_the_deepest_figure(also, asked):
    ask = System(search={"What is it?": search_json(*["x"] * 9, "it is this")})
    plan = Plan(depths=Depths(sent=2, reranked=5, also=also))
    (result,) = await run_set([case()], ask, plan)
    assert ask.asked[0][1]["top_k"] == asked
    assert result.measures["R@10"] == 1.0 and (f"R@{asked}" in result.measures)


async def test_documents_that_the_asker_may_not_read_are_leaks_wherever_they_show():
    asked = []

    def unreadable(the_case, documents):
        asked.append((the_case.id, documents))
        return {"d1"}

    (result,) = await run(Plan(depths=PLAN.depths, unreadable=unreadable), CASES[:1])
    assert result.leaks == ("leak: document d1",) and not result.passed
    assert asked == [("right", {"d1"})]
    assert figures([result]).leaks == 1


async def test_the_figures_of_a_judge_stand_beside_the_others():
    async def judge(_case, _seen):
        return {"judged_faithfulness": 0.5}

    (result,) = await run(Plan(depths=PLAN.depths, judge=judge), CASES[:1])
    assert result.measures["judged_faithfulness"] == 0.5
    assert result.measures["R@5"] == 1.0


async def test_progress_is_told_for_every_asking():
    told = []
    plan = Plan(depths=PLAN.depths, repeats=2)
    await run_set(CASES[:2], system(), plan, lambda *step: told.append(step))
    assert told == [(1, 4), (2, 4), (3, 4), (4, 4)]
