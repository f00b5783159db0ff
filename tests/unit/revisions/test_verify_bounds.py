"""Verify holds few rows at a time, and takes what others write meanwhile for no difference."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest

from quarry.ids import new_token
from quarry.stores.factory import Stores
from quarry.stores.memory import MemoryCatalog, MemoryTextStore, MemoryVectorStore
from quarry.verify import PAGE_DOCUMENTS, PAGE_ROWS, verify
from quarry.verify_report import Kind
from tests.contract.rows import DIMENSION, at, document
from tests.unit.revisions.verify_world import (
    assert_mended,
    ingest,
    memory,
    plant,
    served,
)


class Watched:
    """Passes calls through and notes how much each one asked for and got."""

    def __init__(self, inner: object) -> None:
        self._inner = inner
        self.most: dict[str, int] = {}

    def __getattr__(self, name: str) -> object:
        call = getattr(self._inner, name)

        def watched(*args: object, **named: object) -> object:
            answer = call(*args, **named)
            if isinstance(answer, list | dict):
                self.most[name] = max(self.most.get(name, 0), len(answer))
            return answer

        return watched if callable(call) else call


def watched(stores: Stores) -> tuple[Watched, Watched, Watched]:
    return Watched(stores.catalog), Watched(stores.text), Watched(stores.vectors)


def test_no_more_than_a_page_of_rows_is_held_at_a_time() -> None:
    stores = memory()
    for number in range(40):
        ingest(stores, f"d{number:04d}", [f"text {n}" for n in range(60)])
    catalog, text, vectors = watched(stores)
    report = verify(Stores(catalog, text, vectors), repair=False)  # type: ignore[arg-type]
    assert report.clean and report.text_rows == 40 * 60
    assert catalog.most["scan"] <= PAGE_DOCUMENTS
    for store in (text, vectors):
        assert max(store.most["scan"], store.most["row_refs"]) <= PAGE_ROWS


def test_each_stray_is_named_once_however_many_pages_its_rows_lie_on() -> None:
    stores = memory()
    for number in range(PAGE_DOCUMENTS + 20):
        plant(stores, document(f"ghost{number}"), new_token(0), count=20)
    catalog, text, vectors = watched(stores)
    report = verify(Stores(catalog, text, vectors), repair=False)  # type: ignore[arg-type]
    assert report.text_rows > 2 * PAGE_ROWS
    assert report.found == {Kind.ROWS_OF_NO_DOCUMENT: PAGE_DOCUMENTS + 20}
    assert text.most["row_refs"] <= PAGE_DOCUMENTS * 20


class Interrupted(MemoryTextStore):
    """Runs `between` when rows are read, as another writer would come between two reads."""

    between: Callable[[], object] = staticmethod(lambda: None)

    def row_refs(self, doc_ids):  # type: ignore[no-untyped-def]
        found = super().row_refs(doc_ids)
        run, self.between = self.between, staticmethod(lambda: None)
        run()
        return found


def interrupted() -> tuple[Stores, Interrupted]:
    text = Interrupted()
    stores = Stores(MemoryCatalog(), text, MemoryVectorStore(), clock=lambda: at(5))
    stores.ensure(DIMENSION)
    return stores, text


@pytest.mark.parametrize("repair", [False, True])
def test_a_commit_between_two_reads_is_no_difference(repair: bool) -> None:
    stores, text = interrupted()
    ingest(stores, "a", ["one", "two"])
    text.between = partial(ingest, stores, "a", ["three"])
    assert verify(stores, repair=repair).clean
    assert_mended(stores, {"a": ["three"]})


def test_a_document_that_is_born_meanwhile_is_no_stray() -> None:
    stores, text = interrupted()
    plant(stores, document("a"), new_token(0))
    text.between = partial(ingest, stores, "a", ["one"])
    report = verify(stores, repair=True)
    assert report.clean and report.reread == ()
    assert served(stores, "a") == ["one"]


def test_a_document_that_never_stands_still_is_counted_as_busy() -> None:
    stores, text = interrupted()
    ingest(stores, "a", ["one"])
    number = iter(range(1000))

    def again() -> None:
        text.between = staticmethod(lambda: None)
        ingest(stores, "a", [f"text {next(number)}"])
        text.between = again

    text.between = again
    report = verify(stores, repair=False)
    text.between = staticmethod(lambda: None)
    assert report.busy == 1 and not report.clean and not report.found
