"""The Ray Serve deployments: thin shells round the graph, the models and the HTTP app.

    gateway → retriever → embedder, reranker, generator (counts tokens)
            → generator → embedder (the extractive one)
            → entailment (if a model is set)

Classes are plain and become deployments in `build`. Each makes what it holds in its
constructor, on the replica, from a function that it is given.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from functools import partial
from typing import Any

from fastapi import FastAPI
from ray import serve
from ray.serve.handle import DeploymentHandle

from quarry.access.principals import NOBODY_KNOWN
from quarry.access.users_file import FollowedUsers
from quarry.generations import open_live
from quarry.models.counter import load_counter
from quarry.models.factory import (
    load_embedder,
    load_entailment,
    load_generator,
    load_reranker,
)
from quarry.ports import Embedder, Entailment, Generator, OwnsProcesses, Reranker
from quarry.records import (
    EmbedderFingerprint,
    Message,
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
from serve.graph import Answerer, Searcher
from serve.health import at_once
from serve.http.app import create_app
from serve.http.limits import RETRY_AFTER_S, Admission
from serve.http.sign_in import SignIn
from serve.index import Index, impatient
from serve.models import EXTRACTIVE, Scores, SearchModels, check_generator, load_fallback
from serve.results import Examined, Gathered
from serve.serving.cores import leave_bound_cores
from serve.serving.handles import AnswerHandles, ModelHandles, RemoteEmbedder, RemoteSearcher, call
from serve.serving.pacing import pace, paced
from serve.serving.placement import Placement, placements
from serve.stage import Threads

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


class EntailmentServer:
    """One entailment model; the sentences of an answer are its batch, answers take turns."""

    def __init__(self, load: Callable[[], Entailment], settings: Settings) -> None:
        _prepare(settings)
        self._entailment = load()
        self._threads = Threads(1)

    async def entails(self, pairs: Sequence[tuple[str, str]]) -> list[float]:
        return await self._threads(self._entailment.entails, pairs)


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
        if isinstance(self._generator, OwnsProcesses):
            leave_bound_cores()
        self._threads = Threads(4)

    async def stream(self, prompt: Prompt) -> AsyncGenerator[Piece, None]:
        async with aclosing(paced(self._generator.stream(prompt), pace(1))) as pieces:
            async for piece in pieces:
                yield piece

    async def count_tokens(self, texts: Sequence[str]) -> list[int]:
        return await self._threads(self._generator.count_tokens, texts)

    async def count_prompt(self, messages: Sequence[Message]) -> int:
        return await self._threads(self._generator.count_prompt, messages)

    async def check(self) -> None:
        await check_generator(self._generator, self._threads)

    def check_health(self) -> None:
        """Ray Serve asks, and starts the replica again after an error."""
        if isinstance(self._generator, OwnsProcesses):
            self._generator.check_health()

    def __del__(self) -> None:
        generator = getattr(self, "_generator", None)
        if isinstance(generator, OwnsProcesses):
            generator.close()


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
        make_app: Callable[[DeploymentHandle, AnswerHandles], FastAPI],
        retriever: DeploymentHandle,
        handles: AnswerHandles,
        settings: Settings,
    ) -> None:
        _prepare(settings)
        self._made = make_app(retriever, handles)

    def __serve_build_asgi_app__(self) -> FastAPI:
        return self._made

    async def drain(self, seconds: float) -> int:
        """Takes no more questions; returns once none is in flight, or how many are after that."""
        admission: Admission = self._made.state.admission
        return await admission.drain(seconds)


def _prepare(settings: Settings) -> None:
    """Logs of this replica as set, and all cores for its models, which take turns anyway."""
    configure_logging(settings.telemetry, part=serve.get_replica_context().deployment)
    os.environ["OMP_NUM_THREADS"] = str(os.cpu_count() or 1)


# ------------------------------------------------------------------------- the application


@dataclass(frozen=True, slots=True)
class Loaders:
    """What each model's replica calls to make it; tests put others in."""

    embedder: Callable[[Settings], Embedder]
    reranker: Callable[[Settings], Reranker]
    generator: Callable[[Settings, DeploymentHandle], Generator]
    entailment: Callable[[Settings], Entailment]


def build(
    settings: Settings,
    local_token: str,
    loaders: Loaders | None = None,
    *,
    announced: Callable[[], bool] = at_once,
) -> serve.Application:
    """The bound application: gateway, retriever and the models.

    `announced` is asked in the gateway's replica; until it holds, the server says it is not ready.
    """
    load = loaders or Loaders(_load_embedder, _load_reranker, _load_generator, _load_entailment)
    deployed = partial(_deployment, settings=settings, placements=placements(settings))
    embedder = deployed(EmbedderServer, "embedder").bind(partial(load.embedder, settings), settings)
    generator = deployed(GeneratorServer, "generator").bind(
        partial(load.generator, settings), embedder, settings
    )
    reranker = entailment = None
    if settings.reranker.kind != "none":
        reranker = deployed(RerankerServer, "reranker").bind(
            partial(load.reranker, settings), settings
        )
    if settings.answers.entailment.model:
        entailment = deployed(EntailmentServer, "entailment").bind(
            partial(load.entailment, settings), settings
        )
    retriever = deployed(RetrieverServer, "retriever").bind(
        partial(_open_searcher, settings), ModelHandles(embedder, reranker, generator), settings
    )
    gateway = deployed(serve.ingress()(Gateway), "gateway")
    handles = AnswerHandles(generator, entailment)
    make_app = partial(_make_app, settings, local_token, announced)
    return gateway.bind(make_app, retriever, handles, settings)


def _deployment(
    kind: type, name: str, *, settings: Settings, placements: Mapping[str, Placement]
) -> Any:
    """A class as a deployment, with limits that turn overload into an answer, not a queue."""
    at_once = settings.serve.max_in_flight
    return serve.deployment(
        kind,
        name=name,
        num_replicas=1,
        # The gateway says 429 itself, so it takes more than it admits; beyond that Serve says 503.
        max_ongoing_requests=2 * at_once + 16,
        max_queued_requests=2 * at_once,
        backpressure_config={"status_code": 503, "retry_after_s": RETRY_AFTER_S},
        # What keeps a part from starting now will keep it from starting in a second.
        max_constructor_retry_count=1,
        health_check_period_s=5,
        graceful_shutdown_timeout_s=5,
        graceful_shutdown_wait_loop_s=0.2,
        **placements[name].options(),
    )


def _load_embedder(settings: Settings) -> Embedder:
    return load_embedder(settings.embedder)


def _load_generator(settings: Settings, embedder: DeploymentHandle) -> Generator:
    """The extractive generator compares meanings by the embedder, others have no use for it."""
    if settings.generator.kind != EXTRACTIVE:
        return load_generator(settings.generator, pace=pace)
    return load_generator(
        settings.generator, RemoteEmbedder(embedder, load_counter(settings.embedder))
    )


def _load_reranker(settings: Settings) -> Reranker:
    # A cross-encoder does without the embedder, whose weights would cost memory for nothing.
    needs_embedder = settings.reranker.kind == "late_interaction"
    embedder = load_embedder(settings.embedder) if needs_embedder else None
    reranker = load_reranker(settings.reranker, embedder)
    assert reranker is not None, "there is no deployment for kind none"
    return reranker


def _load_entailment(settings: Settings) -> Entailment:
    entailment = load_entailment(settings.answers.entailment)
    assert entailment is not None, "there is no deployment without a model"
    return entailment


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
    announced: Callable[[], bool],
    retriever: DeploymentHandle,
    handles: AnswerHandles,
) -> FastAPI:
    users = settings.access.users_file
    answerer = Answerer(
        models=handles.answer_models(load_fallback(settings.generator, None)), settings=settings
    )
    return create_app(
        Engine(searcher=RemoteSearcher(retriever), answerer=answerer),
        settings,
        sign_in=SignIn(
            FollowedUsers(users) if users else lambda: NOBODY_KNOWN, local_token=local_token
        ),
        announced=announced,
    )
