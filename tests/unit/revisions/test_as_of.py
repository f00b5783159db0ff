"""A search of the past shows what was served then, to who could read it then and may today."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loadtests.chaos.watch import watched
from quarry import retention
from quarry.errors import AsOfError
from quarry.records import AnswerStatus, DocState, Mode, Principal
from quarry.revisions import narrow
from quarry.verify import verify
from serve.finding import retrieve
from tests.unit.revisions.as_of_world import HOUR, NOON, Past, people
from tests.unit.revisions.revision_world import Crash, CrashAt, Page, memory_stores, sync
from tests.unit.serve.serve_world import World, names

KEPT_HOURS = 50.0
NOBODY, HR, ENG = people((), ("hr",), ("eng",))
OLD, NEW = Page(("one", "two")), Page(("one", "three"))


def past(*, keep_deleted: bool = False) -> Past:
    made = replace(memory_stores(), retention=KEPT_HOURS * HOUR, retain_deleted=keep_deleted)
    world = Past(made)
    world.ingest_ends()
    return world


# ---------------------------------------------------------------------------- what was served


@pytest.mark.parametrize("mode", list(Mode))
def test_each_time_shows_the_revision_that_was_committed_then(mode: Mode) -> None:
    world = past()
    for hours, page in ((1, OLD), (2, NEW), (3, Page(("four",)))):
        world.hours = hours
        world.change("d1", page)
    world.hours = 4
    for hours, texts in ((0.5, None), (1, OLD), (1.9, OLD), (2, NEW), (4, Page(("four",)))):
        expected = {"d1": texts.texts} if texts else {}
        assert world.found(hours, NOBODY, mode=mode) == expected
    assert world.found(None, NOBODY, mode=mode) == {"d1": frozenset({"tent four"})}


def test_a_later_document_is_absent() -> None:
    world = past()
    world.change("d1", OLD)
    world.hours = 2
    world.change("d2", NEW)
    assert set(world.found(1, NOBODY)) == {"d1"}
    assert set(world.found(2, NOBODY)) == {"d1", "d2"}


def test_the_filter_is_held_to_the_metadata_of_that_time() -> None:
    world = past()
    world.change("d1", replace(OLD, metadata={"region": "EU"}))
    world.hours = 2
    world.change("d1", replace(OLD, metadata={"region": "US"}))
    assert set(world.found(1, NOBODY, filter="region = EU")) == {"d1"}
    assert set(world.found(1, NOBODY, filter="region = US")) == set()
    assert set(world.found(2, NOBODY, filter="region = US")) == {"d1"}


def test_a_failed_reading_changes_nothing_that_was_served() -> None:
    world = past()
    world.change("d1", OLD)
    world.hours = 1
    world.change("d1", replace(NEW, broken=True))
    assert world.found(1, NOBODY) == {"d1": OLD.texts}


def test_k_results_are_reached_through_a_crowd_of_other_revisions(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(retrieve, "MOST_ROWS", 50)
    world = past()
    for number in range(40):
        world.hours = number / 10
        for doc in range(5):
            world.change(f"d{doc}", Page((f"{doc} {number}", f"{doc} {number} more")))
    for mode in Mode:
        for hours in (0.0, 1.55, 3.9, None):
            found = world.found(hours, NOBODY, mode=mode, top_k=10, candidates=10)
            number = 39 if hours is None else round(hours * 10 - 0.01)
            assert {t for texts in found.values() for t in texts} == {
                f"tent {doc} {number}{more}" for doc in range(5) for more in ("", " more")
            }


# ------------------------------------------------------------------------------- who may read


def test_what_is_forbidden_today_is_not_shown_as_of_the_past() -> None:
    world = past()
    world.change("d1", replace(OLD, acl=("hr", "eng")))
    world.hours = 1
    row = world.stores.catalog.get(["d1"])["d1"]
    narrow(world.stores, row, replace(row, acl=("hr",)))
    assert world.found(0.5, ENG) == {}
    assert world.found(0.5, HR) == {"d1": OLD.texts}


def test_what_was_forbidden_then_is_not_shown_either() -> None:
    world = past()
    world.change("d1", replace(OLD, acl=("hr",)))
    world.hours = 1
    world.change("d1", replace(NEW, acl=("hr", "eng")))
    assert world.found(0.5, ENG) == {}
    assert world.found(1, ENG) == {"d1": NEW.texts}


def test_deleted_stays_deleted() -> None:
    world = past()
    world.change("d1", OLD)
    world.hours = 1
    world.change("d1", None)
    assert world.found(0.5, NOBODY) == {}
    world.hours = 2
    world.change("d1", NEW)
    assert world.found(0.5, NOBODY) == {}
    assert world.found(2, NOBODY) == {"d1": NEW.texts}


def test_deleted_documents_are_shown_to_their_last_readers_if_the_settings_say_so() -> None:
    world = past(keep_deleted=True)
    world.change("d1", replace(OLD, acl=("hr", "eng")))
    world.hours = 1
    world.change("d1", replace(OLD, acl=("hr",)))
    world.hours = 2
    world.change("d1", None)
    assert world.found(0.5, HR) == world.found(1.5, HR) == {"d1": OLD.texts}
    assert world.found(0.5, ENG) == world.found(2, HR) == {}


async def test_versions_are_those_of_that_time_as_this_person_sees_them_today() -> None:
    world, moments = World(), []
    world.stores = replace(world.stores, retention=timedelta(days=1))
    retention.advance(world.stores)
    steps: list[dict[str, Any]] = [
        {"name": "v1", "version": "1"},
        {"name": "v2", "version": "2", "acl": ("staff",)},
        {"name": "v2", "version": "2", "series": "other"},
        {"name": "v3", "version": "3"},
    ]
    for step in steps:
        name = step.pop("name")
        world.add(name, f"leave is {name} weeks", **{"series": "HR", **step})
        moments.append(datetime.now(UTC))
    world.remove("v3")
    shown = [
        [sorted(names(await world.search("leave", as_of=moment, groups=groups)))
         for moment in moments]
        for groups in ([], ["staff"])
    ]  # fmt: skip
    assert shown == [
        [["v1"], ["v1"], ["v1", "v2"], ["v1", "v2"]],
        [["v1"], ["v2"], ["v1", "v2"], ["v1", "v2"]],
    ]


async def test_what_was_not_in_effect_then_is_not_shown() -> None:
    world, now = World(), [NOON]
    world.stores = replace(world.stores, retention=timedelta(days=30), clock=lambda: now[0])
    retention.advance(world.stores)
    world.add("soon", "leave is 20 weeks", effective=date(2026, 7, 5))
    now[0] += timedelta(days=9)
    shown = [names(await world.search("leave", as_of=NOON + timedelta(days=d))) for d in (1, 4)]
    assert shown == [[], ["soon"]]


async def test_an_answer_rests_on_what_was_served_then() -> None:
    world = World()
    world.stores = replace(world.stores, retention=timedelta(days=1))
    retention.advance(world.stores)
    world.add("returns", "Tents are returned within 30 days.")
    then = datetime.now(UTC)
    world.add("returns", "Tents are returned within 60 days.")
    answer = await world.ask("When are tents returned?", as_of=then)
    assert answer.status is AnswerStatus.ANSWERED
    assert {citation.quote for citation in answer.citations} == {
        "Tents are returned within 30 days."
    }


# ------------------------------------------------------------------------------ how far back


@pytest.mark.parametrize("hours", [-1.0, 9.8, 61.0])
def test_a_time_that_is_not_kept_is_refused(hours: float) -> None:
    world = past()
    world.change("d1", OLD)
    world.hours = 60
    with pytest.raises(AsOfError):
        world.found(hours, NOBODY)


def test_a_time_from_before_the_past_was_kept_is_refused() -> None:
    world = past()
    world.stores.catalog.keep(replace(world.stores.catalog.kept(), since=NOON + 5 * HOUR))
    world.hours = 9
    with pytest.raises(AsOfError, match="2026-07-01 17:01 UTC"):
        world.found(4, NOBODY)


def test_without_a_retention_the_setting_is_named() -> None:
    world = Past(memory_stores())
    with pytest.raises(AsOfError, match=r"stores\.retention_days"):
        world.found(0, NOBODY)


# ----------------------------------------------------------------------------------- crashes


@pytest.mark.parametrize("keep_deleted", [False, True])
@pytest.mark.parametrize("after", [NEW, replace(OLD, acl=("hr",)), None])
def test_a_crash_at_any_step_leaves_the_past_whole(after: Page | None, keep_deleted: bool) -> None:
    points = 0
    for call in range(100):
        world = past(keep_deleted=keep_deleted)
        for hours, page in ((0, OLD), (1, Page(("one", "four"), acl=("hr", "eng")))):
            world.hours = hours
            world.change("d1", page)
        world.hours = 2
        try:
            sync(watched(world.stores, CrashAt(call, torn=True)), after, "d1")
        except Crash:
            points += 1
        else:
            break
        for hours, texts in ((0.5, {"tent one", "tent two"}), (1.5, {"tent one", "tent four"})):
            assert world.found(hours, HR) in ({}, {"d1": texts})
            if after or keep_deleted:
                assert world.found(hours, HR) == {"d1": texts}
        world.ingest_ends()
        world.change("d1", after)
        assert world.found(1.5, HR) == world.shown(1.5, HR)
        assert world.found(0.5, ENG) == world.shown(0.5, ENG)
    assert points >= 4


# ------------------------------------------------------------------------------- any history

PAGES = st.builds(
    Page,
    passages=st.sets(st.sampled_from("abcde"), min_size=1, max_size=3).map(
        lambda words: tuple(sorted(words))
    ),
    acl=st.sets(st.sampled_from(["public", "hr", "eng"]), max_size=2).map(
        lambda scopes: tuple(sorted(scopes))
    ),
    broken=st.sampled_from([False, False, False, True]),
)
STEPS = st.lists(
    st.tuples(
        st.sampled_from([0.0, 0.5, 3.0, 20.0]),
        st.sampled_from(["d1", "d2", "d3"]),
        st.one_of(PAGES, PAGES, st.sampled_from([None, "ingest ends", "verify"])),
    ),
    min_size=1,
    max_size=12,
)
PERSON = st.sampled_from(people((), ("hr",), ("eng",), ("hr", "eng")))


@settings(max_examples=300, deadline=None)
@given(
    steps=STEPS,
    keep_deleted=st.booleans(),
    asked=st.lists(
        st.tuples(st.integers(0, 400), PERSON, st.sampled_from(list(Mode))),
        min_size=1,
        max_size=6,
    ),
)
def test_the_past_is_what_a_replay_of_all_changes_says(
    steps: Any, keep_deleted: bool, asked: list[tuple[int, Principal, Mode]]
) -> None:
    world = past(keep_deleted=keep_deleted)
    for pause, doc, change in steps:
        world.hours += pause
        if change == "ingest ends":
            world.ingest_ends()
        elif change == "verify":
            assert verify(world.stores, repair=True).clean
        else:
            world.change(doc, change)
    for halves, person, mode in asked:
        hours = halves / 2 % (world.hours + 1)
        if world.hours - KEPT_HOURS <= hours <= world.hours:
            expected = world.shown(hours, person)
            assert world.found(hours, person, mode=mode) == expected
            assert expected.keys() <= readable_now(world, person)
        else:
            with pytest.raises(AsOfError):
                world.found(hours, person, mode=mode)
    for person in (NOBODY, HR, ENG):
        assert world.found(None, person) == world.shown(world.hours, person)


def readable_now(world: Past, person: Principal) -> set[str]:
    """By the catalog alone: documents whose ACL of today names this person."""
    rows = world.stores.catalog.get(["d1", "d2", "d3"])
    scopes = {"public", *person.groups}
    return {
        doc
        for doc, row in rows.items()
        if scopes & set(row.acl)
        and (row.state is not DocState.DELETED or world.stores.retain_deleted)
    }
