"""The Ray Serve deployments: thin shells round the graph, the models and the HTTP app.

    gateway → retriever → embedder, reranker, generator (counts tokens)
            → generator → embedder (the extractive one)

Classes are plain and become deployments in `build`. Each makes what it holds in its
constructor, on the replica, from a function that it is given.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from fastapi import FastAPI
from ray import serve
from ray.exceptions import RayActorError, RayTaskError
from ray.serve.exceptions import BackPressureError, DeploymentUnavailableError
from ray.serve.handle import DeploymentHandle

from quarry.access.principals import NOBODY_KNOWN, load_users
from quarry.errors import ModelError, Overloaded
from quarry.generations import open_live
from quarry.models.counter import load_counter
from quarry.models.factory import load_embedder, load_generator, load_reranker
from quarry.ports import Embedder, Generator, Reranker, TokenCounter
from quarry.records import (
    EmbedderFingerprint,
    Piece,
    Prompt,
    SearchRequest,
    SearchResult,
    Vector,
    Vectors,
)
from quarry.settings import Settings
from quarry.telemetry.logs import configure_logging
from serve.engine import Engine
from serve.extras import load_extras
from serve.graph import Answerer, Examined, Gathered, Searcher
from serve.http.app import create_app
from serve.http.limits import RETRY_AFTER_S
from serve.http.sign_in import SignIn
from serve.index import Index, impatient
from serve.models import EXTRACTIVE, Scores, SearchModels, load_fallback
from serve.stage import Threads

CPUS = {"gateway": 0.1, "retriever": 0.2, "embedder": 0.4, "reranker": 0.4, "generator": 0.2}
"""Logical cores of one replica; all together fit on two."""
WAIT_S = 600.0
"""Longest wait of a thread for the embedder, which may still be loading its weights."""
BATCH = 32
"""Questions of one forward pass of the embedder at most; it never waits to fill a batch."""


class EmbedderServer:
    """One embedder; questions that wait for it are embedded together."""

    def __init__(self, load: Callable[[], Embedder], settings: Settings) -> None:
        _prepare(settings)
        self._embedder = load()
        self._threads = Threads(2)

    @serve.batch(max_batch_size=BATCH, batch_wait_timeout_s=0.0)  # type: ignore[untyped-decorator]
    async def embed(self, questions: list[str]) -> list[Vector]:
        return list(await self._threads(self._embedder.embed_questions, questions))

    async def embed_documents(self, texts: Sequence[str]) -> Vectors:
        return await self._threads(self._embedder.embed_documents, texts)

    async def fingerprint(self) -> EmbedderFingerprint:
        return self._embedder.fingerprint


class RerankerServer:
    """One reranker; the passages of a question are its batch, questions take turns."""

    def __init__(self, load: Callable[[], Reranker], settings: Settings) -> None:
        _prepare(settings)
        self._reranker = load()
        self._threads = Threads(1)

    async def score(self, question: str, passages: Sequence[str]) -> Scores:
        values = await self._threads(self._reranker.score, question, passages)
        return Scores(values=values, fuses=self._reranker.fuses)


class GeneratorServer:
    """One generator; streams until the answer ends or the caller goes away."""

    async def __init__(  # type: ignore[misc]  # Ray Serve awaits it
        self,
        load: Callable[[DeploymentHandle], Generator],
        embedder: DeploymentHandle,
        settings: Settings,
    ) -> None:
        _prepare(settings)
        # In a thread, because it may ask the embedder and wait for it.
        self._generator = await asyncio.to_thread(load, embedder)
        self._threads = Threads(4)

    async def stream(self, prompt: Prompt) -> AsyncGenerator[Piece, None]:
        async for piece in self._generator.stream(prompt):
            yield piece

    async def count_tokens(self, texts: Sequence[str]) -> list[int]:
        return await self._threads(self._generator.count_tokens, texts)


class RetrieverServer:
    """Stores, catalog check, fusion and evidence of the live generation."""

    async def __init__(  # type: ignore[misc]  # Ray Serve awaits it
        self,
        open_searcher: Callable[[SearchModels, EmbedderFingerprint], Searcher],
        handles: ModelHandles,
        settings: Settings,
    ) -> None:
        _prepare(settings)
        fingerprint = await call(handles.embedder.fingerprint)
        self._searcher = await asyncio.to_thread(
            open_searcher, handles.search_models(), fingerprint
        )

    async def search(self, request: SearchRequest) -> SearchResult:
        return await self._searcher.search(request)

    async def gather(self, request: SearchRequest) -> Gathered:
        return await self._searcher.gather(request)

    async def examine(self, request: SearchRequest, expect: Sequence[Sequence[str]]) -> Examined:
        return await self._searcher.examine(request, expect)

    async def ready(self) -> dict[str, str]:
        return await self._searcher.ready()


class Gateway:
    """The HTTP app; signs in, admits, and writes answers from what the retriever gathers."""

    def __init__(
        self,
        make_app: Callable[[DeploymentHandle, DeploymentHandle], FastAPI],
        retriever: DeploymentHandle,
        generator: DeploymentHandle,
        settings: Settings,
    ) -> None:
        _prepare(settings)
        self._made = make_app(retriever, generator)

    def __serve_build_asgi_app__(self) -> FastAPI:
        return self._made


# -------------------------------------------------------------------------- calls between them


@dataclass(frozen=True, slots=True)
class ModelHandles:
    """The model deployments as the retriever calls them."""

    embedder: DeploymentHandle
    reranker: DeploymentHandle | None
    generator: DeploymentHandle

    def search_models(self) -> SearchModels:
        reranker = self.reranker

        async def rerank(question: str, passages: Sequence[str]) -> Scores:
            assert reranker is not None
            scores: Scores = await call(reranker.score, question, passages)
            return scores

        async def embed(question: str) -> Vector:
            vector: Vector = await call(self.embedder.embed, question)
            return vector

        async def embed_passages(texts: Sequence[str]) -> Vectors:
            vectors: Vectors = await call(self.embedder.embed_documents, texts)
            return vectors

        async def count_tokens(texts: Sequence[str]) -> list[int]:
            counts: list[int] = await call(self.generator.count_tokens, texts)
            return counts

        return SearchModels(
            embed=embed,
            embed_passages=embed_passages,
            rerank=rerank if reranker else None,
            count_tokens=count_tokens,
            write=RemoteGenerator(self.generator).stream,
        )


class RemoteEmbedder:
    """The embedder deployment as an `Embedder`, for threads: its calls block.

    Tokens are counted here, from the tokenizer alone.
    """

    def __init__(self, handle: DeploymentHandle, counter: TokenCounter) -> None:
        self._handle = handle
        self._counter = counter
        self._fingerprint: EmbedderFingerprint = _wait(handle.fingerprint)

    @property
    def fingerprint(self) -> EmbedderFingerprint:
        return self._fingerprint

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        return self._counter.count_tokens(texts)

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        vectors: Vectors = _wait(self._handle.embed_documents, texts)
        return vectors

    def embed_question(self, text: str) -> Vector:
        vector: Vector = _wait(self._handle.embed, text)
        return vector

    def embed_questions(self, texts: Sequence[str]) -> Vectors:
        return np.array([self.embed_question(text) for text in texts], dtype=np.float32)


@dataclass(frozen=True, slots=True)
class RemoteSearcher:
    """The retriever deployment as the engine calls it."""

    handle: DeploymentHandle

    async def search(self, request: SearchRequest) -> SearchResult:
        result: SearchResult = await call(self.handle.search, request)
        return result

    async def gather(self, request: SearchRequest) -> Gathered:
        gathered: Gathered = await call(self.handle.gather, request)
        return gathered

    async def examine(self, request: SearchRequest, expect: Sequence[Sequence[str]]) -> Examined:
        examined: Examined = await call(self.handle.examine, request, expect)
        return examined

    async def ready(self) -> dict[str, str]:
        parts: dict[str, str] = await call(self.handle.ready)
        return parts


@dataclass(frozen=True, slots=True)
class RemoteGenerator:
    """The generator deployment as the answer stages call it."""

    handle: DeploymentHandle

    async def stream(self, prompt: Prompt) -> AsyncGenerator[Piece, None]:
        response = self.handle.options(stream=True).stream.remote(prompt)
        try:
            async for piece in response:
                yield piece
        except Exception as error:
            raise translated(error) from error
        finally:
            response.cancel()


async def call(method: Any, *arguments: Any) -> Any:
    """The result of a deployment's method; its errors are those of `quarry.errors`.

    A call that is given up here, such as at a deadline, is cancelled there.
    """
    response = method.remote(*arguments)
    try:
        return await response
    except asyncio.CancelledError:
        response.cancel()
        raise
    except Exception as error:
        raise translated(error) from error


def _wait(method: Any, *arguments: Any) -> Any:
    """As `call`, for threads."""
    try:
        return method.remote(*arguments).result(timeout_s=WAIT_S)
    except TimeoutError as error:
        raise ModelError("The embedder did not answer in time; ask again.") from error
    except Exception as error:
        raise translated(error) from error


def translated(error: Exception) -> Exception:
    """The error that was raised on the replica, or ours for what happened to the replica."""
    if isinstance(error, RayTaskError) and isinstance(error.cause, Exception):
        error = error.cause
    if isinstance(error, BackPressureError):
        return Overloaded("The server is busy; ask again in a moment.")
    if isinstance(error, RayActorError | DeploymentUnavailableError):
        return ModelError("A part of the server stopped and is being started; ask again.")
    return error


def _prepare(settings: Settings) -> None:
    """Logs of this replica as set, and all cores for its models, which take turns anyway."""
    configure_logging(settings.telemetry)
    os.environ["OMP_NUM_THREADS"] = str(os.cpu_count() or 1)


# ------------------------------------------------------------------------- the application


def build(settings: Settings, local_token: str) -> serve.Application:
    """The bound application: gateway, retriever and the three models."""
    embedder = _deployment(EmbedderServer, "embedder", settings).bind(
        partial(load_embedder, settings.embedder), settings
    )
    generator = _deployment(GeneratorServer, "generator", settings).bind(
        partial(_load_generator, settings), embedder, settings
    )
    reranker = None
    if settings.reranker.kind != "none":
        reranker = _deployment(RerankerServer, "reranker", settings).bind(
            partial(_load_reranker, settings), settings
        )
    handles = ModelHandles(embedder, reranker, generator)
    retriever = _deployment(RetrieverServer, "retriever", settings).bind(
        partial(_open_searcher, settings), handles, settings
    )
    gateway = _deployment(serve.ingress()(Gateway), "gateway", settings)
    return gateway.bind(partial(_make_app, settings, local_token), retriever, generator, settings)


def _deployment(kind: type, name: str, settings: Settings) -> Any:
    """A class as a deployment, with limits that turn overload into an answer, not a queue."""
    at_once = settings.serve.max_in_flight
    return serve.deployment(
        kind,
        name=name,
        num_replicas=1,
        ray_actor_options={"num_cpus": CPUS[name]},
        # The gateway says 429 itself, so it takes more than it admits; beyond that Serve says 503.
        max_ongoing_requests=2 * at_once + 16,
        max_queued_requests=2 * at_once,
        backpressure_config={"status_code": 503, "retry_after_s": RETRY_AFTER_S},
        # What keeps a part from starting now will keep it from starting in a second.
        max_constructor_retry_count=1,
        health_check_period_s=5,
        graceful_shutdown_timeout_s=5,
        graceful_shutdown_wait_loop_s=0.2,
    )


def _load_generator(settings: Settings, embedder: DeploymentHandle) -> Generator:
    """The extractive generator compares meanings by the embedder, others have no use for it."""
    if settings.generator.kind != EXTRACTIVE:
        return load_generator(settings.generator)
    return load_generator(
        settings.generator, RemoteEmbedder(embedder, load_counter(settings.embedder))
    )


def _load_reranker(settings: Settings) -> Reranker:
    reranker = load_reranker(settings.reranker, load_embedder(settings.embedder))
    assert reranker is not None, "there is no deployment for kind none"
    return reranker


class _Known:
    """An embedder's fingerprint without the embedder."""

    def __init__(self, fingerprint: EmbedderFingerprint) -> None:
        self.fingerprint = fingerprint


def _open_searcher(
    settings: Settings, models: SearchModels, fingerprint: EmbedderFingerprint
) -> Searcher:
    generation, stores = open_live(impatient(settings), _Known(fingerprint))
    return Searcher(
        index=Index.of(generation.name, stores),
        models=models,
        threads=Threads(),
        settings=settings,
        extras=load_extras(settings),
    )


def _make_app(
    settings: Settings,
    local_token: str,
    retriever: DeploymentHandle,
    generator: DeploymentHandle,
) -> FastAPI:
    users = settings.access.users_file
    fallback = load_fallback(settings.generator, None)
    answerer = Answerer(
        generate=RemoteGenerator(generator).stream,
        fallback=fallback.stream if fallback else None,
        settings=settings,
    )
    return create_app(
        Engine(searcher=RemoteSearcher(retriever), answerer=answerer),
        settings,
        sign_in=SignIn(load_users(users) if users else NOBODY_KNOWN, local_token=local_token),
    )
