"""What the entries of a source say it holds, against the documents that the catalog has of it.

An entry outlives the rows that it counts if a catalog is emptied or put back from an older copy.
By the entry alone its address would never be read again. Documents outlive their entry if entries
are lost, and nobody would notice that their address is gone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import islice

from quarry import ids
from quarry.ports import Catalog
from quarry.records import DocState, Document, SourceEntry

MARK = "/"
"""Address of the entry that describes the source itself; a listed address is never like this."""
UNFINISHED = "unfinished"
"""Recipe of that entry while a run over the source has not come to its end."""
LOST = "The index lost documents or rows of it; it is read again."
"""Reason of an entry whose address has to be read again."""
_PAGE = 1000


@dataclass(frozen=True, slots=True)
class Shortfall:
    """An address of which documents are lost."""

    entry: SourceEntry
    there: int
    """Documents that the catalog still has of it, tombstones not counted."""


def shortfalls(catalog: Catalog, source: str) -> Iterator[Shortfall]:
    """Entries that count more documents than there are; holds a page of them at a time.

    A tombstone is no loss of an address that holds one document, and none while a run is
    unfinished, which hides what is gone before it forgets the entries.
    """
    entries = (entry for entry in catalog.entries(source) if entry.documents)
    while page := list(islice(entries, _PAGE)):
        single = {_doc_id(entry) for entry in page if entry.documents == 1}
        found = catalog.get(single)
        for entry in page:
            if _doc_id(entry) in found and entry.documents == 1:
                continue
            live, buried = _counted(documents_of(catalog, source, entry.address))
            if live >= entry.documents:
                continue
            if catalog.entry(source, entry.address) != entry:  # a run is at it
                continue
            forgiven = entry.documents == 1 or is_unfinished(catalog, source)
            if live + (buried if forgiven else 0) < entry.documents:
                yield Shortfall(entry, live)


def mark(source: str, origins: Sequence[str] = (), *, unfinished: bool) -> SourceEntry:
    """The entry of the source itself: where it is read from, and whether a run over it is under
    way. While it is, documents may have no entry yet."""
    return SourceEntry(
        source=source,
        address=MARK,
        tag=ids.digest(*origins),
        recipe=UNFINISHED if unfinished else "",
        state=DocState.INDEXED,
        documents=0,
        reason="\n".join(origins),
    )


def lost(entry: SourceEntry, there: int) -> SourceEntry:
    """The entry of an address that has to be read again, whatever its change mark says.

    `there`: documents that the catalog still has of it.
    """
    return replace(entry, tag="", recipe="", state=DocState.FAILED, documents=there, reason=LOST)


def orphan(document: Document) -> SourceEntry:
    """The entry of an address that has none though documents are of it; it is read again."""
    return SourceEntry(
        source=document.source,
        address=document.address,
        tag="",
        recipe="",
        state=DocState.FAILED,
        documents=0,
    )


def orphans(catalog: Catalog, source: str) -> Iterator[SourceEntry]:
    """Entries for the addresses that have none though documents of them are there.

    None while a run is unfinished, which commits documents before it writes their entry. It looks
    at every document: ask where there are more than the entries count.
    """

    @lru_cache(_PAGE)
    def has_entry(address: str) -> bool:
        return catalog.entry(source, address) is not None

    found: set[str] = set()
    for document in documents_of(catalog, source):
        address = document.address
        if document.state is DocState.DELETED or address in found or has_entry(address):
            continue
        if is_unfinished(catalog, source):
            return
        live, _ = _counted(documents_of(catalog, source, address))
        if live:  # another run may have deleted it meanwhile
            found.add(address)
            yield replace(orphan(document), documents=live)


def present(catalog: Catalog, source: str) -> int:
    """Documents that the catalog has of a source, tombstones not counted."""
    counts = catalog.counts(source=source)
    return sum(counts.values()) - counts.get(DocState.DELETED, 0)


def documents_of(catalog: Catalog, source: str = "", address: str = "") -> Iterator[Document]:
    """Catalog rows of all sources, of one, or of one address; tombstones included."""
    after = ""
    while page := catalog.scan(source=source, address=address, after=after, limit=_PAGE):
        yield from page
        after = page[-1].doc_id


def names_of(document: Document) -> tuple[str, str, str]:
    """What a person may call it: by its id, by its uri, or with others by their address."""
    return document.doc_id, document.uri, document.address


def is_unfinished(catalog: Catalog, source: str) -> bool:
    own = catalog.entry(source, MARK)
    return own is not None and own.recipe == UNFINISHED


def _doc_id(entry: SourceEntry) -> str:
    return ids.doc_id(entry.source, entry.address)


def _counted(documents: Iterable[Document]) -> tuple[int, int]:
    buried = [document.state is DocState.DELETED for document in documents]
    return len(buried) - sum(buried), sum(buried)
