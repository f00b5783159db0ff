"""Puts a generated corpus into any stores, with all that lies about in real ones, and breaks parts.

Stores are caches (invariant 2), so they are made to lie here: rows of deleted and replaced
revisions are put back, rows of attempts that never committed lie beside them, and rows of documents
that were narrowed go on saying that everybody may read them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from quarry import ids
from quarry.errors import ModelError, StoreUnavailable
from quarry.models.fakes import FakeEmbedder, FakeReranker
from quarry.records import Chunk, Document, Labels, Piece, Principal, Prompt, TextRow, VectorRow
from quarry.revisions import commit_revision, delete
from quarry.stores.factory import Stores
from quarry.text import embedded_text, identifiers
from serve.models import LoadedModels
from tests.leaks.cases import Corpus, Doc, Who
from tests.unit.serve.serve_world import OneOf

DOWN = StoreUnavailable("The store cannot be reached; check that it runs.")
BROKEN = ModelError("The model failed; try again.")
_TAGS = re.compile(r"</?\w+>|\w+:")
EMBEDDER = FakeEmbedder(dimension=32)


@dataclass
class Filled:
    """Stores that hold a corpus, and the ids that stand for each document of it."""

    stores: Stores
    corpus: Corpus
    served: dict[int, set[str]] = field(default_factory=dict)
    """By number of a document: its doc_id, and the revision and chunk_ids that it serves."""

    @classmethod
    def of(cls, corpus: Corpus, stores: Stores) -> Filled:
        filled = cls(stores, corpus)
        for doc in corpus.docs:
            filled._put(doc)
        stores.text.publish()
        stores.vectors.flush()
        return filled

    def _put(self, doc: Doc) -> None:
        served = _chunks(doc, "served")
        if doc.fate == "attempt":
            self._lay(_rows(doc, served, ids.new_token(0), _row(doc)))
            return
        everybody = replace(_row(doc), acl=("public",))
        if doc.fate in ("replaced", "narrowed"):
            # What was served before was for everybody, and still says so.
            first = self._commit(everybody, _chunks(doc, "dead"))
            self._commit(_row(doc), served)
            self._lay(_rows(doc, _chunks(doc, "dead"), first.revision, everybody))
        if doc.fate == "narrowed":
            last = self.stores.catalog.get([_row(doc).doc_id])[_row(doc).doc_id]
            self._lay(_rows(doc, served, last.revision, everybody))
        elif doc.fate in ("live", "overtaken", "deleted"):
            last = self._commit(_row(doc), served)
            if doc.fate == "overtaken":
                dead = _chunks(doc, "dead")
                self._lay(_rows(doc, dead, ids.new_token(last.serial), everybody))
            if doc.fate == "deleted":
                delete(self.stores, last)
                self._lay(_rows(doc, served, last.revision, everybody))
        if doc.served:
            row = self.stores.catalog.get([_row(doc).doc_id])[_row(doc).doc_id]
            names = (chunk.chunk_id for chunk in served)
            self.served[doc.number] = {row.doc_id, row.revision, *names}

    def _commit(self, document: Document, chunks: Sequence[Chunk]) -> Document:
        base = self.stores.catalog.get([document.doc_id]).get(document.doc_id)
        vectors = {chunk.text_hash: _vector(chunk) for chunk in chunks}
        outcome = commit_revision(
            self.stores, base=base, document=document, chunks=chunks, vectors=vectors
        )
        assert outcome.document is not None
        return outcome.document

    def _lay(self, rows: Iterable[tuple[TextRow, VectorRow]]) -> None:
        texts, vectors = zip(*rows, strict=True)
        self.stores.text.upsert(texts)
        self.stores.vectors.upsert(vectors)

    def allowed(self, docs: Iterable[Doc]) -> set[str]:
        """Every word and id that these documents may show."""
        found: set[str] = set()
        for doc in docs:
            found |= {doc.mark, *doc.chunk_marks("served"), *self.served[doc.number]}
        return found


def _row(doc: Doc) -> Document:
    name = f"{doc.mark}.md"
    return Document(
        doc_id=ids.doc_id("test", name),
        source="test",
        address=name,
        uri=name,
        url=f"https://docs.example/{doc.mark}",
        title=f"Title {doc.mark}",
        tenant=doc.tenant,
        acl=doc.acl,
        status=doc.status,
        series=doc.series,
        version=str(doc.version) if doc.series else "",
        effective=doc.effective,
        metadata={"region": doc.region, "owner": doc.mark},
    )


def _chunks(doc: Doc, revision: str) -> list[Chunk]:
    header = f"Header {doc.mark}"
    made = []
    for place, word in enumerate(doc.chunk_marks(revision)):
        text = f"{doc.texts[place].capitalize()} is {word}."
        whole = embedded_text(header, text)
        made.append(
            Chunk(
                row_id="",
                chunk_id=ids.chunk_id(_row(doc).doc_id, whole, 0),
                doc_id=_row(doc).doc_id,
                revision="",
                ordinal=place,
                text=text,
                header=header,
                section=(f"Section {doc.mark}",),
                anchor=doc.mark,
                tokens=len(whole.split()) + 2,
                text_hash=ids.digest(whole),
                identifiers=identifiers(whole),
            )
        )
    return made


def _rows(
    doc: Doc, chunks: Sequence[Chunk], revision: str, says: Document
) -> Iterable[tuple[TextRow, VectorRow]]:
    labels = Labels(
        source=says.source,
        tenant=says.tenant,
        acl=says.acl,
        series=says.series,
        version=says.version,
        status=says.status,
        effective=says.effective,
        metadata=says.metadata,
    )
    for chunk in chunks:
        row_id = ids.row_id(chunk.chunk_id, revision)
        yield (
            TextRow(chunk=replace(chunk, row_id=row_id, revision=revision), labels=labels),
            VectorRow(
                row_id=row_id,
                chunk_id=chunk.chunk_id,
                doc_id=chunk.doc_id,
                revision=revision,
                labels=labels,
                vector=_vector(chunk),
            ),
        )


def _vector(chunk: Chunk) -> Any:
    return EMBEDDER.embed_documents([embedded_text(chunk.header, chunk.text)])[0]


def principal(who: Who) -> Principal:
    return Principal(user=who.user, groups=who.groups, tenant=who.tenant)


# --------------------------------------------------------------------------------- what is down


def _fail(error: Exception) -> Callable[..., Any]:
    def fail(*_args: Any, **_kwargs: Any) -> Any:
        raise error

    return fail


def stores_with(outage: str, stores: Stores) -> Stores:
    """The stores, some of whose methods fail."""
    catalog, text, vectors = stores.catalog, stores.text, stores.vectors
    if outage in ("dense", "everything"):
        vectors = OneOf(vectors, search=_fail(DOWN), fetch=_fail(DOWN))
    if outage in ("lexical", "everything"):
        text = OneOf(text, search=_fail(DOWN))
    if outage == "neighbours":
        text = OneOf(text, chunks=_fail(DOWN))
    if outage == "catalog":
        catalog = OneOf(catalog, get=_fail(DOWN), scan=_fail(DOWN))
    return replace(stores, catalog=catalog, text=text, vectors=vectors)


class Listening:
    """A generator that keeps every prompt that it is given.

    Before a search, where it has no sources, it repeats all the words that it is told.
    """

    def __init__(self, inner: Any) -> None:
        self._inner = inner
        self.prompts: list[Prompt] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    async def stream(self, prompt: Prompt) -> Any:
        self.prompts.append(prompt)
        if not prompt.evidence:
            yield Piece(text=" ".join(_TAGS.sub(" ", prompt.messages[-1].content).split()))
            return
        async for piece in self._inner.stream(prompt):
            yield piece


def models_with(outage: str, generator: Any) -> LoadedModels:
    """Models without weights, some of which fail."""
    embedder: Any = EMBEDDER
    reranker: Any = FakeReranker(fuses=True)
    fallback = None
    if outage == "embedder":
        embedder = OneOf(EMBEDDER, embed_question=_fail(BROKEN))
    if outage == "reranker":
        reranker = OneOf(reranker, score=_fail(BROKEN))
    if outage == "generator":
        generator, fallback = OneOf(generator, stream=_fail(BROKEN)), generator
    return LoadedModels(
        embedder=embedder, reranker=reranker, generator=generator, fallback=fallback
    )
