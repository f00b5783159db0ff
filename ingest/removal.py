"""Taking documents out: hidden from readers at once, their rows swept when nothing needs them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from typing import TypeVar

from ingest.ledger import Ledger
from ingest.plan import documents_of
from quarry import revisions
from quarry.errors import Conflict, UsageError
from quarry.ports import Catalog
from quarry.records import DocState, Document
from quarry.stores.factory import Stores

T = TypeVar("T")


def hide(stores: Stores, documents: Iterable[Document], ledger: Ledger) -> None:
    """No reader finds them any more; their rows stay for now, so that moved texts keep vectors."""
    for document in documents:
        if document.state is DocState.DELETED:
            continue
        _again(stores, document, lambda row: revisions.bury(stores, row))
        ledger.count_deleted(1, document.chunk_count)


def sweep(stores: Stores, documents: Iterable[Document]) -> None:
    """Deletes the rows of documents that are hidden; one that lives again is left alone."""
    for document in documents:
        if document.state is DocState.DELETED:
            with suppress(Conflict):  # it lives again
                revisions.delete(stores, document)


def delete(stores: Stores, documents: Iterable[Document], ledger: Ledger) -> None:
    for document in documents:
        hide(stores, [document], ledger)
        sweep(stores, stores.catalog.get([document.doc_id]).values())


def uncount(catalog: Catalog, documents: Iterable[Document]) -> None:
    """Takes documents that were deleted by hand out of what their addresses are known to hold."""
    fewer = Counter((document.source, document.address) for document in documents)
    for source in {source for source, _ in fewer}:
        for entry in list(catalog.entries(source)):
            count = fewer[source, entry.address]
            if count:
                catalog.put_entry(replace(entry, documents=max(0, entry.documents - count)))


def of_addresses(catalog: Catalog, source: str, addresses: Iterable[str]) -> Iterator[Document]:
    for address in addresses:
        yield from documents_of(catalog, source, address)


def find(catalog: Catalog, names: Iterable[str]) -> list[Document]:
    """Documents by id or uri, or all of an address. Raises UsageError naming what is not there."""
    wanted = set(names)
    found = [
        document
        for document in documents_of(catalog)
        if document.state is not DocState.DELETED
        and not wanted.isdisjoint((document.doc_id, document.uri, document.address))
    ]
    there = {name for row in found for name in (row.doc_id, row.uri, row.address)}
    for name in sorted(wanted - there):
        raise UsageError(f"There is no document {name}; quarry documents lists all.")
    return found


def _again(stores: Stores, document: Document, act: Callable[[Document], T]) -> T | None:
    """Acts on the row as it is now if another writer was faster, once; then lets it be."""
    try:
        return act(document)
    except Conflict:
        row = stores.catalog.get([document.doc_id]).get(document.doc_id)
        return act(row) if row and row.state is not DocState.DELETED else None
