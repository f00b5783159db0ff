"""Brings documents in line with their pages, deciding as an ingest decides.

All work goes through `quarry.revisions`; what is here chooses what has to be done.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from loadtests.chaos.pages import Page, chunks_of, doc_id, document_of
from quarry import revisions
from quarry.models.fakes import FakeEmbedder
from quarry.records import Chunk, Document, Vector, Vectors
from quarry.revisions import Change, Outcome
from quarry.stores.factory import Stores
from quarry.text import embedded_text

Embed = Callable[[Sequence[str]], Vectors]


def read_base(stores: Stores, name: str) -> Document | None:
    return stores.catalog.get([doc_id(name)]).get(doc_id(name))


def sync(stores: Stores, name: str, page: Page | None, embed: Embed | None = None) -> None:
    """Makes readers see this page, or nothing for None. Raises Conflict, StoreError."""
    sync_from(stores, name, page, read_base(stores, name), embed)


def sync_from(
    stores: Stores,
    name: str,
    page: Page | None,
    base: Document | None,
    embed: Embed | None = None,
) -> Document | None:
    """`sync` for a document that was read already; gives the row that stands then."""
    if page is None:
        return _remove(stores, base) if base else None
    document = document_of(name, page)
    if base and base.revision and _mark(base) == _mark(document):
        return revisions.settle(stores, base)
    if base and base.revision:  # an ingest ends rights before it asks for vectors or embeds
        base = revisions.narrow(stores, base, document)
    chunks = chunks_of(name, page)
    return revisions.commit_revision(
        stores,
        base=base,
        document=document,
        chunks=chunks,
        vectors=vectors_of(stores, chunks, embed),
    ).document


def _mark(row: Document) -> tuple[str, str, str]:
    """Equal marks, equal documents; by the recipe `verify --repair` marks what is to be written."""
    return row.content_hash, row.meta_hash, row.recipe


def _remove(stores: Stores, base: Document) -> Document | None:
    """A tombstone may have rows of a crashed attempt to write the document again: they go too."""
    if base.revision:
        return revisions.delete(stores, base).document
    return revisions.settle(stores, base)


def sync_batch(stores: Stores, pages: Mapping[str, Page]) -> dict[str, Outcome]:
    """Writes new content of several documents at once, as an ingest's batch does."""
    bases = stores.catalog.get([doc_id(name) for name in pages])
    changes = [
        Change(
            base=bases.get(doc_id(name)),
            document=document_of(name, page),
            chunks=chunks_of(name, page),
        )
        for name, page in pages.items()
    ]
    vectors = vectors_of(stores, [chunk for change in changes for chunk in change.chunks])
    outcomes = revisions.commit_many(stores, changes, vectors)
    return dict(zip(pages, outcomes, strict=True))


def vectors_of(
    stores: Stores, chunks: Sequence[Chunk], embed: Embed | None = None
) -> dict[str, Vector]:
    """Vectors by text hash: known ones are copied, the others computed."""
    texts = {chunk.text_hash: embedded_text(chunk.header, chunk.text) for chunk in chunks}
    vectors = revisions.known_vectors(stores, texts)
    new = {name: text for name, text in texts.items() if name not in vectors}
    if new:
        computed = (embed or FakeEmbedder().embed_documents)(list(new.values()))
        vectors |= dict(zip(new, computed, strict=True))
    return vectors
