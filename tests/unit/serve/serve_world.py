"""A small world for the tests of serving: stores in memory, fake models, documents in one line."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

from quarry import ids
from quarry.models.extractive import ExtractiveGenerator
from quarry.models.fakes import FakeEmbedder, FakeGenerator, FakeReranker
from quarry.records import (
    Answer,
    Chunk,
    Document,
    Message,
    Mode,
    Piece,
    Principal,
    Prompt,
    SearchRequest,
    SearchResult,
)
from quarry.revisions import commit_revision, delete
from quarry.settings import Settings
from quarry.stores.factory import Stores
from quarry.stores.memory import MemoryCatalog, MemoryTextStore, MemoryVectorStore
from quarry.text import embedded_text, identifiers
from serve.engine import Engine, make_engine
from serve.index import Index
from serve.models import LoadedModels
from serve.stage import Threads


class OneOf:
    """A store, reranker or generator with some methods replaced."""

    def __init__(self, inner: Any, **replaced: Any) -> None:
        self._inner = inner
        self._replaced = replaced

    def __getattr__(self, name: str) -> Any:
        return self._replaced.get(name) or getattr(self._inner, name)


@dataclass
class World:
    """Build it with `add`, break parts of it, ask it."""

    settings: Settings = field(default_factory=lambda: Settings.model_validate({}))
    stores: Stores = field(
        default_factory=lambda: Stores(
            MemoryCatalog(retention=timedelta(days=36_500)), MemoryTextStore(), MemoryVectorStore()
        )
    )
    embedder: Any = field(default_factory=FakeEmbedder)
    reranker: Any = None
    generator: Any = field(default_factory=ExtractiveGenerator)
    fallback: Any = None
    threads: Threads = field(default_factory=lambda: Threads(4))

    def __post_init__(self) -> None:
        self.stores.ensure(self.embedder.fingerprint.dimension)

    def add(self, name: str, *texts: str, **facts: Any) -> Document:
        """Commits the document `name` with one chunk a text; adding it again replaces it."""
        doc_id = ids.doc_id("test", name)
        header = facts.pop("header", name)
        section = facts.pop("section", ())
        pages = facts.pop("pages", None)
        document = Document(
            doc_id=doc_id,
            address=name,
            uri=name,
            title=facts.pop("title", name),
            **{"source": "test", "acl": ("public",), **facts},
        )
        chunks = [
            chunk_of(doc_id, n, text, header=header, section=section, pages=pages)
            for n, text in enumerate(texts)
        ]
        vectors = {
            chunk.text_hash: self.embedder.embed_documents([embedded_text(header, chunk.text)])[0]
            for chunk in chunks
        }
        outcome = commit_revision(
            self.stores,
            base=self.stores.catalog.get([doc_id]).get(doc_id),
            document=document,
            chunks=chunks,
            vectors=vectors,
        )
        assert outcome.document is not None
        return outcome.document

    def remove(self, name: str) -> None:
        doc_id = ids.doc_id("test", name)
        delete(self.stores, self.stores.catalog.get([doc_id])[doc_id])

    def replace_store(self, **stores: Any) -> None:
        """Puts another object in the place of `catalog`, `text` or `vectors`."""
        self.stores = replace(self.stores, **stores)

    def engine(self) -> Engine:
        models = LoadedModels(
            embedder=self.embedder,
            reranker=self.reranker,
            generator=self.generator,
            fallback=self.fallback,
        )
        index = Index.of("g1", self.stores)
        return make_engine(self.settings, index=index, models=models, threads=self.threads)

    async def search(self, question: str, **options: Any) -> SearchResult:
        return await self.engine().search(request(question, **options))

    async def ask(self, question: str, **options: Any) -> Answer:
        return await self.engine().answer_whole(request(question, **options))


def request(question: str, *, user: str = "", groups: Sequence[str] = (), **rest: Any) -> Any:
    who = Principal(user=user, groups=tuple(groups))
    return SearchRequest(question=question, principal=who, **rest)


def chunk_of(doc_id: str, ordinal: int, text: str, **facts: Any) -> Chunk:
    header = facts.pop("header", "")
    whole = embedded_text(header, text)
    return Chunk(
        row_id="",
        chunk_id=ids.chunk_id(doc_id, whole, 0),
        doc_id=doc_id,
        revision="",
        ordinal=ordinal,
        text=text,
        header=header,
        tokens=facts.pop("tokens", len(whole.split()) + 2),
        text_hash=ids.digest(whole),
        identifiers=identifiers(whole),
        **facts,
    )


def names(result: SearchResult) -> list[str]:
    """The documents of the results, in order."""
    return [candidate.document.uri for candidate in result.candidates]


class Scripted:
    """A generator that writes what it is told, and remembers what it was asked."""

    def __init__(self, *pieces: str, error: Exception | None = None, delay_s: float = 0.0) -> None:
        self._pieces = pieces
        self._error = error
        self._delay_s = delay_s
        self.prompts: list[Prompt] = []
        self.closed = False

    name = "scripted"

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        return [len(text.split()) for text in texts]

    def count_prompt(self, messages: Sequence[Message]) -> int:
        return sum(self.count_tokens([message.content for message in messages]))

    async def stream(self, prompt: Prompt) -> AsyncGenerator[Piece, None]:
        self.prompts.append(prompt)
        try:
            for text in self._pieces:
                await asyncio.sleep(self._delay_s)
                yield Piece(text=text)
            if self._error:
                raise self._error
        finally:
            self.closed = True


def failing(error: Exception) -> Callable[..., Any]:
    def fail(*_args: Any, **_kwargs: Any) -> Any:
        raise error

    return fail


__all__ = ["FakeGenerator", "FakeReranker", "Mode", "OneOf", "Scripted", "World", "failing"]
