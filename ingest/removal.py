"""Taking documents out: hidden from readers at once, their rows swept when nothing needs them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import islice

from ingest.ledger import Ledger
from quarry import revisions
from quarry.attempts import BATCH_ROWS
from quarry.entries import documents_of, names_of
from quarry.errors import Conflict, UsageError
from quarry.ports import Catalog
from quarry.records import DocState, Document
from quarry.stores.factory import Stores


def hide(
    stores: Stores, documents: Iterable[Document], ledger: Ledger, *, by_hand: bool = False
) -> list[Document]:
    """No reader finds them any more; their rows stay for now, so that moved texts keep vectors.

    `by_hand`: their source still has them. Gives those that stay, since another writer keeps
    changing them; the ledger names them.
    """
    kept: list[Document] = []
    for document in documents:
        if document.state is DocState.DELETED:
            continue
        if _bury(stores, document, by_hand=by_hand):
            ledger.add_deleted(document.uri, document.chunk_count)
        else:
            ledger.name_taken(document.uri)
            kept.append(document)
    return kept


def sweep(stores: Stores, documents: Iterable[Document]) -> bool:
    """Deletes the rows of documents that are hidden; False if one lives and is left alone."""
    all_gone = True
    for document in documents:
        if document.state is DocState.DELETED:
            revisions.delete(stores, document)
        else:
            all_gone = False
    return all_gone


def sweep_hidden(stores: Stores, source: str, address: str = "") -> None:
    """Deletes the rows that are left of the tombstones of an address, or of a whole source."""
    rows = documents_of(stores.catalog, source, address)
    hidden = (document for document in rows if document.state is DocState.DELETED)
    while batch := list(islice(hidden, BATCH_ROWS)):
        names = [document.doc_id for document in batch]
        refs = [*stores.text.row_refs(names), *stores.vectors.row_refs(names)]
        held = {ref.doc_id for ref in refs}
        sweep(stores, [document for document in batch if document.doc_id in held])


def delete(
    stores: Stores, documents: Iterable[Document], ledger: Ledger, *, by_hand: bool = False
) -> list[Document]:
    """`hide`, then `sweep`; gives the documents that stay."""
    kept: list[Document] = []
    for document in documents:
        kept += hide(stores, [document], ledger, by_hand=by_hand)
        sweep(stores, stores.catalog.get([document.doc_id]).values())
    return kept


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
    """Documents by id or uri, or all of an address.

    Raises UsageError naming what is not there, or what several sources or files have.
    """
    wanted = set(names)
    found = [
        document
        for document in documents_of(catalog)
        if document.state is not DocState.DELETED and not wanted.isdisjoint(names_of(document))
    ]
    there = {name for row in found for name in names_of(row)}
    for name in sorted(wanted - there):
        raise UsageError(f"There is no document {name}; quarry documents lists all.")
    for name in sorted(wanted):
        called = {(row.source, row.address) for row in found if name in (row.uri, row.address)}
        if len(called) > 1:
            sources = sorted({source for source, _ in called})
            have = (
                f"The sources {', '.join(sources)} each have" if sources[1:] else "Two files have"
            )
            raise UsageError(
                f"{have} a document {name}; name by its doc_id which to delete (quarry documents "
                "--json shows it)."
            )
    return found


def _bury(stores: Stores, document: Document, *, by_hand: bool) -> bool:
    """Whether it is hidden; tried once more if another writer was faster, then it is let be."""
    row: Document | None = document
    for _ in range(2):
        if row is None or row.state is DocState.DELETED:
            return True
        try:
            revisions.bury(stores, row, by_hand=by_hand)
            return True
        except Conflict:
            row = stores.catalog.get([document.doc_id]).get(document.doc_id)
    return row is None or row.state is DocState.DELETED
