"""The stages after reading, as plain classes, and how each stage is built on its worker.

A stage takes a batch of rows and gives rows, holds what it needs, and knows nothing of Ray.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import structlog

from ingest.chunking import Chunker
from ingest.reading import Reader, ReadSettings
from ingest.work import Done, End, Row, Work
from quarry import revisions
from quarry.errors import Conflict, ModelError, RowsRejected
from quarry.ports import Embedder, Source
from quarry.records import DocState, Document, Vector
from quarry.settings import Settings
from quarry.stores.factory import Stores, open_catalog, open_stores
from quarry.text import embedded_text

_log = structlog.get_logger(__name__)


class Stage(Protocol):
    def __call__(self, rows: Sequence[Row]) -> Iterable[Row]: ...


class Encoder:
    """Gives every chunk its vector: known ones are looked up, the others computed in one call.

    Raises ModelError, StoreUnavailable.
    """

    def __init__(self, stores: Stores, embedder: Embedder) -> None:
        self._stores = stores
        self._embedder = embedder

    def __call__(self, rows: Sequence[Row]) -> Iterable[Row]:
        texts = {
            chunk.text_hash: embedded_text(chunk.header, chunk.text)
            for row in rows
            if isinstance(row, Work)
            for chunk in row.chunks
        }
        vectors = revisions.known_vectors(self._stores, texts) if texts else {}
        new = {text_hash: text for text_hash, text in texts.items() if text_hash not in vectors}
        vectors |= self._computed(new)
        for row in rows:
            yield _with_vectors(row, vectors, new) if isinstance(row, Work) else row

    def _computed(self, texts: dict[str, str]) -> dict[str, Vector]:
        if not texts:
            return {}
        rows = self._embedder.embed_documents(list(texts.values()))
        expected = (len(texts), self._embedder.fingerprint.dimension)
        if rows.shape != expected:
            raise ModelError(f"The embedder gave vectors of shape {rows.shape}, not {expected}.")
        return dict(zip(texts, rows, strict=True))


def _with_vectors(work: Work, vectors: dict[str, Vector], new: dict[str, str]) -> Work:
    hashes = {chunk.text_hash for chunk in work.chunks}
    return replace(
        work,
        vectors={text_hash: vectors[text_hash] for text_hash in hashes},
        embedded=sum(chunk.text_hash in new for chunk in work.chunks),
    )


class Writer:
    """Commits whole documents, each on its own, with store calls shared by all of a batch.

    Raises StoreError if a store fails; what was committed before stays.
    """

    def __init__(self, stores: Stores) -> None:
        self._stores = stores

    def __call__(self, rows: Sequence[Row]) -> Iterable[Row]:
        works = [row for row in rows if isinstance(row, Work)]
        yield from (row for row in rows if isinstance(row, (Done, End)))
        yield from self._commit([work for work in works if work.chunks])
        yield from (self._record_failure(work) for work in works if not work.chunks)

    def _commit(self, works: Sequence[Work]) -> Iterable[Row]:
        vectors: dict[str, Vector] = {}
        for work in works:
            vectors.update(work.vectors)
        changes = [
            revisions.Change(base=work.base, document=work.document, chunks=work.chunks)
            for work in works
        ]
        outcomes = revisions.commit_many(self._stores, changes, vectors) if changes else []
        for work, outcome in zip(works, outcomes, strict=True):
            if isinstance(outcome.error, Conflict):
                yield _done(work, work.document, conflict=True)
            elif isinstance(outcome.error, RowsRejected):
                yield self._record_failure(_rejected(work, outcome.error))
            elif outcome.error is not None:
                raise outcome.error
            else:
                yield replace(
                    _done(work, work.document),
                    embedded=work.embedded,
                    reused=len(work.chunks) - work.embedded,
                    deleted=outcome.deleted,
                )

    def _record_failure(self, work: Work, *, last: bool = False) -> Done:
        try:
            row = revisions.record_failure(self._stores, work.base, work.document)
        except Conflict:
            return _done(work, work.document, conflict=True)
        except RowsRejected as error:
            if not last:
                return self._record_failure(_bare(_rejected(work, error)), last=True)
            # The summary names it, and the next run reads its address again.
            _log.warning("document_rejected", address=work.document.address)
            return _done(work, work.document)
        return replace(_done(work, work.document), away=row.deleted_by_hand)


def _done(work: Work, document: Document, *, conflict: bool = False) -> Done:
    return Done(
        task=work.task,
        uri=document.uri,
        state=document.state,
        reason=document.error,
        conflict=conflict,
    )


def _rejected(work: Work, error: RowsRejected) -> Work:
    reason = next(iter(error.rows.values()))
    is_row = work.document.doc_id in error.rows
    what = "its catalog row" if is_row else f"{len(error.rows)} of its chunks"
    document = replace(
        work.document, state=DocState.FAILED, error=f"{error.store} rejected {what}: {reason}."
    )
    return replace(work, document=document, chunks=(), vectors={})


def _bare(work: Work) -> Work:
    """Without what its metadata say beside who may read it: some of that cannot be stored."""
    document = work.document
    bare = Document(
        doc_id=document.doc_id,
        source=document.source,
        address=document.address,
        uri=document.uri,
        recipe=document.recipe,
        state=document.state,
        error=document.error,
        tenant=document.tenant,
        acl=document.acl,
    )
    return replace(work, document=bare)


# ----------------------------------------------------------------------- built on the workers


@dataclass(frozen=True, slots=True, kw_only=True)
class StageSettings:
    """What every worker needs to build its stage; small, and safe to send."""

    settings: Settings
    generation: str
    sources: tuple[Source, ...]
    recipe: str
    read_threads: int = 1
    embed_threads: int = 1
    """Threads of one embedding worker on a CPU."""


def make_reader(config: StageSettings) -> Stage:
    from ingest.parsers.sandbox import ParserPool
    from quarry.models.counter import load_counter

    settings = config.settings
    pool = settings.model_copy(
        update={"ingest": settings.ingest.model_copy(update={"parse_workers": config.read_threads})}
    )
    return Reader(
        sources=config.sources,
        parser=ParserPool(pool),
        chunker=Chunker(load_counter(settings.embedder), settings.chunking),
        catalog=open_catalog(settings, config.generation),
        config=ReadSettings(settings=settings, recipe=config.recipe, threads=config.read_threads),
    )


def make_encoder(config: StageSettings) -> Stage:
    from quarry.models.factory import load_embedder

    embedder = load_embedder(config.settings.embedder)
    _use_threads(config.embed_threads)
    return Encoder(open_stores(config.settings, config.generation), embedder)


def make_writer(config: StageSettings) -> Stage:
    return Writer(open_stores(config.settings, config.generation))


def _use_threads(count: int) -> None:
    """Ray starts workers with one thread; the embedder needs its cores."""
    torch = sys.modules.get("torch")
    if torch is not None:
        torch.set_num_threads(count)
