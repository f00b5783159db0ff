"""Every stage that can lose evidence is named when it does."""

from __future__ import annotations

import asyncio

import pytest

from evals.improving.diagnose import Means, Sources, Stage, diagnose
from evals.measuring.corpus import Corpus
from evals.measuring.retrieval import Depths
from quarry.cli.evaluating import Documents, system_over
from quarry.cli.extracting import extracted
from quarry.cli.requests import request_of
from quarry.models.fakes import FakeReranker
from quarry.records import DocState
from quarry.settings import Settings
from serve.models import LoadedModels
from tests.unit.evals.evals_world import case, fail, refused
from tests.unit.serve.serve_world import OneOf, Scripted, World

SETTINGS = Settings.model_validate(
    {"retrieval": {"evidence_chunks": 2, "candidates": 4, "top_k": 2}, "reranker": {"depth": 3}}
)
CASE = case(question="How many weeks of leave?", evidence=[["leave is 20 weeks"]])


def world(**parts):
    made = World(settings=SETTINGS, **parts)
    made.add("leave", "Leave is 20 weeks.", acl=("staff",))
    return made


def walk(made, the_case=CASE, extract=None, groups=("staff",)):
    """The diagnosis of one case as a person of these groups; None if it passes."""
    the_case = the_case.model_copy(update={"groups": groups})
    models = LoadedModels(
        embedder=made.embedder,
        reranker=made.reranker,
        generator=made.generator,
        fallback=made.fallback,
    )
    system = system_over(made.settings, "g1", made.stores, models, made.threads)
    people = system.inside.people
    means = Means(
        depths=Depths(sent=2, reranked=3),
        candidates=4,
        make_request=lambda each: request_of(
            made.settings, {"question": each.question, "filter": each.filter}, people(each)
        ),
        extract=extract,
    )
    found = asyncio.run(diagnose([the_case], system, means))
    if not found.failed:
        assert found.counts == {}
        return None
    (diagnosis,) = found.failed
    assert found.counts == {diagnosis.stage: 1}
    return diagnosis


def stage(*args, **kwargs):
    diagnosis = walk(*args, **kwargs)
    return diagnosis and diagnosis.stage


def silent():
    """A generator that cites nothing, so that every case fails."""
    return Scripted("I cannot tell.")


def test_a_case_that_passes_is_not_diagnosed():
    assert walk(world()) is None


def test_evidence_that_was_sent_and_not_used_was_lost_by_the_answer():
    diagnosis = walk(world(generator=silent()))
    assert diagnosis.stage is Stage.ANSWER and diagnosis.losses[0].record


def test_an_answer_that_says_what_it_must_not_is_the_fault_of_the_answer():
    wrong = case(question=CASE.question, evidence=CASE.evidence, must_not=["20"])
    assert stage(world(), wrong) is Stage.ANSWER
    made = world()
    assert stage(made, refused(question=CASE.question)) is Stage.ANSWER


def test_what_no_document_says_was_lost_at_the_source_or_in_its_text():
    never = case(question=CASE.question, evidence=[["leave is 30 weeks"]])
    made = world(generator=silent())
    assert stage(made, never) is Stage.SOURCE
    assert stage(made, never, extract=lambda: Sources(texts={"a.md": "nothing"})) is Stage.SOURCE
    both = {"a.md": "x", "b.md": "LEAVE  is 30\nweeks"}
    found = walk(made, never, extract=lambda: Sources(texts=both))
    assert found.stage is Stage.TEXT and found.losses[0].record == "b.md"


def test_what_only_an_unreadable_source_may_say_was_lost_by_its_text():
    never = case(question=CASE.question, evidence=[["leave is 30 weeks"]])
    made = world(generator=silent())
    found = walk(made, never, extract=lambda: Sources(texts={}, unread={"a.pdf": "It is damaged."}))
    assert found.stage is Stage.TEXT and found.losses[0].record == "a.pdf"
    assert "It is damaged." in found.losses[0].reason
    fail(made, "b.pdf", DocState.CORRUPT)
    found = walk(made, never)
    assert found.stage is Stage.TEXT and found.losses[0].record == "b.pdf"


def test_the_folders_are_read_and_faults_are_kept(tmp_path):
    (tmp_path / "leave.md").write_text("# Leave\n\nLeave is 20 weeks.\n")
    (tmp_path / "broken.pdf").write_bytes(b"%PDF-1.7 and no more")
    found = extracted(SETTINGS, [Documents(source=None, folder=tmp_path)])
    texts = {address.rsplit("/", 1)[-1]: text for address, text in found.texts.items()}
    assert "Leave is 20 weeks." in texts["leave.md"]
    assert [each.rsplit("/", 1)[-1] for each in found.unread] == ["broken.pdf"]


def test_a_judged_document_is_followed_like_evidence():
    def judged(name):
        return case(question=CASE.question, relevant={name: 1}, must=["never"])

    assert stage(world(), judged("leave"), groups=()) is Stage.FILTER
    assert stage(crowd(world(), 8), judged("leave")) is Stage.EMBEDDING
    assert stage(crowd(world(), 3), judged("leave")) is Stage.FUSION
    assert stage(world(generator=silent()), judged("leave")) is Stage.ANSWER
    made = world()
    found = walk(made, judged("nowhere"))
    assert found.stage is Stage.SOURCE and found.losses[0].phrase == "nowhere"
    fail(made, "broken.pdf", DocState.CORRUPT)
    assert walk(made, judged("broken.pdf")).losses[0].record == "broken.pdf"


def test_a_phrase_that_a_border_cuts_was_lost_by_the_chunks():
    made = crowd(world(generator=silent()), 8)
    made.add("long", "Leave is", "30 weeks.", acl=("staff",))
    cut = case(question=CASE.question, evidence=[["leave is 30 weeks"]])
    diagnosis = walk(made, cut)
    assert diagnosis.stage is Stage.CHUNKS and diagnosis.losses[0].record == "long"


def test_what_the_asker_may_not_read_was_lost_by_the_filter():
    diagnosis = walk(world(), groups=())
    assert diagnosis.stage is Stage.FILTER and diagnosis.losses[0].record == "leave"


@pytest.mark.parametrize("facts", [{"filter": "region = mars"}, {}])
def test_what_a_filter_or_a_newer_version_hides_was_lost_by_the_filter(facts):
    made = World(settings=SETTINGS)
    made.add("old", "Leave is 20 weeks.", series="HR", version="1", acl=("staff",))
    if not facts:
        made.add("new", "Nothing here.", series="HR", version="2", acl=("staff",))
    assert stage(made, CASE.model_copy(update=facts)) is Stage.FILTER


def crowd(made, count, text="How many weeks of leave, how many weeks?"):
    for number in range(count):
        made.add(f"crowd-{number}", f"{text} {number}", acl=("staff",))
    return made


def far():
    """Evidence that shares no word with the question."""
    made = World(settings=SETTINGS, generator=silent())
    made.add("far", "Parents stay home twenty Sundays.", acl=("staff",))
    return crowd(made, 8)


FAR = case(question=CASE.question, evidence=[["stay home twenty sundays"]])


def test_what_is_far_by_exact_search_was_lost_by_the_embedding():
    diagnosis = walk(far(), FAR)
    assert diagnosis.stage is Stage.EMBEDDING
    assert "of 9, 4 are asked for" in diagnosis.losses[0].reason


def test_what_is_near_by_exact_search_and_not_found_was_lost_by_the_index():
    made = crowd(World(settings=SETTINGS, generator=silent()), 8, text="Something else")
    made.add("far", "Parents stay home twenty Sundays.", acl=("staff",))
    asked = case(question="Parents home Sundays twenty?", evidence=FAR.evidence)
    held = Corpus.read(made.stores.catalog, made.stores.text).holding(["stay home"])[0]

    def without(method):
        def search(*args, limit, **rest):
            hits = method(*args, limit=limit + 1, **rest)
            return [hit for hit in hits if hit.row_id != held.row_id][:limit]

        return search

    vectors, text = made.stores.vectors, made.stores.text
    made.replace_store(
        vectors=OneOf(vectors, search=without(vectors.search)),
        text=OneOf(text, search=without(text.search)),
    )
    diagnosis = walk(made, asked)
    assert diagnosis.stage is Stage.INDEX and "exact rank 1 of 9" in diagnosis.losses[0].reason
    made.stores.vectors.delete([held.row_id])
    diagnosis = walk(made, asked)
    assert diagnosis.stage is Stage.INDEX and "no row" in diagnosis.losses[0].reason


def test_what_is_found_but_ranked_too_low_was_lost_by_fusion_or_by_the_reranker():
    made = crowd(world(generator=silent()), 3)
    assert stage(made) is Stage.FUSION  # no reranker: the fused order decides what is sent
    made = crowd(world(generator=silent(), reranker=FakeReranker()), 2)
    assert stage(made) is Stage.RERANK
    made = crowd(world(generator=silent(), reranker=FakeReranker()), 3)
    assert stage(made) in (Stage.FUSION, Stage.RERANK)


def test_a_near_duplicate_that_was_left_out_was_lost_by_the_context():
    long = (
        "Every parent of a child gets leave for the weeks after the birth of that child, paid by "
        "the firm that the parent works for on the day on which the child is born in hospital,"
    )
    made = World(settings=SETTINGS, generator=silent())
    made.add("one", f"{long} in full.", header="h", acl=("staff",))
    made.add("two", f"{long} in fact.", header="h", acl=("staff",))
    stages = {
        stage(made, case(question="leave after the birth", evidence=[[f"{long} in {word}"]]))
        for word in ("full", "fact")
    }
    assert stages == {Stage.ANSWER, Stage.CONTEXT}


def test_the_first_stage_that_lost_any_piece_is_the_one_of_the_case():
    made = world(generator=silent())
    both = case(question=CASE.question, evidence=[["leave is 20 weeks"], ["never said"]])
    diagnosis = walk(made, both)
    assert diagnosis.stage is Stage.SOURCE
    assert [loss.stage for loss in diagnosis.losses] == [Stage.ANSWER, Stage.SOURCE]
