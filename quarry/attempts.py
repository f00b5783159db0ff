"""The steps of one try to commit documents; `quarry.revisions` puts them in order.

Each step works on many attempts at once, so that a batch of documents costs as many store calls
as one; each attempt succeeds or fails on its own.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TypeVar

from quarry import ids
from quarry.access.compile import labels_of
from quarry.errors import Conflict, RowsRejected, StoreError
from quarry.past import revisions_of, visible
from quarry.records import (
    Chunk,
    Document,
    Labels,
    RowRef,
    TextRow,
    Vector,
    VectorRow,
)
from quarry.stores.factory import Stores

BATCH_ROWS = 500
"""Rows of one store call."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How one document ended: with its committed row, or with the error that stopped it."""

    document: Document | None = None
    error: StoreError | None = None
    deleted: int = 0
    """Chunks of the replaced revision that are not in the new one."""


@dataclass(slots=True, kw_only=True)
class Attempt:
    """One try to replace `base`; `document` is the row to commit, with base's serial."""

    base: Document | None
    document: Document
    indexed_at: datetime | None = None
    """None: the time of the commit."""
    row_ids: set[str] = field(default_factory=set)
    refs: set[RowRef] = field(default_factory=set)
    """All rows of the document in both stores, at the check."""
    committed: Document | None = None
    error: StoreError | None = None


# ------------------------------------------------------------------------------------ garbage


def sweep(stores: Stores, document: Document) -> int:
    """Deletes the rows of a document that no commit can make visible any more and that the past
    does not need; gives how many.

    `document` is any catalog row of it that was read; an old one sweeps less, never too much.
    """
    return delete_rows(
        stores, _garbage(stores, {document.doc_id: (document, _refs(stores, document))})
    )


def sweep_many(stores: Stores, doc_ids: Sequence[str]) -> int:
    """`sweep` for documents whose every row has its text row: a store call for all of them."""
    documents = stores.catalog.get(doc_ids)
    refs = _by_document(stores.text.row_refs(doc_ids))
    found = {name: (row, refs.get(name, ())) for name, row in documents.items()}
    return delete_rows(stores, _garbage(stores, found))


def settle(stores: Stores, document: Document) -> Document:
    """`sweep`, and an end to attempts that started from this row and never came to their commit.

    If there are rows of such an attempt, the row is committed once more as it is: whoever wrote
    them gets a Conflict, and they can go. Raises Conflict.
    """
    refs = _refs(stores, document)
    serials = {ids.token_serial(r.revision) for r in refs if r.revision != document.revision}
    if document.serial in serials:
        document = commit_row(stores, document, document)
    delete_rows(stores, _garbage(stores, {document.doc_id: (document, refs)}))
    return document


def _refs(stores: Stores, document: Document) -> list[RowRef]:
    doc_ids = [document.doc_id]
    return [*stores.text.row_refs(doc_ids), *stores.vectors.row_refs(doc_ids)]


def _by_document(refs: Iterable[RowRef]) -> dict[str, set[RowRef]]:
    found: dict[str, set[RowRef]] = {}
    for ref in refs:
        found.setdefault(ref.doc_id, set()).add(ref)
    return found


def _garbage(
    stores: Stores, documents: Mapping[str, tuple[Document, Iterable[RowRef]]]
) -> set[str]:
    """Rows that can go, among those that were found of each document."""
    old = {
        doc_id: [
            ref
            for ref in refs
            if ref.revision != row.revision and ids.token_serial(ref.revision) < row.serial
        ]
        for doc_id, (row, refs) in documents.items()
    }
    kept = retained(stores, [doc_id for doc_id, refs in old.items() if refs])
    return {
        ref.row_id
        for doc_id, refs in old.items()
        for ref in refs
        if ref.revision not in kept.get(doc_id, ())
    }


def retained(stores: Stores, doc_ids: Collection[str]) -> dict[str, set[str]]:
    """Revisions of each document that were served at a time that the past is kept for."""
    if not stores.retention or not doc_ids:
        return {}
    kept = stores.catalog.kept()
    histories = stores.catalog.histories(doc_ids)
    return {name: revisions_of(visible(rows, kept)) for name, rows in histories.items()}


def delete_rows(stores: Stores, row_ids: Collection[str]) -> int:
    for batch in batches(sorted(row_ids)):
        stores.vectors.delete(batch)
        stores.text.delete(batch)
    return len(row_ids)


# ----------------------------------------------------------------------------- steps of a try


def stamp(attempt: Attempt) -> None:
    """Gives the attempt its token, from the serial of the row that it starts from."""
    serial = attempt.base.serial if attempt.base else 0
    attempt.document = replace(attempt.document, serial=serial, revision=ids.new_token(serial))


def make_rows(
    attempt: Attempt, chunks: Sequence[Chunk], vectors: Mapping[str, Vector]
) -> tuple[list[TextRow], list[VectorRow]]:
    labels, token = labels_of(attempt.document), attempt.document.revision
    text_rows, vector_rows = [], []
    for chunk in chunks:
        row_id = ids.row_id(chunk.chunk_id, token)
        stamped = replace(chunk, row_id=row_id, revision=token)
        text_rows.append(TextRow(chunk=stamped, labels=labels))
        vector_rows.append(_vector_row(stamped, labels, vectors[chunk.text_hash]))
        attempt.row_ids.add(row_id)
    return text_rows, vector_rows


def _vector_row(chunk: Chunk, labels: Labels, vector: Vector) -> VectorRow:
    return VectorRow(
        row_id=chunk.row_id,
        chunk_id=chunk.chunk_id,
        doc_id=chunk.doc_id,
        revision=chunk.revision,
        labels=labels,
        vector=vector,
    )


def write(
    stores: Stores,
    attempts: Sequence[Attempt],
    text_rows: Sequence[TextRow],
    vector_rows: Sequence[VectorRow],
) -> None:
    """Text first, so that a vector is never without the text that says what it is of."""
    for text_batch in batches(text_rows):
        try:
            stores.text.upsert(text_batch)
        except RowsRejected as error:
            _reject(attempts, error)
    good = {row_id for attempt in attempts if attempt.error is None for row_id in attempt.row_ids}
    for vector_batch in batches([row for row in vector_rows if row.row_id in good]):
        try:
            stores.vectors.upsert(vector_batch)
        except RowsRejected as error:
            _reject(attempts, error)


def _reject(attempts: Sequence[Attempt], error: RowsRejected) -> None:
    for attempt in attempts:
        own = {row: reason for row, reason in error.rows.items() if row in attempt.row_ids}
        if own and attempt.error is None:
            attempt.error = RowsRejected(error.store, own)


def finish(stores: Stores, attempts: Sequence[Attempt]) -> list[Outcome]:
    if any(attempt.error is None for attempt in attempts):
        stores.text.publish()
    _check(stores, attempts)
    _commit(stores, attempts)
    delete_rows(stores, _leftovers(stores, attempts))
    return [_outcome(attempt) for attempt in attempts]


def _check(stores: Stores, attempts: Sequence[Attempt]) -> None:
    """Both stores must hold every row before the catalog may name the revision."""
    ready = [attempt for attempt in attempts if attempt.error is None]
    doc_ids = {attempt.document.doc_id for attempt in ready}
    text = stores.text.row_refs(doc_ids) if ready else []
    # Looking up a document's vectors costs a scan where looking up rows does not. A document that
    # is new has none but its own: what crashed attempts of it left has its text rows still.
    known = {attempt.document.doc_id for attempt in ready if attempt.base}
    vectors = stores.vectors.row_refs(known) if known else []
    fresh = [row_id for attempt in ready if not attempt.base for row_id in attempt.row_ids]
    held = {ref.row_id for ref in vectors}
    held |= stores.vectors.present(fresh) if fresh else set()
    held &= {ref.row_id for ref in text}
    by_document = _by_document((*text, *vectors))
    for attempt in ready:
        attempt.refs = by_document.get(attempt.document.doc_id, set())
        if not attempt.row_ids <= held:
            attempt.error = missing_rows(stores, attempt.base, attempt.document.doc_id)


def missing_rows(stores: Stores, base: Document | None, doc_id: str) -> StoreError:
    """Why rows are missing: another writer moved the document and swept them, or a store failed."""
    current = stores.catalog.get([doc_id]).get(doc_id)
    if current != base:
        return Conflict(f"Document {doc_id} was changed by another writer; read it again.")
    return StoreError(f"Rows of document {doc_id} are missing; ingest its source again.")


def _commit(stores: Stores, attempts: Sequence[Attempt]) -> None:
    ready = [attempt for attempt in attempts if attempt.error is None]
    rows = [_row(stores, attempt) for attempt in ready]
    results = stores.catalog.commit_many(rows) if rows else []
    for attempt, row, result in zip(ready, rows, results, strict=True):
        if isinstance(result, Document):
            attempt.committed = result
        elif isinstance(result, Conflict) and (own := _stands(stores, row)):
            attempt.committed = own
        else:
            attempt.error = result


def _row(stores: Stores, attempt: Attempt) -> Document:
    """The catalog row that makes the attempt's revision the one that is served."""
    count = len(attempt.row_ids)
    row = timed(stores, attempt.base, attempt.document)
    indexed_at = attempt.indexed_at or row.committed_at
    revision = row.revision if count else ""
    return replace(row, revision=revision, chunk_count=count, indexed_at=indexed_at)


def commit_row(stores: Stores, base: Document | None, document: Document) -> Document:
    """Compare-and-set of one row."""
    row = timed(stores, base, document)
    try:
        return stores.catalog.commit(row)
    except Conflict:
        if own := _stands(stores, row):
            return own
        raise


def _stands(stores: Stores, row: Document) -> Document | None:
    """The stored row if it is this one: the commit was made and its answer lost on the way."""
    current = stores.catalog.get([row.doc_id]).get(row.doc_id)
    return current if current == replace(row, serial=row.serial + 1) else None


def timed(stores: Stores, base: Document | None, document: Document) -> Document:
    """Stamps the time of the commit, which never runs backwards for one document."""
    now = stores.clock()
    if base and base.committed_at:
        now = max(now, base.committed_at)
    return replace(document, committed_at=now)


def _leftovers(stores: Stores, attempts: Sequence[Attempt]) -> set[str]:
    """Rows that can go: what a commit replaced, or what a failed attempt wrote itself."""
    replaced = {a.document.doc_id: (a.committed, a.refs) for a in attempts if a.committed}
    failed = [attempt for attempt in attempts if not attempt.committed]
    # One that failed may have been served for a moment, if the answer to its commit got lost.
    kept = retained(stores, [attempt.document.doc_id for attempt in failed])
    own = {
        row_id
        for attempt in failed
        if attempt.document.revision not in kept.get(attempt.document.doc_id, ())
        for row_id in attempt.row_ids
    }
    return own | _garbage(stores, replaced)


def _outcome(attempt: Attempt) -> Outcome:
    served = attempt.base.revision if attempt.base else ""
    before = {ids.chunk_of(ref.row_id) for ref in attempt.refs if ref.revision == served}
    deleted = before - {ids.chunk_of(row_id) for row_id in attempt.row_ids}
    return Outcome(
        document=attempt.committed,
        error=attempt.error,
        deleted=len(deleted) if attempt.committed else 0,
    )


def batches(items: Sequence[T]) -> Iterator[Sequence[T]]:
    for start in range(0, len(items), BATCH_ROWS):
        yield items[start : start + BATCH_ROWS]
