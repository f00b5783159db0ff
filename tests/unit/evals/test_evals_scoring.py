"""Whether an answer passes, why not, what it leaked, and the judgements made by rules."""

from __future__ import annotations

import pytest

from evals.measuring.judgements import by_rules, faithfulness
from evals.measuring.scoring import citations, score
from evals.running.observe import Cited, Observed
from tests.unit.evals.evals_world import case, passage, refused

TWO = [["paid for 20 weeks"], ["two weeks off the rota"]]


def said(answer, *, status="answered", quotes=(), passages=()):
    cited = tuple(Cited(document=d, doc_id=d, section=s, quote=q) for d, s, q in quotes)
    return Observed(status=status, answer=answer, citations=cited, passages=tuple(passages))


@pytest.mark.parametrize(
    ("observed", "reason"),
    [
        (said("It is 20 weeks."), ""),
        (said("It is TWENTY weeks."), "lacks"),
        (said("It is 20 weeks, once 16 weeks."), "has"),
        (said("I cannot say.", status="refused"), "refused in place of answered"),
        (Observed(error="store_unavailable"), "failed: store_unavailable"),
    ],
)
def test_an_answer_passes_by_status_and_patterns(observed, reason):
    scored = score(case(must=["20 weeks"], must_not=["16 weeks"]), observed, sent=5)
    assert scored.passed is (reason == "")
    assert reason in " ".join(scored.reasons)


def test_a_case_that_was_only_searched_for_passes_by_its_evidence():
    observed = Observed(passages=(passage("x"),))
    assert score(case(evidence=TWO), observed, sent=2, found=[1, 2]).passed
    assert not score(case(evidence=TWO), observed, sent=2, found=[1, 3]).passed
    assert not score(case(evidence=TWO), observed, sent=2, found=[1, None]).passed


def test_what_a_person_may_not_read_is_a_leak_even_where_the_answer_is_right():
    observed = said(
        "No.", status="refused", passages=[passage("secret", "d7"), passage("ok", "d1")]
    )
    scored = score(refused(), observed, sent=5, unreadable={"d7", "d8"})
    assert scored.leaks == ("leak: document d7",) and not scored.passed


def test_a_forbidden_fact_in_the_answer_is_a_leak_and_an_unanswerable_one_is_not():
    observed = said("It is 3 weeks.")
    assert score(refused(kind="forbidden", must_not=["3 weeks"]), observed, sent=5).leaks
    assert not score(refused(must_not=["3 weeks"]), observed, sent=5).leaks


def test_citations_are_precise_where_they_hold_evidence_and_cover_what_they_hold():
    found = [
        passage("You are paid for 20 weeks. Tell us early.", "leave", "Pay"),
        passage("Keep two weeks off the rota.", "rota", "Rest"),
    ]
    quotes = [("leave", "Pay", "Tell us early."), ("other", "", "Something else.")]
    values = citations(case(evidence=TWO), said("…", quotes=quotes, passages=found))
    assert values == {"citation_precision": 0.5, "citation_coverage": 0.5}


def test_of_a_section_in_two_passages_the_one_that_holds_the_quote_was_cited():
    found = [passage("paid for 20 weeks", "leave", "Pay"), passage("Tell us.", "leave", "Pay")]
    quoted = said("…", quotes=[("leave", "Pay", "Tell us.")], passages=found)
    assert citations(case(evidence=TWO[:1]), quoted)["citation_precision"] == 0.0


def test_a_refusal_cites_nothing_and_covers_nothing():
    assert citations(case(evidence=TWO), said("no", status="refused")) == {"citation_coverage": 0.0}


def test_a_sentence_is_faithful_only_with_its_figures():
    context = [passage("Employees accrue 25 vacation days a year.")]
    assert faithfulness("Employees accrue 25 vacation days.", context) == 1.0
    assert faithfulness("Employees accrue 26 vacation days.", context) == 0.0
    assert faithfulness("Employees accrue 25 vacation days. Cats fly.", context) == 0.5
    assert faithfulness("Employees accrue 25 vacation days.", []) == 0.0


def test_the_judgements_by_rules_from_worked_numbers():
    the_case = case(question="Which weeks are paid?", evidence=TWO, must=["20 weeks", "two weeks"])
    found = [passage("x"), passage("You are paid for 20 weeks."), passage("x"), passage("y")]
    values = by_rules(the_case, said("It is 20 weeks.", passages=found), sent=3)
    assert values["context_recall"] == 0.5
    assert values["context_precision"] == 0.5  # the one useful passage is second
    assert values["correctness"] == 0.5
    assert values["context_relevance"] == pytest.approx(2 / 2)  # weeks, paid
    assert values["answer_relevance"] == pytest.approx(1 / 2)
    assert values["faithfulness"] == 1.0


def test_context_precision_falls_with_every_useless_passage_before_a_useful_one():
    found = [passage("paid for 20 weeks"), passage("x"), passage("two weeks off the rota")]
    values = by_rules(case(evidence=TWO), said("…", passages=found), sent=5)
    assert values["context_precision"] == pytest.approx((1 / 1 + 2 / 3) / 2)


def test_what_a_case_does_not_say_is_not_judged():
    values = by_rules(refused(), said("no", status="refused"), sent=5)
    assert values == {"correctness": 1.0}
