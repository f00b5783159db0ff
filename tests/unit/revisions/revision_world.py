"""A small world for the proofs of the commit protocol: sources, a sync, readers, and crashes.

`sync` decides as an ingest does and does all its work through `quarry.revisions`. Readers follow
the rule of every reader: candidates from the stores, then texts, then the catalog, which alone is
believed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import lru_cache
from typing import Any

import numpy as np

from loadtests.chaos.watch import Pending
from quarry import ids, revisions
from quarry.access.check import may_read
from quarry.access.compile import labels_of, matches
from quarry.access.filters import EVERYTHING, Compare, Filter, Op
from quarry.entries import mark
from quarry.ids import token_serial
from quarry.records import Chunk, DocState, Document, Hit, Principal, RowRef, Scalar, Vector
from quarry.stores.factory import Stores
from quarry.stores.memory import MemoryCatalog, MemoryTextStore, MemoryVectorStore

DIMENSION = 4
WORD = "tent"
"""In every passage, so that a question for it finds all rows."""
DOC = "d1"


class Crash(BaseException):
    """The process is gone. Not an Exception, so that nobody swallows it."""


@dataclass(frozen=True)
class Page:
    """What a source says of one document at some time; None in its place: it is not there."""

    passages: tuple[str, ...]
    acl: tuple[str, ...] = ("public",)
    metadata: Mapping[str, Scalar] = field(default_factory=dict)
    broken: bool = False
    copied: bool = False
    """Other labels come by copies of the rows, as `verify --repair` mends them; a sync writes a
    revision of known vectors."""

    @property
    def texts(self) -> frozenset[str]:
        return frozenset(f"{WORD} {passage}" for passage in self.passages)


def memory_stores() -> Stores:
    catalog = MemoryCatalog(retention=timedelta(days=36_500))  # tests look at what was replaced
    stores = Stores(catalog, MemoryTextStore(), MemoryVectorStore())
    stores.ensure(DIMENSION)
    stores.catalog.put_entry(mark("handbook", unfinished=True))  # no document has an entry
    return stores


# ---------------------------------------------------------------------------------- the writer


def sync(stores: Stores, page: Page | None, doc: str = DOC) -> None:
    """Brings one document in line with its source. Raises Conflict if another writer was faster."""
    base = stores.catalog.get([doc]).get(doc)
    if page is None:
        if base:
            revisions.delete(stores, base)
        return
    document = document_of(page, doc)
    if page.broken:
        revisions.record_failure(
            stores, base, replace(document, state=DocState.CORRUPT, error="it cannot be read")
        )
        return
    served = base if base and base.revision else None
    if served and _mark(served) == _mark(document):
        if served.meta_hash == document.meta_hash:
            revisions.settle(stores, served)
            return
        if page.copied:
            revisions.change_labels(stores, served, document)
            return
    chunks = chunks_of(page, doc)
    vectors = revisions.known_vectors(stores, [chunk.text_hash for chunk in chunks])
    vectors |= {c.text_hash: embed(c.text) for c in chunks if c.text_hash not in vectors}
    revisions.commit_revision(stores, base=base, document=document, chunks=chunks, vectors=vectors)


def _mark(row: Document) -> tuple[str, str, str]:
    return row.content_hash, row.recipe, row.state.value


def document_of(page: Page, doc: str = DOC) -> Document:
    return Document(
        doc_id=doc,
        source="handbook",
        address=f"{doc}.md",
        uri=f"{doc}.md",
        content_hash=ids.digest(*page.passages),
        meta_hash=ids.digest(*page.acl, repr(sorted(page.metadata.items()))),
        acl=page.acl,
        metadata=page.metadata,
    )


def chunks_of(page: Page, doc: str = DOC) -> list[Chunk]:
    return [
        Chunk(
            row_id="",
            chunk_id=ids.chunk_id(doc, passage, 0),
            doc_id=doc,
            revision="",
            ordinal=ordinal,
            text=f"{WORD} {passage}",
            header="",
            text_hash=ids.digest(passage),
        )
        for ordinal, passage in enumerate(page.passages)
    ]


@lru_cache
def embed(text: str) -> Vector:
    seed = int(ids.digest(text, size=4), 16)
    values = np.random.default_rng(seed).normal(size=DIMENSION)
    return (values / np.linalg.norm(values)).astype(np.float32)


# ---------------------------------------------------------------------------------- the reader


@dataclass(frozen=True)
class Seen:
    """What one person saw of one document: its texts by leg, and the row that let them pass."""

    document: Document
    lexical: tuple[str, ...]
    dense: tuple[str, ...]

    @property
    def texts(self) -> frozenset[str]:
        return frozenset(self.lexical + self.dense)


LOOKS = 4


def read(stores: Stores, principal: Principal, where: Filter = EVERYTHING) -> dict[str, Seen]:
    """Searches both legs for everything; looks again while documents are replaced under it."""
    for _ in range(LOOKS):
        lexical = stores.text.search(WORD, limit=1000, where=where)
        dense = stores.vectors.search(embed(WORD), limit=1000, where=where)
        hits = [*lexical, *dense]
        texts = stores.text.fetch({hit.row_id for hit in hits})
        documents = stores.catalog.get({hit.doc_id for hit in hits})
        if not any(_was_replaced(hit, documents, texts) for hit in hits):
            break
    admitted = {
        doc: document
        for doc, document in documents.items()
        if may_read(principal, document) and matches(where, labels_of(document))
    }
    return {
        doc: seen
        for doc, document in admitted.items()
        if (seen := _seen(document, lexical, dense, texts)).texts
    }


def _was_replaced(hit: Hit, documents: Mapping[str, Document], texts: Mapping[str, Chunk]) -> bool:
    document = documents.get(hit.doc_id)
    if document is None or not document.revision:
        return False
    if hit.revision == document.revision:
        return hit.row_id not in texts
    return token_serial(hit.revision) < document.serial


def _seen(
    document: Document, lexical: Iterable[Hit], dense: Iterable[Hit], texts: Mapping[str, Chunk]
) -> Seen:
    def of(hits: Iterable[Hit]) -> tuple[str, ...]:
        return tuple(
            texts[hit.row_id].text
            for hit in hits
            if (hit.doc_id, hit.revision) == (document.doc_id, document.revision)
            and hit.row_id in texts
        )

    return Seen(document, of(lexical), of(dense))


def region(name: str) -> Filter:
    return Compare("region", Op.EQ, name)


# ------------------------------------------------------------------------------- what must hold


PEOPLE = [Principal(user="x", groups=groups) for groups in ((), ("hr",), ("eng",), ("ops",))]


def shows(stores: Stores, page: Page | None, doc: str = DOC) -> bool:
    """Whether each person gets exactly this page, or nothing if it is not theirs."""
    for person in PEOPLE:
        mine = may_see(person, page)
        seen = read(stores, person).get(doc)
        if (seen is None) != (mine is None) or (seen and mine and not is_whole(seen, mine)):
            return False
    return True


def may_see(person: Principal, page: Page | None) -> Page | None:
    """The page, if this person may read it."""
    scopes = {"public", *person.groups}
    return page if page and scopes & set(page.acl) else None


def is_whole(seen: Seen, page: Page) -> bool:
    expected = sorted(page.texts)
    return sorted(seen.lexical) == expected and sorted(seen.dense) == expected


def garbage(stores: Stores) -> list[RowRef]:
    """Rows that belong to no committed revision, in both stores."""
    rows = [*stores.text.scan(limit=100_000), *stores.vectors.scan(limit=100_000)]
    documents = stores.catalog.get({row.doc_id for row in rows})
    served = {(doc, row.revision) for doc, row in documents.items()}
    return [row for row in rows if (row.doc_id, row.revision) not in served]


def incomplete(stores: Stores, docs: Collection[str] = (DOC,)) -> list[str]:
    """Served documents that lack a row in a store: the catalog promises what is not there."""
    broken = []
    for doc, document in stores.catalog.get(docs).items():
        for store in (stores.text, stores.vectors):
            rows = store.row_refs([doc])
            held = sum(row.revision == document.revision for row in rows)
            if document.revision and held != document.chunk_count:
                broken.append(doc)
    return broken


# ------------------------------------------------------------------------------------- crashes


WRITES = frozenset({"upsert", "delete", "commit_many"})


@dataclass
class CrashAt:
    """Ends the process before its call number `call`; `torn`: after half of that call's work."""

    call: int
    torn: bool = False
    made: int = 0

    def __call__(self, store: str, method: str, target: Pending, args: tuple[Any, ...]) -> None:
        if self.made == self.call:
            if self.torn and method in WRITES:
                items = list(args[0])
                target(items[: len(items) // 2])
            raise Crash(f"before {store}.{method}")
        self.made += 1
