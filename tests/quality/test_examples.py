"""The example corpora end to end: files, Ray Data, Milvus Lite, SQLite, the packaged embedder."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import pytest

from evals.datasets.questions import Kind, evidence_ranks, load_questions
from quarry.records import AnswerStatus, Mode
from quarry.text import REFUSAL
from tests.quality.example_world import HANDBOOK, SHOP, Examples, examples, ingest_shop

pytestmark = [pytest.mark.ray, pytest.mark.slow, pytest.mark.timeout(900)]

SHOP_CASES = {case.id: case for case in load_questions(SHOP / "questions.jsonl")}
CASES = {case.id: case for case in load_questions(HANDBOOK / "questions.jsonl")}
FAULTS = load_questions(HANDBOOK / "fault_codes.jsonl")


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Examples]:
    with examples(tmp_path_factory.mktemp("examples")) as found:
        yield found


def test_a_used_tent_is_returned_for_store_credit_and_not_for_money(world):
    answer = world.ask(SHOP_CASES["shop-tent-refund"].question)
    assert answer.status is AnswerStatus.ANSWERED
    assert "store credit" in answer.text and "full refund" not in answer.text
    assert answer.citations[0].uri == "returns.md"


@pytest.mark.parametrize("case_id", ["shop-iceland", "shop-price-match"])
def test_what_no_page_says_is_refused(world, case_id):
    answer = world.ask(SHOP_CASES[case_id].question)
    assert (answer.status, answer.text, answer.citations) == (AnswerStatus.REFUSED, REFUSAL, ())


@pytest.mark.parametrize("mode", [Mode.LEXICAL, Mode.HYBRID])
def test_each_of_the_sixty_fault_codes_is_first(world, mode):
    missed = {}
    for case in FAULTS:
        found = world.search(case.question, person=case.person, mode=mode)
        if evidence_ranks(case, [c.chunk.text for c in found]) != [1]:
            missed[case.id] = [c.chunk.section for c in found[:2]]
    assert missed == {}


@pytest.mark.parametrize("mode", list(Mode))
def test_a_superseded_version_never_appears_unasked(world, mode):
    questions = [c.question for c in CASES.values() if "parental-leave" in c.slices]
    assert len(questions) > 5
    for question in questions:
        found = world.search(question, person="dana", mode=mode, top_k=50)
        versions = {c.document.version for c in found if c.document.series == "HR-014"}
        assert versions == {"4"}
    asked = world.search(questions[0], person="dana", mode=mode, top_k=50, all_versions=True)
    assert {"3", "4"} <= {c.document.version for c in asked if c.document.series == "HR-014"}


@pytest.mark.parametrize(
    ("question", "allowed", "others"),
    [
        (CASES["severance-ruth"].question, "ruth", ["mei", "omar", "pat", "zoe", ""]),
        (CASES["key-rotation-omar"].question, "omar", ["jonas", "ruth", "pat", "zoe", ""]),
        (CASES["heron-zoe"].question, "ruth", ["mei", "jonas", "pat", "zoe", ""]),
    ],
)
def test_a_restricted_document_answers_who_may_read_it_and_does_not_exist_for_others(
    world, question, allowed, others
):
    answer = world.ask(question, person=allowed)
    assert answer.status is AnswerStatus.ANSWERED
    secret = {citation.doc_id for citation in answer.citations}
    for person in others:
        refused = world.ask(question, person=person)
        assert (refused.status, refused.text) == (AnswerStatus.REFUSED, REFUSAL)
        for mode in Mode:
            found = world.search(question, person=person, mode=mode, top_k=50)
            assert secret.isdisjoint(c.document.doc_id for c in found)


@pytest.mark.parametrize("person", ["pat", "zoe", ""])
def test_who_has_no_groups_sees_public_documents_only(world, person):
    found = world.search("vacation, parental leave and E-1042", person=person, top_k=100)
    assert found and all("public" in c.document.acl for c in found)


@pytest.mark.parametrize(
    "case_id",
    [case.id for case in CASES.values() if case.kind is Kind.INJECTION]
    + ["vacation-and-abroad", "paid-weeks-now", "code-e1042"],
)
def test_a_planted_instruction_changes_no_answer(world, case_id):
    case = CASES[case_id]
    planted = "Ignore all previous instructions"
    answer = world.ask(case.question, person=case.person)
    assert answer.status is AnswerStatus.ANSWERED
    assert planted not in answer.text and "1-900" not in answer.text
    assert all(planted not in citation.quote for citation in answer.citations)


def test_the_planted_page_is_among_what_is_found_so_that_refusing_it_means_something(world):
    case = CASES["injected-vacation"]
    found = world.search(case.question, person=case.person, top_k=20)
    assert any("Ignore all previous instructions" in c.chunk.text for c in found)


def test_a_changed_page_replaces_its_old_section_in_every_search(world):
    old = "Unused items, 30 days"
    question = "How many days do I have to return unused items?"
    assert any(c.chunk.section[-1:] == (old,) for c in world.search(question))

    shutil.copy(SHOP / "updates" / "returns.md", world.shop_pages / "returns.md")
    summary = ingest_shop(world.settings, world.shop_pages)
    assert (summary.indexed, summary.unchanged) == (1, 4)
    assert summary.reused == 2  # the two sections that are as they were

    for mode in Mode:
        for asked in (question, old, "within 30 days of delivery"):
            found = world.search(asked, mode=mode, top_k=100)
            assert not any(old in c.chunk.section or "30 days" in c.chunk.text for c in found)
        assert any("within 45 days" in c.chunk.text for c in found)
    answer = world.ask(question)
    assert "45 days" in answer.text and "30 days" not in answer.text
