"""Compares catalog, text rows and vectors, names every difference, and mends what can be mended.

First the documents, in the order of their ids: the rows of a few at a time are read from both
stores and held against the catalog. Then the entries, for documents that the catalog has lost, and
for those that have no entry. Then all rows of both stores, in their order, for those of documents
that the catalog does not know. Memory holds one page of each, and grows only with the addresses
that must be read again.

It is right while others write: a document that moved between two reads is looked at again.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from itertools import groupby

from quarry import ids, retention
from quarry.access.compile import labels_of
from quarry.entries import orphans, present, shortfalls
from quarry.errors import Conflict, StoreLost
from quarry.past import revisions_of, visible
from quarry.ports import TextStore, VectorStore
from quarry.records import DocState, Document, Kept, RowRef, SourceEntry
from quarry.stores.factory import Stores
from quarry.stores.memory import MemoryTextStore, MemoryVectorStore
from quarry.verify_repair import Facts, Repairer, address_of, needs_reading
from quarry.verify_report import Book, Difference, Kind, Progress, Reread, VerifyReport

PAGE_DOCUMENTS = 100
PAGE_ROWS = 1000
"""Rows of one page; the rows of one document are always read together."""
LOOKS = 4
"""Times that a document is looked at while others change it."""


def verify(
    stores: Stores, *, repair: bool, progress: Callable[[Progress], None] | None = None
) -> VerifyReport:
    """Compares everything; with `repair`, mends what can be derived and marks the rest for the
    next ingest.

    `repair` ends attempts that are under way: hold the data folder's writer lock, or know that
    nobody ingests. It ends the retention of what lies too far back. Raises StoreError.
    """
    began = time.monotonic()
    stores = _remade(stores) if repair else _lost_as_empty(stores)
    kept = retention.advance(stores) if repair else retention.due(stores)
    stores.text.publish()  # a scan of the text store may read what is published only
    book = Book(progress or (lambda _: None))
    check = _Check(stores, book, Repairer(stores) if repair else None, kept)
    check.documents()
    check.entries()
    check.rows("text", stores.text)
    check.rows("vectors", stores.vectors)
    if repair:
        retention.expire(stores)
    return book.report(seconds=time.monotonic() - began)


def _remade(stores: Stores) -> Stores:
    """With empty stores for those that were lost, so that what is missing can be written again."""
    if stores.dimension:
        stores.ensure(stores.dimension)
    return stores


def _lost_as_empty(stores: Stores) -> Stores:
    """Nothing is made where nothing is to be mended; who reads is told of the loss until then."""
    text, vectors = stores.text, stores.vectors
    try:
        text.scan(limit=1)
    except StoreLost:
        text = MemoryTextStore()
    try:
        vectors.present([""])
    except StoreLost:
        vectors = MemoryVectorStore()
    return replace(stores, text=text, vectors=vectors)


class _Check:
    def __init__(self, stores: Stores, book: Book, repairer: Repairer | None, kept: Kept) -> None:
        self._stores = stores
        self._book = book
        self._repairer = repairer
        self._kept = kept
        self._sources: set[str] = set()
        """Those that documents are of; they may have no entries."""
        self._lost = False
        """Whether the catalog lost documents, whose rows may be among those of none."""

    # ------------------------------------------------------------------------- by document

    def documents(self) -> None:
        total = sum(self._stores.catalog.counts().values())
        for page in _pages(self._stores):
            self._look(page, LOOKS)
            self._book.documents += len(page)
            self._sources |= {row.source for row in page if row.state is not DocState.DELETED}
            self._book.tell("documents", self._book.documents, total)

    def _look(self, page: Sequence[Document], looks: int) -> None:
        """Reads rows between two reads of the catalog: what did not move is known for sure."""
        names = [document.doc_id for document in page]
        text, vectors = _by_document(self._stores, names)
        unsearchable = self._stores.text.unsearchable(names)
        now = self._stores.catalog.get(names)
        moved = []
        for document in page:
            name = document.doc_id
            if now.get(name) != document:
                moved += [now[name]] if name in now else []
                continue
            facts = Facts(document, tuple(text.get(name, ())), tuple(vectors.get(name, ())))
            found = _differences(self._stores, facts, self._kept)
            found += _unsearchable(facts, unsearchable)
            if found and not self._note(facts, found):
                moved.append(document)
        if not moved:
            return
        if looks > 1:
            self._look(moved, looks - 1)
        else:
            self._book.busy += len(moved)

    def _note(self, facts: Facts, found: list[Difference]) -> bool:
        """Mends and notes differences; False if another writer came first."""
        kinds = {each.kind for each in found}
        if self._repairer is None:
            lost = needs_reading(facts, kinds)
            self._book.note(found, reread=address_of(facts.document) if lost else None)
            return True
        try:
            mended = self._repairer.mend(facts, kinds)
        except Conflict:
            return False
        self._book.note(found, mended.kinds, mended.reread)
        return True

    # --------------------------------------------------------------------------- by address

    def entries(self) -> None:
        catalog = self._stores.catalog
        for source in sorted(self._sources.union(catalog.sources())):
            counted = sum(entry.documents for entry in catalog.entries(source))
            for found in shortfalls(catalog, source):
                self._lost = True
                counted -= found.entry.documents - found.there
                self._note_address(Kind.LOST_DOCUMENTS, found.entry, found.there)
            if present(catalog, source) > counted:
                for entry in orphans(catalog, source):
                    self._note_address(Kind.DOCUMENTS_WITHOUT_ENTRY, entry, entry.documents)

    def _note_address(self, kind: Kind, entry: SourceEntry, there: int) -> None:
        found = Difference(kind=kind, doc_id="", uri=entry.address, text_rows=0, vector_rows=0)
        self._book.note([found], reread=Reread(source=entry.source, address=entry.address))
        if self._repairer:
            self._repairer.mark_address(entry, there)

    # ----------------------------------------------------------------------------- by row

    def rows(self, stage: str, store: TextStore | VectorStore) -> None:
        total, done, after = store.count(), 0, ""
        while page := store.scan(after=after, limit=PAGE_ROWS):
            self._strays(stage, page, after)
            done, after = done + len(page), page[-1].row_id
            self._book.count_rows(stage, len(page))
            self._book.tell(stage, done, total)

    def _strays(self, stage: str, page: Sequence[RowRef], after: str) -> None:
        names = sorted({row.doc_id for row in page})
        known = self._stores.catalog.get(names)
        unknown = [name for name in names if name not in known]
        for start in range(0, len(unknown), PAGE_DOCUMENTS):
            some = unknown[start : start + PAGE_DOCUMENTS]
            text, vectors = _by_document(self._stores, some)
            for name in some:
                facts = Facts(
                    Document(doc_id=name, source="", address="", uri="", state=DocState.DELETED),
                    tuple(text.get(name, ())),
                    tuple(vectors.get(name, ())),
                )
                if _is_first(stage, facts, after, page[-1].row_id):
                    self._note_stray(facts)

    def _note_stray(self, facts: Facts) -> None:
        """Rows of lost documents are kept until these have been read again: their vectors serve."""
        found = [_difference(Kind.ROWS_OF_NO_DOCUMENT, facts)]
        if self._lost:
            self._book.note(found)
        else:
            self._note(facts, found)


def _pages(stores: Stores) -> Iterator[list[Document]]:
    """Catalog rows in pages that have few rows in the stores, as far as the catalog knows."""
    after = ""
    while documents := stores.catalog.scan(after=after, limit=PAGE_DOCUMENTS):
        after = documents[-1].doc_id
        page: list[Document] = []
        rows = 0
        for document in documents:
            if page and rows + document.chunk_count > PAGE_ROWS:
                yield page
                page, rows = [], 0
            page.append(document)
            rows += document.chunk_count
        yield page


_Refs = dict[str, list[RowRef]]


def _by_document(stores: Stores, doc_ids: Sequence[str]) -> tuple[_Refs, _Refs]:
    return _grouped(stores.text.row_refs(doc_ids)), _grouped(stores.vectors.row_refs(doc_ids))


def _grouped(refs: Sequence[RowRef]) -> _Refs:
    ordered = sorted(refs, key=lambda ref: ref.doc_id)
    return {name: list(rows) for name, rows in groupby(ordered, key=lambda ref: ref.doc_id)}


def _is_first(stage: str, facts: Facts, after: str, last: str) -> bool:
    """Whether this page is the one that notes the document, so that each is noted once."""
    rows = facts.text or facts.vectors
    if not rows or (stage == "vectors" and facts.text):
        return False
    return after < min(row.row_id for row in rows) <= last


# -------------------------------------------------------------------------------- what differs


def _differences(stores: Stores, facts: Facts, kept: Kept) -> list[Difference]:
    return [*_garbage(stores, facts, kept), *_served(stores, facts)]


def _garbage(stores: Stores, facts: Facts, kept: Kept) -> Iterator[Difference]:
    """Rows of other revisions than those that are served or kept, by what their serial says."""
    document = facts.document
    others = facts.where(lambda row: row.revision != document.revision)
    history = stores.catalog.history(document.doc_id) if others.rows and kept.since else []
    past = revisions_of(visible(history, kept))
    others = others.where(lambda row: row.revision not in past)
    replaced = Kind.ROWS_OF_DELETED if document.state is DocState.DELETED else Kind.REPLACED_ROWS
    for kind, belongs in (
        (replaced, lambda serial: serial < document.serial),
        (Kind.UNFINISHED_ROWS, lambda serial: serial == document.serial),
        (Kind.ROWS_AHEAD, lambda serial: serial > document.serial),
    ):
        rows = others.where(lambda row, fits=belongs: fits(ids.token_serial(row.revision)))  # type: ignore[misc]
        if rows.rows:
            yield _difference(kind, rows)


def _served(stores: Stores, facts: Facts) -> Iterator[Difference]:
    """What is wrong with the committed revision, whose rows both stores must hold whole."""
    document = facts.document
    if not document.revision:
        return
    served = facts.where(lambda row: row.revision == document.revision)
    text, vectors = served.row_ids
    expected = max(document.chunk_count, len(text | vectors))
    if len(text) < expected:
        yield _missing(Kind.MISSING_TEXT, facts, expected - len(text))
    if len(vectors) < expected:
        yield _missing(Kind.MISSING_VECTORS, facts, expected - len(vectors))
    if len(text | vectors) > document.chunk_count or not document.chunk_count:
        yield _difference(Kind.CHUNK_COUNT, served)
    elif not _labels_stand(stores, document):
        yield _difference(Kind.OLD_LABELS, served)


def _unsearchable(facts: Facts, row_ids: Collection[str]) -> list[Difference]:
    """Of the served revision: its rows are written anew from their texts and vectors."""
    revision = facts.document.revision
    lost = [row for row in facts.text if row.revision == revision and row.row_id in row_ids]
    found = Facts(facts.document, tuple(lost), ())
    return [_difference(Kind.UNSEARCHABLE_TEXT, found)] if lost else []


def _labels_stand(stores: Stores, document: Document) -> bool:
    """Whether the labels are those with which the revision, and so its rows, were written."""
    born = ids.token_serial(document.revision) + 1
    if document.serial == born:
        return True
    for snapshot in stores.catalog.history(document.doc_id):
        if snapshot.serial == born:
            return labels_of(snapshot) == labels_of(document)
    return bool(document.meta_hash)  # narrowing empties it


def _difference(kind: Kind, facts: Facts) -> Difference:
    return Difference(
        kind=kind,
        doc_id=facts.document.doc_id,
        uri=facts.document.uri,
        text_rows=len(facts.text),
        vector_rows=len(facts.vectors),
    )


def _missing(kind: Kind, facts: Facts, rows: int) -> Difference:
    return Difference(
        kind=kind,
        doc_id=facts.document.doc_id,
        uri=facts.document.uri,
        text_rows=rows if kind is Kind.MISSING_TEXT else 0,
        vector_rows=rows if kind is Kind.MISSING_VECTORS else 0,
    )
