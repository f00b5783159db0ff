"""How long replaced and deleted revisions are kept, and that they really go."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from loadtests.chaos.watch import watched
from quarry import retention, revisions
from quarry.entries import mark
from quarry.errors import AsOfError
from quarry.past import check_kept, check_time, parse_time, standing
from quarry.records import Document, Kept
from quarry.settings_stores import StoreSettings
from quarry.stores.factory import Stores
from quarry.stores.memory import MemoryVectorStore
from quarry.stores.sqlite import open_database
from quarry.stores.sqlite_catalog import SqliteCatalog
from quarry.stores.sqlite_text import SqliteTextStore
from quarry.verify import verify
from tests.unit.revisions.revision_world import (
    DIMENSION,
    DOC,
    Crash,
    CrashAt,
    Page,
    incomplete,
    memory_stores,
    shows,
    sync,
)

OLD = Page(("one", "two", "three"), acl=("hr", "ops"))
NEW = Page(("one", "four"), acl=("hr", "ops"))
NEWER = Page(("five",), acl=("hr", "ops"))
NARROW = replace(NEW, acl=("ops",))
BROKEN = replace(OLD, broken=True)
NOON = datetime(2026, 7, 1, 12, tzinfo=UTC)
DAY = timedelta(days=1)


class Clock:
    def __init__(self) -> None:
        self.now = NOON

    def __call__(self) -> datetime:
        return self.now

    def pass_(self, days: float) -> None:
        self.now += days * DAY


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture(params=["memory", "sqlite"])
def stores(request: pytest.FixtureRequest, tmp_path: Path, clock: Clock) -> Iterator[Stores]:
    """Two days of retention, which has begun."""
    made = memory_stores() if request.param == "memory" else sqlite_stores(tmp_path, 2 * DAY)
    kept = replace(made, retention=2 * DAY, clock=clock)
    retention.advance(kept)
    yield kept
    made.close()


def sqlite_stores(folder: Path, kept_for: timedelta) -> Stores:
    database = open_database(folder)
    catalog = SqliteCatalog(database, "g1", retention=kept_for)
    stores = Stores(catalog, SqliteTextStore(database, "g1"), MemoryVectorStore())
    stores.ensure(DIMENSION)
    stores.catalog.put_entry(mark("handbook", unfinished=True))  # no document has an entry
    return stores


def row(stores: Stores, doc: str = DOC) -> Document:
    return stores.catalog.get([doc])[doc]


def rows_of(stores: Stores, revision: str, doc: str = DOC) -> int:
    """Rows of a revision that both stores hold."""
    counts = {
        sum(ref.revision == revision for ref in store.row_refs([doc]))
        for store in (stores.text, stores.vectors)
    }
    (count,) = counts
    return count


# ----------------------------------------------------------------------------------- what stays


def test_a_replaced_revision_stays_for_the_retention_and_goes_after_it(
    stores: Stores, clock: Clock
) -> None:
    sync(stores, OLD)
    first = row(stores).revision
    clock.pass_(1)
    sync(stores, NEW)
    second = row(stores)
    for _ in range(2):
        retention.expire(stores)
        assert rows_of(stores, first) == 3
        clock.pass_(1)
    clock.pass_(0.1)
    assert retention.expire(stores) == 1
    assert rows_of(stores, first) == 0
    assert stores.catalog.history(DOC) == [second]
    assert shows(stores, NEW)
    assert not verify(stores, repair=False).found


def test_neither_commits_nor_sweeps_take_what_is_kept(stores: Stores, clock: Clock) -> None:
    held = []
    for page in (OLD, NEW, NARROW, BROKEN, NEWER):
        clock.pass_(0.1)
        sync(stores, page)
        held.append(row(stores).revision)
        revisions.settle(stores, revisions.narrow(stores, row(stores), row(stores)))
        revisions.sweep(stores, row(stores))
    assert not verify(stores, repair=True).found
    assert [rows_of(stores, revision) for revision in held] == [3, 2, 2, 2, 1]


def test_a_failed_reading_keeps_the_past_as_it_is(stores: Stores, clock: Clock) -> None:
    sync(stores, OLD)
    first = row(stores).revision
    sync(stores, NEW)
    clock.pass_(1.9)
    sync(stores, BROKEN)
    clock.pass_(0.2)
    sync(stores, replace(BROKEN, passages=("another",)))
    assert retention.expire(stores) == 1
    assert rows_of(stores, first) == 0
    assert not verify(stores, repair=False).found


def test_labels_that_were_changed_stay_and_go_as_texts_do(stores: Stores, clock: Clock) -> None:
    sync(stores, NEW)
    wide = row(stores).revision
    clock.pass_(0.1)
    sync(stores, NARROW)
    assert rows_of(stores, wide) == 2
    clock.pass_(2.1)
    retention.expire(stores)
    assert rows_of(stores, wide) == 0
    assert shows(stores, NARROW)
    assert len(stores.catalog.history(DOC)) == 1


def test_a_deleted_document_goes_at_once_with_all_its_revisions(
    stores: Stores, clock: Clock
) -> None:
    sync(stores, OLD)
    clock.pass_(0.1)
    sync(stores, NEW)
    clock.pass_(0.1)
    sync(stores, None)
    assert stores.text.count() == stores.vectors.count() == 0
    clock.pass_(0.1)
    sync(stores, NEWER)
    kept, history = stores.catalog.kept(), stores.catalog.history(DOC)
    assert [standing(history, kept, NOON + days * DAY) for days in (0.05, 0.15)] == [None, None]
    assert standing(history, kept, clock()) == row(stores)


def test_a_deleted_document_stays_for_the_retention_if_the_settings_say_so(
    stores: Stores, clock: Clock
) -> None:
    stores = replace(stores, retain_deleted=True)
    retention.advance(stores)
    sync(stores, OLD)
    clock.pass_(1)
    sync(stores, None)
    clock.pass_(1.9)
    retention.expire(stores)
    assert not verify(stores, repair=True).found
    assert stores.text.count() == stores.vectors.count() == 3
    assert shows(stores, None)
    clock.pass_(0.2)
    retention.expire(stores)
    assert stores.text.count() == stores.vectors.count() == 0


def test_what_was_deleted_before_that_was_set_stays_deleted(stores: Stores, clock: Clock) -> None:
    sync(stores, OLD)
    clock.pass_(0.1)
    sync(stores, None)
    clock.pass_(0.1)
    stores = replace(stores, retain_deleted=True)
    retention.advance(stores)
    kept, history = stores.catalog.kept(), stores.catalog.history(DOC)
    assert len(history) == 2
    assert standing(history, kept, NOON + 0.05 * DAY) is None


def test_keeping_deleted_documents_no_longer_takes_those_that_were_kept(
    stores: Stores, clock: Clock
) -> None:
    keeping = replace(stores, retain_deleted=True)
    retention.advance(keeping)
    sync(keeping, OLD)
    sync(keeping, None)
    assert stores.text.count() == 3
    assert verify(stores, repair=True).found == {"rows_of_deleted": 1}
    assert stores.text.count() == stores.vectors.count() == 0


# -------------------------------------------------------------------------- changes of settings


def test_the_past_begins_when_a_retention_is_first_set(stores: Stores, clock: Clock) -> None:
    none = replace(stores, retention=timedelta(0))
    retention.advance(none)
    assert stores.catalog.kept() == Kept()
    sync(none, OLD)
    clock.pass_(1)
    retention.advance(stores)
    assert stores.catalog.kept() == Kept(since=clock())
    with pytest.raises(AsOfError, match="2026-07-02 12:01 UTC"):
        check_kept(NOON + 0.5 * DAY, stores.catalog.kept())


def test_a_longer_retention_does_not_bring_back_what_is_gone(stores: Stores, clock: Clock) -> None:
    sync(stores, OLD)
    sync(stores, NEW)
    clock.pass_(5)
    retention.expire(stores)
    gone = stores.catalog.kept().since
    assert gone == NOON + 3 * DAY - retention.GRACE
    longer = replace(stores, retention=30 * DAY)
    clock.pass_(1)
    retention.advance(longer)
    assert stores.catalog.kept().since == gone


def test_a_shorter_retention_takes_what_it_does_not_reach(stores: Stores, clock: Clock) -> None:
    sync(stores, OLD)
    sync(stores, NEW)
    clock.pass_(1)
    shorter = replace(stores, retention=DAY / 2)
    assert retention.expire(shorter) == 1
    assert stores.text.count() == 2


def test_without_a_retention_all_that_was_kept_goes(stores: Stores, clock: Clock) -> None:
    sync(stores, OLD)
    sync(stores, NEW)
    clock.pass_(0.1)
    none = replace(stores, retention=timedelta(0))
    assert retention.overdue(none.catalog, StoreSettings(), now=clock())
    assert retention.expire(none) == 1
    assert stores.text.count() == stores.vectors.count() == 2
    assert stores.catalog.kept() == Kept()
    assert not retention.overdue(none.catalog, StoreSettings(), now=clock())


def test_a_run_with_nothing_to_do_is_told_when_something_has_expired(
    stores: Stores, clock: Clock
) -> None:
    def overdue(deleted: bool = False) -> bool:
        settings = StoreSettings(retention_days=2, retain_deleted=deleted)
        return retention.overdue(stores.catalog, settings, now=clock())

    sync(stores, OLD)
    sync(stores, NEW)
    clock.pass_(2)
    assert not overdue()
    assert overdue(deleted=True)
    clock.pass_(0.1)
    assert overdue()
    retention.expire(stores)
    assert not overdue()


def test_many_documents_expire_page_by_page(
    stores: Stores, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retention, "PAGE_DOCUMENTS", 2)
    names = [f"d{n}" for n in range(7)]
    for page in (OLD, NEW):
        for name in names:
            sync(stores, page, name)
    clock.pass_(3)
    assert retention.expire(stores) == 7
    assert stores.text.count() == stores.vectors.count() == 14
    assert all(shows(stores, NEW, name) for name in names)


def test_a_crash_at_any_call_loses_nothing_that_is_kept_and_the_next_run_goes_on(
    clock: Clock,
) -> None:
    points = 0
    for call in range(100):
        clock.now = NOON
        stores = replace(memory_stores(), retention=2 * DAY, clock=clock)
        retention.advance(stores)
        for page, days in ((OLD, 1), (NEW, 1.5), (NEWER, 1)):
            sync(stores, page)
            clock.pass_(days)
        second = stores.catalog.history(DOC)[1]
        try:
            retention.expire(watched(stores, CrashAt(call, torn=True)))
        except Crash:
            points += 1
        else:
            break
        finally:
            assert rows_of(stores, second.revision) == 2
            assert incomplete(stores) == [] and shows(stores, NEWER)
            kept = stores.catalog.kept()
            seen = standing(stores.catalog.history(DOC), kept, kept.since or NOON)
            assert not seen or seen.chunk_count == rows_of(stores, seen.revision)
        retention.expire(stores)
        assert stores.text.count() == stores.vectors.count() == 3
    assert points >= 8


# ------------------------------------------------------------------------------ the time that is


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2026-06-30", datetime(2026, 6, 30, 23, 59, 59, 999_999, tzinfo=UTC)),
        ("20260630", datetime(2026, 6, 30, 23, 59, 59, 999_999, tzinfo=UTC)),
        ("2026-07-01", NOON),
        ("2026-06-30T14:30", datetime(2026, 6, 30, 14, 30, tzinfo=UTC)),
        ("2026-06-30 14:30:05", datetime(2026, 6, 30, 14, 30, 5, tzinfo=UTC)),
        ("2026-06-30T14:30Z", datetime(2026, 6, 30, 14, 30, tzinfo=UTC)),
        ("2026-06-30T14:30+02:00", datetime(2026, 6, 30, 12, 30, tzinfo=UTC)),
    ],
)
def test_a_time_is_a_date_or_a_date_and_time(text: str, moment: datetime) -> None:
    assert parse_time(text, NOON) == moment


@pytest.mark.parametrize(
    "text", ["", "yesterday", "2026-02-30", "2026-06-30T25:00", "0001-01-01T00:00+23:00", "\x00"]
)
def test_what_is_no_time_is_refused_in_one_sentence(text: str) -> None:
    with pytest.raises(AsOfError) as caught:
        parse_time(text, NOON)
    assert "2026-01-31" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_time_beyond_what_is_kept_is_refused_and_the_setting_named() -> None:
    def refused(moment: datetime, kept_for: timedelta) -> str:
        with pytest.raises(AsOfError) as caught:
            check_time(moment, retention=kept_for, now=NOON)
        return str(caught.value)

    assert "stores.retention_days" in refused(NOON, timedelta(0))
    assert "future" in refused(NOON + timedelta(seconds=1), DAY)
    assert "1.5 days" in refused(NOON - 2 * DAY, 1.5 * DAY)
    assert "stores.retention_days" in refused(NOON - 2 * DAY, 1.5 * DAY)
    check_time(NOON - DAY, retention=DAY, now=NOON)
    check_time(NOON, retention=DAY, now=NOON)


def test_the_time_that_a_refusal_names_is_not_refused() -> None:
    kept = Kept(since=NOON + timedelta(seconds=30))
    with pytest.raises(AsOfError) as caught:
        check_kept(NOON, kept)
    named = str(caught.value).split("since ")[1].split(" UTC")[0]
    check_kept(parse_time(named, NOON + DAY), kept)


def test_before_the_first_run_with_a_retention_nothing_is_kept() -> None:
    with pytest.raises(AsOfError, match="quarry ingest"):
        check_kept(NOON, Kept())
