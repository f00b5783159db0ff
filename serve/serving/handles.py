"""The deployments as other deployments call them: handles that act like what they lead to.

Errors that cross here are those of `quarry.errors`, and a call that is given up is cancelled there.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from ray.exceptions import RayActorError, RayTaskError
from ray.serve.exceptions import BackPressureError, DeploymentUnavailableError
from ray.serve.handle import DeploymentHandle

from quarry.errors import ModelError, Overloaded
from quarry.ports import Generator, TokenCounter
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
from serve.models import AnswerModels, Scores, SearchModels
from serve.results import Examined, Gathered

WAIT_S = 600.0
"""Longest wait of a thread for the embedder, which may still be loading its weights."""


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

        async def check_generator() -> None:
            await call(self.generator.check)

        return SearchModels(
            embed=embed,
            embed_passages=embed_passages,
            rerank=rerank if reranker else None,
            count_tokens=count_tokens,
            check_generator=check_generator,
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
class AnswerHandles:
    """The model deployments as the gateway calls them."""

    generator: DeploymentHandle
    entailment: DeploymentHandle | None

    def answer_models(self, fallback: Generator | None) -> AnswerModels:
        entailment = self.entailment

        async def count_prompt(messages: Sequence[Message]) -> int:
            tokens: int = await call(self.generator.count_prompt, messages)
            return tokens

        async def entail(pairs: Sequence[tuple[str, str]]) -> list[float]:
            assert entailment is not None
            probabilities: list[float] = await call(entailment.entails, pairs)
            return probabilities

        return AnswerModels(
            generate=RemoteGenerator(self.generator).stream,
            count_prompt=count_prompt,
            fallback=fallback.stream if fallback else None,
            entail=entail if entailment else None,
        )


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
