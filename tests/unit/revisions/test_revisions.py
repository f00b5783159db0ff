"""What each function of the commit protocol does, one at a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from loadtests.chaos.watch import watched
from quarry import revisions
from quarry.errors import Conflict, RowsRejected, StoreError, StoreUnavailable
from quarry.records import DocState, Document, Principal, Status
from quarry.revisions import Change
from quarry.stores.factory import Stores
from tests.unit.revisions.revision_world import (
    DOC,
    Page,
    chunks_of,
    document_of,
    embed,
    garbage,
    incomplete,
    memory_stores,
    read,
    shows,
    sync,
)

OLD = Page(("one", "two", "three"), acl=("hr", "ops"))
NEW = Page(("one", "four"), acl=("hr", "ops"))
NARROW = replace(OLD, acl=("ops",))
WIDE = replace(OLD, acl=("hr", "ops", "eng"))
NOON = datetime(2026, 7, 1, 12, tzinfo=UTC)
HR, ENG = (Principal(user="x", groups=(group,)) for group in ("hr", "eng"))


@pytest.fixture
def stores() -> Stores:
    return memory_stores()


def row(stores: Stores, doc: str = DOC) -> Document:
    return stores.catalog.get([doc])[doc]


def change(page: Page, base: Document | None = None, doc: str = DOC) -> Change:
    return Change(base=base, document=document_of(page, doc), chunks=chunks_of(page, doc))


def vectors_of(*pages: Page) -> dict[str, Any]:
    return {c.text_hash: embed(c.text) for page in pages for c in chunks_of(page)}


def failing(stores: Stores, at: str, error: Exception) -> Stores:
    """The same stores, but the call `store.method` raises instead."""

    def hook(store: str, method: str, *_: object) -> None:
        if f"{store}.{method}" == at:
            raise error

    return watched(stores, hook)


def calls_of(stores: Stores) -> tuple[Stores, list[str]]:
    calls: list[str] = []
    return watched(stores, lambda store, method, *_: calls.append(f"{store}.{method}")), calls


# ------------------------------------------------------------------------------------ commits


def test_a_commit_stamps_rows_and_the_catalog_row(stores: Stores) -> None:
    stores = replace(stores, clock=lambda: NOON)
    outcome = revisions.commit_revision(
        stores,
        base=None,
        document=document_of(OLD),
        chunks=chunks_of(OLD),
        vectors=vectors_of(OLD),
    )
    document = row(stores)
    assert outcome.document == document
    assert (document.serial, document.chunk_count) == (1, 3)
    assert (document.indexed_at, document.committed_at) == (NOON, NOON)
    assert {ref.revision for ref in stores.text.row_refs([DOC])} == {document.revision}
    assert shows(stores, OLD)


def test_an_update_counts_the_chunks_that_are_gone(stores: Stores) -> None:
    sync(stores, OLD)
    outcome = revisions.commit_revision(
        stores,
        base=row(stores),
        document=document_of(NEW),
        chunks=chunks_of(NEW),
        vectors=vectors_of(NEW),
    )
    assert outcome.deleted == 2
    assert shows(stores, NEW)
    assert garbage(stores) == []


def test_vectors_of_known_texts_are_found_whatever_document_holds_them(stores: Stores) -> None:
    sync(stores, OLD, "other")
    hashes = [chunk.text_hash for chunk in chunks_of(NEW)]
    known = revisions.known_vectors(stores, hashes)
    assert list(known) == [hashes[0]]
    assert known[hashes[0]].tolist() == embed(chunks_of(NEW)[0].text).tolist()


def test_many_documents_cost_as_many_store_calls_as_one(stores: Stores) -> None:
    counts = []
    for number in (1, 20):
        seen, calls = calls_of(memory_stores())
        changes = [change(OLD, doc=f"d{n}") for n in range(number)]
        outcomes = revisions.commit_many(seen, changes, vectors_of(OLD))
        assert all(outcome.error is None for outcome in outcomes)
        counts.append(len(calls))
    assert counts[0] == counts[1]


def test_a_batch_of_nothing_asks_no_store_for_anything(stores: Stores) -> None:
    seen, calls = calls_of(stores)
    assert revisions.commit_many(seen, [], {}) == []
    assert calls == []


def test_in_a_batch_each_document_succeeds_or_fails_on_its_own(stores: Stores) -> None:
    sync(stores, OLD, "moved")
    bad = change(NEW, doc="bad")
    bad = replace(bad, chunks=[replace(bad.chunks[0], text="half a pair \ud83c"), bad.chunks[1]])
    changes = [change(OLD, doc="good"), bad, change(NEW, None, "moved"), change(NEW, doc="fine")]
    outcomes = revisions.commit_many(stores, changes, vectors_of(OLD, NEW))
    assert [type(outcome.error) for outcome in outcomes] == [
        type(None),
        RowsRejected,
        Conflict,
        type(None),
    ]
    assert [outcome.document is not None for outcome in outcomes] == [True, False, False, True]
    assert shows(stores, OLD, "good")
    assert shows(stores, NEW, "fine")
    assert shows(stores, OLD, "moved")
    assert garbage(stores) == []


def test_a_document_without_chunks_is_committed_with_nothing_to_serve(stores: Stores) -> None:
    sync(stores, OLD)
    empty = replace(document_of(Page(())), state=DocState.EMPTY)
    revisions.commit_revision(stores, base=row(stores), document=empty, chunks=[], vectors={})
    assert (row(stores).revision, row(stores).state) == ("", DocState.EMPTY)
    assert stores.text.count() == stores.vectors.count() == 0


def test_indexed_without_chunks_is_never_committed(stores: Stores) -> None:
    with pytest.raises(ValueError, match="says why"):
        revisions.commit_revision(
            stores, base=None, document=document_of(OLD), chunks=[], vectors={}
        )
    assert stores.catalog.get([DOC]) == {}


def test_a_commit_from_an_old_row_is_a_conflict_and_leaves_nothing(stores: Stores) -> None:
    sync(stores, OLD)
    base = row(stores)
    sync(stores, NEW)
    with pytest.raises(Conflict):
        revisions.commit_revision(
            stores,
            base=base,
            document=document_of(OLD),
            chunks=chunks_of(OLD),
            vectors=vectors_of(OLD),
        )
    assert shows(stores, NEW)
    assert garbage(stores) == []


def test_rows_that_a_store_lost_are_never_committed(stores: Stores) -> None:
    class Forgetful(type(stores.vectors)):  # type: ignore[misc]
        def upsert(self, rows: Sequence[Any]) -> None:
            super().upsert(rows[1:])

    broken = replace(stores, vectors=Forgetful())
    broken.ensure(4)
    with pytest.raises(StoreError, match="missing"):
        sync(broken, OLD)
    assert stores.catalog.get([DOC]) == {}
    assert stores.text.count() == 0


def test_a_commit_whose_answer_was_lost_counts_as_made(stores: Stores) -> None:
    class Deaf(type(stores.catalog)):  # type: ignore[misc]
        """Tries again after a time-out, and hears that its own first try stands."""

        def commit_many(self, documents: Sequence[Document]) -> list[Document | Conflict]:
            super().commit_many(documents)
            return list(super().commit_many(documents))

    deaf = replace(stores, catalog=Deaf())
    sync(deaf, OLD)
    assert shows(deaf, OLD)
    assert incomplete(deaf) == []


def test_when_the_catalog_cannot_be_reached_the_rows_stay_until_it_is_known(
    stores: Stores,
) -> None:
    sync(stores, OLD)
    with pytest.raises(StoreUnavailable):
        sync(failing(stores, "catalog.commit_many", StoreUnavailable("down")), NEW)
    assert len(garbage(stores)) == 4
    assert shows(stores, OLD)
    sync(stores, OLD)
    assert garbage(stores) == []


def test_the_time_of_commits_never_runs_backwards(stores: Stores) -> None:
    sync(replace(stores, clock=lambda: NOON), OLD)
    sync(replace(stores, clock=lambda: NOON - timedelta(hours=1)), NEW)
    assert row(stores).committed_at == NOON


# ----------------------------------------------------------------------------------- failures


def test_a_failed_update_keeps_the_last_good_revision_serving(stores: Stores) -> None:
    sync(stores, OLD)
    good = row(stores)
    sync(stores, replace(NEW, broken=True))
    failed = row(stores)
    assert (failed.state, failed.error) == (DocState.CORRUPT, "it cannot be read")
    assert failed.revision == good.revision
    assert failed.content_hash == good.content_hash
    assert shows(stores, OLD)


def test_a_failure_of_a_new_document_is_recorded_and_serves_nothing(stores: Stores) -> None:
    sync(stores, replace(OLD, broken=True))
    assert (row(stores).state, row(stores).revision) == (DocState.CORRUPT, "")
    assert (row(stores).chunk_count, row(stores).indexed_at) == (0, None)
    assert shows(stores, None)


def test_a_failure_leaves_what_was_deleted_by_hand_as_it_is(stores: Stores) -> None:
    sync(stores, OLD)
    tombstone = revisions.bury(stores, row(stores), by_hand=True)
    sync(stores, replace(NEW, broken=True))
    assert row(stores) == tombstone


@pytest.mark.parametrize(
    ("acl", "kept"),
    [
        (("ops",), ("ops",)),
        ((), ()),
        (("eng",), ()),
        (("ops", "eng"), ("ops",)),
        (("hr", "ops"), ("hr", "ops")),
        (("public",), ("hr", "ops")),
    ],
)
def test_a_failed_update_takes_away_what_it_no_longer_grants_and_gives_nothing(
    stores: Stores, acl: tuple[str, ...], kept: tuple[str, ...]
) -> None:
    sync(stores, OLD)
    for _ in range(2):
        sync(stores, replace(NEW, acl=acl, broken=True))
        assert (row(stores).acl, row(stores).state) == (kept, DocState.CORRUPT)
        assert shows(stores, replace(OLD, acl=kept))
    sync(stores, OLD)
    assert shows(stores, OLD)
    assert garbage(stores) == []


def test_a_failed_update_of_another_tenant_closes_what_is_served(stores: Stores) -> None:
    sync(stores, OLD)
    moved = replace(document_of(OLD), tenant="acme", state=DocState.CORRUPT, error="broken")
    failed = revisions.record_failure(stores, row(stores), moved)
    assert (failed.tenant, failed.acl) == ("default", ())
    assert shows(stores, replace(OLD, acl=()))


@pytest.mark.parametrize("before", [None, OLD])
def test_the_same_failure_twice_is_committed_once(stores: Stores, before: Page | None) -> None:
    sync(stores, before)
    sync(stores, replace(NEW, broken=True))
    once = row(stores)
    sync(stores, replace(NEW, broken=True))
    assert row(stores) == once


# ------------------------------------------------------------------------------------ deletes


def test_a_delete_commits_the_tombstone_before_it_touches_rows(stores: Stores) -> None:
    sync(stores, OLD)
    with pytest.raises(StoreUnavailable):
        sync(failing(stores, "vectors.row_refs", StoreUnavailable("down")), None)
    assert row(stores).state is DocState.DELETED
    assert shows(stores, None)


def test_deleting_counts_chunks_and_deleting_again_only_sweeps(stores: Stores) -> None:
    sync(stores, OLD)
    outcome = revisions.delete(stores, row(stores))
    assert outcome.deleted == 3
    assert stores.text.count() == stores.vectors.count() == 0
    tombstone = row(stores)
    assert revisions.delete(stores, tombstone).deleted == 0
    assert row(stores) == tombstone


def test_a_delete_that_was_decided_on_an_old_row_is_a_conflict(stores: Stores) -> None:
    sync(stores, OLD)
    base = row(stores)
    sync(stores, NEW)
    with pytest.raises(Conflict):
        revisions.delete(stores, base)
    assert shows(stores, NEW)


def test_a_deleted_document_can_come_back(stores: Stores) -> None:
    sync(stores, OLD)
    sync(stores, None)
    sync(stores, NEW)
    assert shows(stores, NEW)


# ------------------------------------------------------------------------------------- labels


def test_new_labels_embed_nothing_and_keep_chunk_ids(stores: Stores) -> None:
    sync(stores, OLD)
    before = {ref.row_id.partition(".")[0] for ref in stores.text.scan()}
    seen, calls = calls_of(stores)
    sync(seen, replace(WIDE, copied=True))
    assert "text.find_text" not in calls
    assert {ref.row_id.partition(".")[0] for ref in stores.text.scan()} == before
    assert shows(stores, WIDE)
    assert garbage(stores) == []


@pytest.mark.parametrize("copied", [True, False])
def test_a_narrower_acl_takes_effect_even_if_a_store_is_down(stores: Stores, copied: bool) -> None:
    sync(stores, OLD)
    narrow = replace(NARROW, copied=copied)
    for at in ("text.chunks" if copied else "text.publish", "text.upsert", "vectors.upsert"):
        with pytest.raises(StoreUnavailable):
            sync(failing(stores, at, StoreUnavailable("down")), narrow)
        assert read(stores, HR) == {}
    sync(stores, narrow)
    assert shows(stores, NARROW)
    assert garbage(stores) == []


def test_a_narrower_acl_with_new_content_takes_effect_before_the_content(stores: Stores) -> None:
    sync(stores, OLD)
    down = failing(stores, "vectors.upsert", StoreUnavailable("down"))
    with pytest.raises(StoreUnavailable):
        sync(down, replace(NEW, acl=("ops",)))
    assert read(stores, HR) == {}
    assert shows(stores, NARROW)


def test_a_wider_acl_takes_effect_only_when_all_rows_are_there(stores: Stores) -> None:
    sync(stores, OLD)
    with pytest.raises(StoreUnavailable):
        sync(failing(stores, "vectors.upsert", StoreUnavailable("down")), WIDE)
    assert read(stores, ENG) == {}
    assert shows(stores, OLD)


def test_another_tenant_takes_the_document_from_everybody_first(stores: Stores) -> None:
    sync(stores, OLD)
    moved = replace(row(stores), tenant="north")
    narrowed = revisions.narrow(stores, row(stores), moved)
    assert (narrowed.tenant, narrowed.acl) == ("default", ())
    assert read(stores, HR) == {}


@pytest.mark.parametrize("status", [Status.DRAFT, Status.WITHDRAWN])
def test_narrowing_withdraws_what_was_current_and_never_the_other_way(
    stores: Stores, status: Status
) -> None:
    sync(stores, OLD)
    current = row(stores)
    withdrawn = revisions.narrow(stores, current, replace(current, status=status))
    assert (withdrawn.status, withdrawn.acl, withdrawn.meta_hash) == (status, current.acl, "")
    assert revisions.narrow(stores, withdrawn, replace(withdrawn, status=Status.CURRENT)) == row(
        stores
    )
    assert row(stores).status is status


def test_narrowing_what_is_not_narrower_commits_nothing(stores: Stores) -> None:
    sync(stores, OLD)
    base = row(stores)
    assert revisions.narrow(stores, base, document_of(WIDE)) == base
    assert row(stores) == base


def test_labels_of_a_revision_that_lost_rows_cannot_be_changed(stores: Stores) -> None:
    sync(stores, OLD)
    lost = stores.vectors.row_refs([DOC])[0].row_id
    stores.vectors.delete([lost])
    with pytest.raises(StoreError, match="missing"):
        sync(stores, replace(WIDE, copied=True))
    assert row(stores).acl == OLD.acl


def test_labels_of_a_revision_that_was_replaced_meanwhile_are_a_conflict(stores: Stores) -> None:
    sync(stores, OLD)
    base = row(stores)
    sync(stores, NEW)
    with pytest.raises(Conflict):
        revisions.change_labels(stores, base, document_of(WIDE))
    assert shows(stores, NEW)
    assert garbage(stores) == []


def test_labels_of_what_is_not_served_cannot_be_changed(stores: Stores) -> None:
    sync(stores, replace(OLD, broken=True))
    with pytest.raises(ValueError, match="served"):
        revisions.change_labels(stores, row(stores), document_of(WIDE))


# ------------------------------------------------------------------------------------ garbage


def test_settling_ends_an_attempt_that_is_still_under_way(stores: Stores) -> None:
    sync(stores, OLD)
    base = row(stores)

    def settle_first(store: str, method: str, *_: object) -> None:
        if method == "commit_many":
            revisions.settle(stores, base)

    with pytest.raises(Conflict):
        sync(watched(stores, settle_first), NEW)
    assert shows(stores, OLD)
    assert garbage(stores) == []


def test_settling_a_document_without_garbage_commits_nothing(stores: Stores) -> None:
    sync(stores, OLD)
    base = row(stores)
    assert revisions.settle(stores, base) == base
    assert row(stores) == base


def test_sweeping_by_an_old_view_never_removes_what_came_later(stores: Stores) -> None:
    sync(stores, OLD)
    old = row(stores)
    sync(stores, NEW)
    assert revisions.sweep(stores, old) == 0
    assert shows(stores, NEW)
    assert incomplete(stores) == []
