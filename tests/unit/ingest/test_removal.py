"""Taking documents out while other writers are at work: nothing stops, nothing is forgotten."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ingest import removal
from ingest.ledger import Ledger
from ingest.summary import RunSummary
from quarry import revisions
from quarry.errors import Conflict, StoreUnavailable, UsageError
from quarry.records import DocState, Document
from quarry.stores.factory import Stores
from quarry.stores.memory import MemoryCatalog
from tests.unit.revisions.revision_world import Page, memory_stores, shows, sync


class Busy(MemoryCatalog):
    """Another writer is faster, `times` times for each document; `deletes` what it finds."""

    def __init__(self, times: int, *, deletes: bool = False) -> None:
        super().__init__()
        self.times = times
        self._deletes = deletes
        self._is_rival = False

    def commit(self, document: Document) -> Document:
        if document.state is DocState.DELETED and self.times and not self._is_rival:
            self.times -= 1
            self._is_rival = True
            rows = self.get([document.doc_id]).values()
            for row in rows:
                revisions.bury(stores_of(self), row) if self._deletes else super().commit(row)
            self._is_rival = False
        return super().commit(document)


PAGE = Page(("one", "two"))


def stores_of(catalog: MemoryCatalog) -> Stores:
    stores = memory_stores()
    return Stores(catalog, stores.text, stores.vectors)


def filled(catalog: MemoryCatalog) -> tuple[Stores, list[Document]]:
    stores = stores_of(catalog)
    sync(stores, PAGE, "a")
    sync(stores, PAGE, "b")
    return stores, [stores.catalog.get([doc])[doc] for doc in "ab"]


def summary(ledger: Ledger) -> RunSummary:
    return ledger.summary(run_id="r", source="s", unread=ledger.states - ledger.states, seconds=0)


def test_a_document_that_another_writer_changed_once_is_deleted_all_the_same() -> None:
    stores, found = filled(Busy(1))
    ledger = Ledger()
    assert removal.delete(stores, found, ledger) == []
    assert (summary(ledger).deleted, summary(ledger).failures) == (2, ())
    assert shows(stores, None, "a")
    assert stores.text.count() == 0


def test_a_document_that_another_writer_keeps_changing_is_named_and_let_be() -> None:
    stores, found = filled(Busy(2))
    ledger = Ledger()
    kept = removal.delete(stores, found, ledger)
    assert [document.doc_id for document in kept] == ["a"]
    assert shows(stores, PAGE, "a")
    assert shows(stores, None, "b")
    told = summary(ledger)
    assert (told.deleted, told.exit_code) == (1, 3)
    assert [(failure.uri, "twice" in failure.reason) for failure in told.failures] == [
        ("a.md", True)
    ]


def test_a_document_that_another_writer_deletes_meanwhile_is_deleted() -> None:
    stores, found = filled(Busy(1, deletes=True))
    ledger = Ledger()
    assert removal.hide(stores, found, ledger) == []
    assert summary(ledger).failures == ()


def test_sweeping_tells_whether_all_are_gone_and_leaves_alone_what_lives() -> None:
    stores, (a, b) = filled(MemoryCatalog())
    assert not removal.sweep(stores, [a, b])
    assert shows(stores, PAGE, "a")
    buried = [revisions.bury(stores, row) for row in (a, b)]
    sync(stores, PAGE, "a")
    assert removal.sweep(stores, buried)
    assert shows(stores, PAGE, "a"), "it lives again since its tombstone was read"
    assert stores.text.row_refs(["b"]) == []
    assert not removal.sweep(stores, stores.catalog.get(["a", "b"]).values())


def test_a_store_that_is_away_is_not_taken_for_another_writer() -> None:
    class Away(MemoryCatalog):
        def commit(self, document: Document) -> Document:
            if document.state is DocState.DELETED:
                raise StoreUnavailable("The store is away.")
            return super().commit(document)

    stores, found = filled(Away())
    with pytest.raises(StoreUnavailable):
        removal.delete(stores, found, Ledger())


def test_a_conflict_is_what_the_rival_causes() -> None:
    stores, (a, _) = filled(Busy(1))
    with pytest.raises(Conflict):
        revisions.bury(stores, a)


def test_a_name_that_several_sources_have_is_not_deleted_in_all_of_them() -> None:
    stores, (document, _) = filled(MemoryCatalog())
    other = replace(document, doc_id="c", source="other", serial=0)
    stores.catalog.commit(other)
    for name in {document.address, document.uri}:
        with pytest.raises(UsageError, match="handbook, other each have a document"):
            removal.find(stores.catalog, [name])
    assert removal.find(stores.catalog, ["c"]) == list(stores.catalog.get(["c"]).values())


def test_a_name_of_a_record_that_is_a_files_too_is_not_deleted_in_both() -> None:
    stores, (document, _) = filled(MemoryCatalog())
    file = replace(document, doc_id="c", address="a.csv#1", uri="a.csv#1", serial=0)
    record = replace(file, doc_id="d", address="a.csv")
    stores.catalog.commit_many([file, record])
    with pytest.raises(UsageError, match=r"Two files have a document a\.csv#1"):
        removal.find(stores.catalog, ["a.csv#1"])
    assert [each.doc_id for each in removal.find(stores.catalog, ["a.csv", "c"])] == ["c", "d"]
