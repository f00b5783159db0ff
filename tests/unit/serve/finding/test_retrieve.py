"""What a search finds, and what it never shows."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quarry.access import EVERYTHING
from quarry.access.compile import labels_of
from quarry.errors import FilterError, QuestionError, UsageError
from quarry.records import Mode, SearchResult, Status, TextRow, VectorRow
from quarry.revisions import narrow
from serve.http.schemas import search_json
from tests.unit.serve.serve_world import OneOf, World, names

MODES = list(Mode)


def after_search(store: Any, act: Callable[[], object], times: int = 1) -> OneOf:
    """The store; `act` happens between its answer to a search and the reader's next step."""
    left = [times]

    def search(*args: Any, **kwargs: Any) -> Any:
        hits = store.search(*args, **kwargs)
        if left[0] > 0:
            left[0] -= 1
            act()
        return hits

    return OneOf(store, search=search)


def counting(store: Any) -> tuple[OneOf, list[int]]:
    limits: list[int] = []

    def search(*args: Any, limit: int, **kwargs: Any) -> Any:
        limits.append(limit)
        return store.search(*args, limit=limit, **kwargs)

    return OneOf(store, search=search), limits


def blind(store: Any) -> OneOf:
    """A store that ignores the filter: a cache whose labels are all wrong."""

    def search(*args: Any, where: Any, **options: Any) -> Any:
        return store.search(*args, where=EVERYTHING, **options)

    return OneOf(store, search=search)


def texts(result: SearchResult) -> set[str]:
    return {candidate.chunk.text for candidate in result.candidates}


# --------------------------------------------------------------------------------- who may read


@pytest.mark.parametrize("mode", MODES)
async def test_nobody_sees_only_what_is_public(mode: Mode) -> None:
    world = World()
    world.add("open", "tents may be returned")
    world.add("closed", "tents are made in secret", acl=("staff",))
    world.add("unlabelled", "tents without any list of readers", acl=())
    assert names(await world.search("tents", mode=mode)) == ["open"]


@pytest.mark.parametrize("mode", MODES)
async def test_a_group_or_a_name_opens_what_it_is_listed_on(mode: Mode) -> None:
    world = World()
    world.add("group", "tents of the group", acl=("staff",))
    world.add("mine", "tents of one person", acl=("user:mei",))
    found = await world.search("tents", mode=mode, user="mei", groups=["staff"])
    assert sorted(names(found)) == ["group", "mine"]
    assert names(await world.search("tents", mode=mode, user="jonas")) == []


async def test_another_tenant_is_never_seen() -> None:
    world = World()
    world.add("theirs", "tents of another tenant", tenant="other")
    assert names(await world.search("tents")) == []


@pytest.mark.parametrize("mode", MODES)
async def test_the_catalog_keeps_readers_out_whatever_the_stores_say(mode: Mode) -> None:
    world = World()
    world.add("open", "tents may be returned")
    for number in range(30):
        world.add(f"closed-{number}", f"tents tents tents {number}", acl=("staff",))
    world.add("draft", "tents in a draft", status=Status.DRAFT)
    world.add("gone", "tents that were deleted")
    world.remove("gone")
    world.replace_store(text=blind(world.stores.text), vectors=blind(world.stores.vectors))
    assert names(await world.search("tents", mode=mode)) == ["open"]


async def test_narrowing_is_in_force_before_the_rows_say_so() -> None:
    world = World()
    document = world.add("plan", "tents are cheap")
    narrow(world.stores, document, replace(document, acl=("staff",)))
    assert names(await world.search("tents")) == []


async def test_what_may_not_be_read_leaves_no_mark_on_the_answer() -> None:
    plain, crowded = World(), World()
    for world in (plain, crowded):
        for number in range(12):
            world.add(f"open-{number}", f"tents may be returned {number} times")
    for number in range(400):
        crowded.add(f"closed-{number}", f"tents tents {number}", acl=("staff",))
    for store in ("text", "vectors"):
        crowded.replace_store(**{store: blind(getattr(crowded.stores, store))})
    assert _visible(await plain.search("tents")) == _visible(await crowded.search("tents"))


def _visible(result: SearchResult) -> str:
    """All that a caller can see, less times and scores of words (idf knows the whole index)."""
    body = search_json(result)
    for stage in body["trace"]:
        del stage["ms"]
    for found in body["results"]:
        del found["signals"]["lexical_score"]
    return json.dumps(body, sort_keys=True)


WORDS = st.sampled_from("tent stove rope refund store credit days axis drive".split())
DOCUMENTS = st.lists(
    st.tuples(
        st.lists(WORDS, min_size=1, max_size=6),
        st.sets(st.sampled_from(["public", "staff", "legal", "user:mei"]), max_size=2),
        st.sampled_from(["live", "deleted", "draft", "replaced"]),
    ),
    min_size=1,
    max_size=8,
)


@settings(max_examples=150, deadline=None)
@given(
    documents=DOCUMENTS,
    question=st.lists(WORDS, min_size=1, max_size=4),
    user=st.sampled_from(["", "mei", "jonas"]),
    groups=st.sets(st.sampled_from(["staff", "legal"])),
    mode=st.sampled_from(MODES),
    lying=st.booleans(),
)
async def test_only_readable_chunks_of_committed_revisions_come_out(
    documents: Any, question: Any, user: str, groups: set[str], mode: Mode, lying: bool
) -> None:
    world = World()
    allowed: set[str] = set()
    held = {"public", *groups, *([f"user:{user}"] if user else [])}
    for number, (words, acl, fate) in enumerate(documents):
        text = " ".join([*words, str(number)])
        status = Status.DRAFT if fate == "draft" else Status.CURRENT
        facts: dict[str, Any] = {"acl": tuple(sorted(acl)), "status": status}
        world.add(f"d{number}", text, **facts)
        if fate == "deleted":
            world.remove(f"d{number}")
        elif fate == "replaced":
            text = f"{text} again"
            world.add(f"d{number}", text, **facts)
        if held & acl and fate in ("live", "replaced"):
            allowed.add(text)
    if lying:
        world.replace_store(text=blind(world.stores.text), vectors=blind(world.stores.vectors))
    result = await world.search(
        " ".join(question), user=user, groups=sorted(groups), mode=mode, top_k=50
    )
    answer = await world.ask(" ".join(question), user=user, groups=sorted(groups), mode=mode)
    assert texts(result) <= allowed
    assert mode is Mode.LEXICAL or texts(result) == allowed
    assert all(any(c.quote in text for text in allowed) for c in answer.citations)


# ------------------------------------------------------------------------------------- versions


async def test_only_the_current_version_of_a_series_is_served_unless_all_are_asked_for() -> None:
    world = World()
    for version, weeks in (("3", 16), ("4", 20)):
        world.add(f"leave-v{version}", f"leave is {weeks} weeks", series="HR-014", version=version)
    assert names(await world.search("leave weeks")) == ["leave-v4"]
    every = await world.search("leave weeks", all_versions=True)
    assert sorted(names(every)) == ["leave-v3", "leave-v4"]


async def test_a_version_that_may_not_be_read_does_not_hide_the_one_that_may() -> None:
    world = World()
    world.add("old", "leave is 16 weeks", series="HR", version="3")
    world.add("new", "leave is 20 weeks", series="HR", version="4", acl=("staff",))
    assert names(await world.search("leave weeks")) == ["old"]
    assert names(await world.search("leave weeks", groups=["staff"])) == ["new"]


@pytest.mark.parametrize("filter", ["", "source = hr"])
async def test_another_source_does_not_hide_a_document_by_a_higher_version(filter: str) -> None:
    world = World()
    world.add("old", "leave is 12 weeks", source="hr", series="leave", version="1")
    world.add("new", "leave is 20 weeks", source="hr", series="leave", version="2")
    world.add("claim", "leave is one day", source="wiki", series="leave", version="999")
    found = sorted(names(await world.search("leave weeks", filter=filter)))
    assert found == (["new"] if filter else ["claim", "new"])


async def test_a_version_that_is_not_in_effect_yet_waits() -> None:
    world = World()
    tomorrow = datetime.now(UTC).date() + timedelta(days=2)
    world.add("now", "leave is 16 weeks", series="HR", version="3")
    world.add("soon", "leave is 20 weeks", series="HR", version="4", effective=tomorrow)
    assert names(await world.search("leave weeks")) == ["now"]


async def test_drafts_are_served_to_who_asks_for_them_by_status() -> None:
    world = World()
    world.add("draft", "tents in a draft", status=Status.DRAFT)
    assert names(await world.search("tents")) == []
    assert names(await world.search("tents", filter="status = draft")) == ["draft"]


async def test_the_filter_is_held_exactly_even_if_the_stores_are_not() -> None:
    world = World()
    world.add("eu", "tents", metadata={"region": "EU"})
    world.add("us", "tents", metadata={"region": "US"})
    world.replace_store(text=blind(world.stores.text), vectors=blind(world.stores.vectors))
    assert names(await world.search("tents", filter="region = EU")) == ["eu"]


# ------------------------------------------------------------------------------------- enough


@pytest.mark.parametrize("mode", MODES)
async def test_results_reach_k_through_a_crowd_of_superseded_versions(mode: Mode) -> None:
    world = World()
    for number in range(220):
        world.add(f"v{number}", f"tents tents tents {number}", series="S", version=str(number))
    for number in range(5):
        world.add(f"other-{number}", f"tents and {number} other things that dilute the words")
    found = await world.search("tents", mode=mode, top_k=6)
    assert len(found.candidates) == 6


async def test_a_deep_search_asks_each_leg_for_as_many_rows() -> None:
    world = World()
    for number in range(150):
        world.add(f"d{number}", f"tents {number}")
    assert len((await world.search("tents", top_k=140)).candidates) == 140


async def test_a_store_that_has_no_more_rows_is_not_asked_again() -> None:
    world = World()
    world.add("one", "tents")
    vectors, limits = counting(world.stores.vectors)
    world.replace_store(vectors=vectors)
    assert len((await world.search("tents", top_k=10)).candidates) == 1
    assert len(limits) == 1


# ------------------------------------------------------------------------ while documents change


@pytest.mark.parametrize("leg", ["text", "vectors"])
async def test_a_document_replaced_during_the_search_is_found_in_its_new_state(leg: str) -> None:
    world = World()
    world.add("page", "tents: 30 days, unused", "tents: 60 days, used")
    store = getattr(world.stores, leg)
    new = ("tents: 45 days, unopened", "tents: 60 days, used")
    world.replace_store(**{leg: after_search(store, partial(world.add, "page", *new))})
    assert texts(await world.search("tents days")) == set(new)


async def test_old_and_new_are_never_mixed_however_often_a_document_changes() -> None:
    world = World()
    world.add("page", "tents 0 a", "tents 0 b")
    world.add("still", "tents that stay")
    turn = iter(range(1, 100))

    def change() -> None:
        number = next(turn)
        world.add("page", f"tents {number} a", f"tents {number} b")

    world.replace_store(text=after_search(world.stores.text, change, times=50))
    result = await world.search("tents")
    revisions = {c.document.revision for c in result.candidates if c.document.uri == "page"}
    assert len(revisions) <= 1
    assert "still" in names(result)


async def test_a_new_version_committed_during_the_search_takes_the_place_of_the_old() -> None:
    world = World()
    world.add("v3", "leave is 16 weeks", series="HR", version="3")

    def publish() -> None:
        world.add("v4", "leave is 20 weeks", series="HR", version="4")

    world.replace_store(vectors=after_search(world.stores.vectors, publish))
    assert names(await world.search("leave weeks", mode=Mode.DENSE)) == ["v4"]


async def test_a_document_deleted_during_the_search_is_gone() -> None:
    world = World()
    world.add("page", "tents")
    gone = after_search(world.stores.vectors, lambda: world.remove("page"))
    world.replace_store(vectors=gone)
    assert names(await world.search("tents", mode=Mode.DENSE)) == []


async def test_rows_left_by_a_crashed_sweep_cost_one_more_look_not_more() -> None:
    world = World()
    world.replace_store(
        text=OneOf(world.stores.text, delete=lambda ids: None),
        vectors=OneOf(world.stores.vectors, delete=lambda ids: None),
    )
    world.add("page", "tents: 30 days")
    world.add("page", "tents: 45 days")
    text, limits = counting(world.stores.text)
    world.replace_store(text=text)
    assert texts(await world.search("tents days")) == {"tents: 45 days"}
    assert len(limits) == 2


async def test_rows_of_an_attempt_that_has_not_committed_are_not_seen_and_not_waited_for() -> None:
    world = World()
    document = world.add("page", "tents: 30 days")
    chunk = world.stores.text.chunks(document.doc_id, document.revision, range(1))[0]
    token = f"{document.serial:08d}-attempt"
    early = replace(chunk, row_id=f"{chunk.chunk_id}.{token}", revision=token, text="not yet")
    labels = labels_of(document)
    vector = world.stores.vectors.fetch([chunk.row_id])[chunk.row_id]
    world.stores.text.upsert([TextRow(chunk=early, labels=labels)])
    world.stores.vectors.upsert(
        [
            VectorRow(
                row_id=early.row_id,
                chunk_id=early.chunk_id,
                doc_id=early.doc_id,
                revision=token,
                labels=labels,
                vector=vector,
            )
        ]
    )
    text, limits = counting(world.stores.text)
    world.replace_store(text=text)
    assert texts(await world.search("tents days")) == {"tents: 30 days"}
    assert len(limits) == 1


# ---------------------------------------------------------------------------------- the request


@pytest.mark.parametrize("question", ["", "   ", "\u200b\n"])
async def test_an_empty_question_is_an_error_of_the_caller(question: str) -> None:
    with pytest.raises(QuestionError, match="empty"):
        await World().search(question)


async def test_a_question_that_is_too_long_is_an_error_of_the_caller() -> None:
    with pytest.raises(QuestionError, match="longer than 2000"):
        await World().search("x" * 2001)


async def test_a_filter_that_does_not_parse_is_an_error_of_the_caller() -> None:
    with pytest.raises(FilterError):
        await World().search("tents", filter="region = = EU")


async def test_a_group_that_poses_as_a_person_is_refused() -> None:
    with pytest.raises(UsageError):
        await World().search("tents", groups=["user:mei"])


async def test_questions_are_cleaned_as_documents_are() -> None:
    world = World()
    world.add("faults", "E-1042 means overcurrent")
    found = await world.search("Ｅ‐１０４２\u200b?", mode=Mode.LEXICAL)
    assert names(found) == ["faults"]


async def test_the_legs_are_asked_at_the_same_time() -> None:
    world = World()
    world.add("page", "tents")
    both = threading.Barrier(2, timeout=10)

    def together(store: Any) -> OneOf:
        def search(*args: Any, **kwargs: Any) -> Any:
            both.wait()
            return store.search(*args, **kwargs)

        return OneOf(store, search=search)

    world.replace_store(text=together(world.stores.text), vectors=together(world.stores.vectors))
    result = await world.search("tents")
    assert result.degraded == () and names(result) == ["page"]


@pytest.mark.parametrize("mode", [Mode.HYBRID, Mode.DENSE])
@pytest.mark.parametrize("lost", [1, 10])
async def test_others_take_the_place_of_those_whose_texts_are_lost(mode: Mode, lost: int) -> None:
    world = World()
    for number in range(20):
        world.add(f"page-{number}", f"motor fault number {number}")
    first = (await world.search("motor fault", mode=mode)).candidates[:lost]
    rows = {row.row_id for row in world.stores.text.row_refs([c.chunk.doc_id for c in first])}
    world.stores.text.delete(rows)
    found = await world.search("motor fault", mode=mode)
    assert len(found.candidates) == 10
    assert {c.chunk.chunk_id for c in first}.isdisjoint(c.chunk.chunk_id for c in found.candidates)
