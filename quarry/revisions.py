"""The commit protocol: how a document goes from one revision to the next (docs/architecture.md).

    write text rows, then vector rows → publish → check both stores → compare-and-set → sweep

The catalog row is the one commit point. Rows in the stores are immutable and belong to one
revision, whose token starts with the serial of the catalog row that the attempt read. A row is
garbage for good when its serial is below the catalog row's and its revision is not the committed
one, because the attempt that wrote it can no longer win. So anyone may sweep at any time, even
with an old view of the catalog, and what a crash leaves behind is seen by no reader and removed by
the document's next commit or `sweep`.

Every function takes a document as it was read (`base`), and raises Conflict if it moved since:
read it again and decide anew. StoreUnavailable may leave a commit made or not; reading tells.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from quarry.attempts import (
    BATCH_ROWS,
    Attempt,
    Outcome,
    batches,
    commit_row,
    delete_rows,
    finish,
    make_rows,
    missing_rows,
    settle,
    stamp,
    sweep,
    timed,
    write,
)
from quarry.records import PUBLIC, Chunk, DocState, Document, Status, TextRow, Vector, VectorRow
from quarry.stores.factory import Stores

__all__ = [
    "Change",
    "Outcome",
    "change_labels",
    "commit_many",
    "commit_revision",
    "delete",
    "known_vectors",
    "narrow",
    "record_failure",
    "settle",
    "sweep",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A document to commit with all its chunks, which carry no revision or row_id yet."""

    base: Document | None
    """The catalog row, a tombstone too, that the decision was made on; None: there was none."""
    document: Document
    """What the row shall say; serial, revision, chunk_count and times are set at the commit."""
    chunks: Sequence[Chunk]


# ------------------------------------------------------------------------------------ content


def known_vectors(stores: Stores, text_hashes: Iterable[str]) -> dict[str, Vector]:
    """Vectors of texts that any row of this generation holds; the others must be embedded."""
    known: dict[str, Vector] = {}
    for hashes in batches(sorted(set(text_hashes))):
        row_ids = stores.text.find_text(hashes)
        vectors = stores.vectors.fetch(set(row_ids.values()))
        known |= {h: vectors[row_id] for h, row_id in row_ids.items() if row_id in vectors}
    return known


def commit_revision(
    stores: Stores,
    *,
    base: Document | None,
    document: Document,
    chunks: Sequence[Chunk],
    vectors: Mapping[str, Vector],
) -> Outcome:
    """`commit_many` for one document; raises the error that stopped it."""
    change = Change(base=base, document=document, chunks=chunks)
    return _raised(commit_many(stores, [change], vectors)[0])


def commit_many(
    stores: Stores, changes: Sequence[Change], vectors: Mapping[str, Vector]
) -> list[Outcome]:
    """Commits each document on its own, with store calls shared by all; outcomes in order.

    `vectors` maps the text hash of every chunk to its embedding. A document without chunks is
    committed with nothing to serve, and its state must say why. A narrower ACL than that of
    `base` is committed before anything is written. An outcome's error is Conflict, RowsRejected or
    StoreError; a store that cannot be reached raises StoreUnavailable for all.
    """
    attempts = [_begin(change) for change in changes]
    _narrow_first(stores, attempts)
    text_rows: list[TextRow] = []
    vector_rows: list[VectorRow] = []
    for change, attempt in zip(changes, attempts, strict=True):
        if attempt.error is None:
            stamp(attempt)
            text, vector = make_rows(attempt, change.chunks, vectors)
            text_rows += text
            vector_rows += vector
    write(stores, attempts, text_rows, vector_rows)
    return finish(stores, attempts)


def record_failure(stores: Stores, base: Document | None, document: Document) -> Document:
    """Commits how an attempt to read a document failed; what was served stays served.

    If `base` is live, `state` and `error` of `document` are taken, and what it no longer grants
    ends as in `narrow`: an edit that could not be read as a whole may have taken rights away. An
    empty ACL closes what is served. What was deleted by hand stays as it is: a failure is no other
    content, and a row without the tombstone's mark would let it back. Raises Conflict.
    """
    if base and base.deleted_by_hand:
        return base
    failed = document
    if base and base.revision:
        kept = _narrowed(base, document) or base
        failed = replace(kept, state=document.state, error=document.error)
    failed = replace(
        failed,
        serial=base.serial if base else 0,
        revision=base.revision if base else "",
        chunk_count=base.chunk_count if base and base.revision else 0,
        indexed_at=base.indexed_at if base else None,
        committed_at=base.committed_at if base else None,
    )
    if failed == base:
        return base
    return commit_row(stores, base, failed)


def bury(stores: Stores, document: Document, *, by_hand: bool = False) -> Document:
    """Commits the tombstone: gone for readers at once; `delete` of it takes its rows away.

    Until then the vectors of its rows can be used again, for a document that has moved. A
    tombstone is given back as it is. `by_hand`: not because its source lost it. Raises Conflict.
    """
    if document.state is DocState.DELETED and not document.revision:
        return document
    tombstone = replace(
        document,
        state=DocState.DELETED,
        revision="",
        error="",
        chunk_count=0,
        deleted_by_hand=by_hand,
    )
    return commit_row(stores, document, tombstone)


def delete(stores: Stores, document: Document) -> Outcome:
    """Commits the tombstone, gone for readers at once, then sweeps the rows.

    A tombstone is only swept. Raises Conflict.
    """
    gone = bury(stores, document)
    sweep(stores, gone)
    return Outcome(document=gone, deleted=document.chunk_count)


# ------------------------------------------------------------------------------------- labels


def narrow(stores: Stores, base: Document, document: Document) -> Document:
    """Takes from `base` at once what `document` no longer grants, and its being current if
    `document` is a draft or withdrawn; gives the row as it stands.

    Writes no rows: the catalog check keeps readers out, whatever the stores say. The row's
    meta_hash is emptied, so that the next sync sees that its rows still carry the old labels.
    Raises Conflict.
    """
    narrowed = _narrowed(base, document)
    return base if narrowed is None else commit_row(stores, base, narrowed)


def change_labels(stores: Stores, base: Document, document: Document) -> Outcome:
    """Commits other labels for the chunks that `base` serves, as a revision of copied rows.

    Nothing is embedded. What `document` no longer grants ends first (`narrow`); what it newly
    grants begins at the commit, when all rows are there. Raises Conflict, and StoreError if a
    store lacks a row of `base`: read the document anew.
    """
    if not base.revision:
        raise ValueError("change_labels needs a document that is served")
    source = narrow(stores, base, document)
    attempt = Attempt(base=source, document=document, indexed_at=base.indexed_at)
    stamp(attempt)
    _copy(stores, attempt, source)
    return _raised(finish(stores, [attempt])[0])


def _copy(stores: Stores, attempt: Attempt, source: Document) -> None:
    for start in range(0, source.chunk_count, BATCH_ROWS):
        ordinals = range(start, min(start + BATCH_ROWS, source.chunk_count))
        chunks = stores.text.chunks(source.doc_id, source.revision, ordinals)
        held = stores.vectors.fetch([chunk.row_id for chunk in chunks])
        if len(chunks) < len(ordinals) or len(held) < len(chunks):
            delete_rows(stores, attempt.row_ids)
            raise missing_rows(stores, source, source.doc_id)
        vectors = {chunk.text_hash: held[chunk.row_id] for chunk in chunks}
        text_rows, vector_rows = make_rows(attempt, chunks, vectors)
        write(stores, [attempt], text_rows, vector_rows)
        if attempt.error:
            return


# ------------------------------------------------------------------------------------- pieces


def _begin(change: Change) -> Attempt:
    if not change.chunks and change.document.state in (DocState.INDEXED, DocState.PARTIAL):
        raise ValueError("a document without chunks needs a state that says why")
    return Attempt(base=change.base, document=change.document)


def _narrow_first(stores: Stores, attempts: Sequence[Attempt]) -> None:
    pending = []
    for attempt in attempts:
        narrowed = _narrowed(attempt.base, attempt.document) if attempt.base else None
        if narrowed is not None:
            pending.append((attempt, timed(stores, narrowed, narrowed)))
    if not pending:
        return
    results = stores.catalog.commit_many([narrowed for _, narrowed in pending])
    for (attempt, _), result in zip(pending, results, strict=True):
        if isinstance(result, Document):
            attempt.base = result
        else:
            attempt.error = result


def _narrowed(base: Document, document: Document) -> Document | None:
    """`base` with only those grants that `document` keeps, and current only if that is; None if it
    loses nothing."""
    kept = base.acl
    if base.tenant != document.tenant:
        kept = ()
    elif PUBLIC not in document.acl:  # everybody holds it, whatever else they hold
        kept = tuple(scope for scope in base.acl if scope in document.acl)
    status = document.status if base.status is Status.CURRENT else base.status
    if not base.revision or (kept, status) == (base.acl, base.status):
        return None
    return replace(base, acl=kept, status=status, meta_hash="")


def _raised(outcome: Outcome) -> Outcome:
    if outcome.error:
        raise outcome.error
    return outcome
