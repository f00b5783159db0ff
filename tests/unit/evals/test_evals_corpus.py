"""Cases held against what the index has now: outdated ones, unreadable documents, exact search."""

from __future__ import annotations

from datetime import date

import pytest

from evals.measuring.corpus import Corpus
from evals.measuring.exact import ExactSearch
from quarry.access.check import Verdict
from quarry.records import DocState, Principal
from tests.unit.evals.evals_world import case, fail
from tests.unit.serve.serve_world import World

STAFF = Principal(groups=("staff",))


@pytest.fixture
def world():
    world = World()
    world.add("old", "Leave is 16 weeks.", series="HR", version="3")
    world.add("new", "Leave is 20 weeks.", "It may be split.", series="HR", version="4")
    world.add("secret", "Severance is 3 weeks.", acl=("staff",))
    world.add("gone", "Gone for good.")
    world.remove("gone")
    return world


@pytest.fixture
def corpus(world):
    return Corpus.read(world.stores.catalog, world.stores.text)


def evidence(*phrases, **facts):
    return case(evidence=[[phrase] for phrase in phrases], **facts)


@pytest.mark.parametrize(
    ("the_case", "gone"),
    [
        (evidence("leave is 20 WEEKS"), []),
        (evidence("20 weeks. It may"), []),  # across a border of chunks
        (evidence("Severance is 3 weeks"), []),  # hidden from this person, but there
        (evidence("Leave is 16 weeks"), ["Leave is 16 weeks"]),  # superseded
        (evidence("Leave is 16 weeks", filter="version = 3"), []),  # asked for
        (evidence("Leave is 20 weeks", filter="region = mars"), []),
        (evidence("Leave is 20 weeks", "Gone for good"), ["Gone for good"]),
        (case(evidence=[["never said", "may be split"]]), []),
        (case(relevant={"new": 1, "nowhere": 1}), []),
        (case(relevant={"nowhere": 1}), ["nowhere"]),
    ],
)
def test_a_case_is_outdated_when_no_current_document_says_it(corpus, the_case, gone):
    assert corpus.outdated([the_case]) == ({"one": gone} if gone else {})


def test_what_a_person_may_not_read_is_told_apart_from_what_is_filtered(corpus):
    (secret,) = corpus.saying(["Severance"])
    assert corpus.unreadable(Principal(), {secret.doc_id, "unknown"}) == {secret.doc_id, "unknown"}
    assert corpus.unreadable(STAFF, {secret.doc_id}) == set()
    (old,) = corpus.saying(["16 weeks"])
    assert corpus.verdict(old, STAFF) is Verdict.SUPERSEDED
    assert corpus.verdict(old, STAFF, versions=True) is Verdict.ADMITTED


def test_what_changes_while_a_set_is_asked_is_no_leak(world, corpus):
    world.add("late", "Came later.", acl=("staff",))
    (late,) = Corpus.read(world.stores.catalog, world.stores.text).saying(["Came later"])
    assert corpus.unreadable(STAFF, {late.doc_id}) == set()
    assert corpus.unreadable(Principal(), {late.doc_id}) == {late.doc_id}
    (new,) = corpus.saying(["20 weeks"])
    world.remove("new")
    assert corpus.unreadable(Principal(), {new.doc_id}) == set()


def test_a_document_not_yet_in_effect_does_not_make_a_case_outdated(world):
    world.add("next", "Leave is 24 weeks.", series="HR", version="5", effective=date(2999, 1, 1))
    corpus = Corpus.read(world.stores.catalog, world.stores.text)
    assert corpus.outdated([evidence("Leave is 20 weeks")]) == {}
    assert "one" in corpus.outdated([evidence("Leave is 24 weeks")])


@pytest.mark.parametrize(
    ("state", "hidden"),
    [(DocState.CORRUPT, True), (DocState.NEEDS_OCR, True), (DocState.EMPTY, False)],
)
def test_no_case_is_outdated_while_a_document_that_may_say_it_failed(world, state, hidden):
    fail(world, "broken.pdf", state)
    corpus = Corpus.read(world.stores.catalog, world.stores.text)
    asked = [evidence("Gone for good")]
    assert [each.uri for each in corpus.unread] == (["broken.pdf"] if hidden else [])
    assert corpus.unsaid(asked) == {"one": ["Gone for good"]}
    assert bool(corpus.outdated(asked)) is not hidden


def test_a_document_whose_update_failed_is_served_and_counts_as_unread(world):
    fail(world, "secret", DocState.TIMED_OUT)
    corpus = Corpus.read(world.stores.catalog, world.stores.text)
    assert [each.uri for each in corpus.unread] == ["secret"]
    assert corpus.saying(["Severance"])


def test_each_tenant_has_current_documents_of_its_own():
    world = World()
    hr = {"series": "HR"}
    world.add("acme", "Leave is 16 weeks.", tenant="acme", version="16", acl=("user:mei",), **hr)
    world.add("kestrel", "Leave is 20 weeks.", tenant="kestrel", version="20", **hr)
    corpus = Corpus.read(world.stores.catalog, world.stores.text)
    asked = [evidence("16 weeks", id="a"), evidence("20 weeks", id="b", person="hans")]
    assert corpus.outdated(asked) == {}


@pytest.fixture
def exact(world, corpus):
    return ExactSearch(corpus, world.stores.vectors, world.embedder)


def test_exact_search_sees_what_the_person_may_see_and_nothing_else(corpus, exact):
    (held,) = corpus.holding(["Severance"])
    question = "severance weeks"
    assert exact.near(question, Principal()).rank(held.chunk_id) is None
    assert exact.near(question, STAFF).rank(held.chunk_id) == 1
    assert len(exact.near(question, STAFF).scores) == 3
    assert len(exact.near(question, STAFF, versions=True).scores) == 4
    assert exact.missing == []


def test_recall_is_the_share_of_the_nearest_that_was_found(exact):
    near = exact.near("leave weeks", STAFF)
    best = sorted(near.scores, key=lambda chunk_id: -near.scores[chunk_id])
    assert near.recall(best[:2], 2) == 1.0
    assert near.recall(best[1:], 2) == 0.5
    assert near.recall([], 2) == 0.0
    assert near.recall(best, 10) == 1.0


def test_equal_passages_count_as_each_other(world):
    world.add("copy", "Severance is 3 weeks.", header="secret")
    corpus = Corpus.read(world.stores.catalog, world.stores.text)
    near = ExactSearch(corpus, world.stores.vectors, world.embedder).near("severance", STAFF)
    copies = [chunk.chunk_id for chunk in corpus.holding(["Severance"])]
    assert [near.rank(each) for each in copies] == [1, 1]
    assert all(near.recall([each], 1) == 1.0 for each in copies)


def test_rows_that_the_vector_store_lacks_are_told(world, corpus):
    (held,) = corpus.holding(["may be split"])
    world.stores.vectors.delete([held.row_id])
    exact = ExactSearch(corpus, world.stores.vectors, world.embedder)
    assert exact.missing == [held.row_id]
    assert exact.near("split", STAFF).rank(held.chunk_id) is None


def test_nothing_is_near_in_an_empty_index():
    world = World()
    corpus = Corpus.read(world.stores.catalog, world.stores.text)
    near = ExactSearch(corpus, world.stores.vectors, world.embedder).near("x", STAFF)
    assert near.scores == {} and near.recall([], 10) == 1.0
