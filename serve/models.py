"""The models as the graph awaits them: async callables.

In process they wrap a thread; in Ray Serve they wrap a deployment handle
(`serve/serving/deployments.py`).
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from quarry.ports import CallsEndpoint, Embedder, Entailment, Generator, OwnsProcesses, Reranker
from quarry.records import Message, Piece, Prompt, Vector, Vectors
from quarry.settings import GeneratorSettings, Settings
from serve.stage import Threads

EXTRACTIVE: Literal["extractive"] = "extractive"


@dataclass(frozen=True, slots=True, kw_only=True)
class Scores:
    """One score a passage, and whether its ranks are fused with the first stage's."""

    values: list[float]
    fuses: bool


Embed: TypeAlias = Callable[[str], Awaitable[Vector]]
EmbedPassages: TypeAlias = Callable[[Sequence[str]], Awaitable[Vectors]]
Rerank: TypeAlias = Callable[[str, Sequence[str]], Awaitable[Scores]]
Generate: TypeAlias = Callable[[Prompt], AsyncGenerator[Piece, None]]
CountTokens: TypeAlias = Callable[[Sequence[str]], Awaitable[list[int]]]
CountPrompt: TypeAlias = Callable[[Sequence[Message]], Awaitable[int]]
Check: TypeAlias = Callable[[], Awaitable[None]]
Entail: TypeAlias = Callable[[Sequence[tuple[str, str]]], Awaitable[list[float]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchModels:
    """What a search needs; `count_tokens` counts as the generator does."""

    embed: Embed
    embed_passages: EmbedPassages
    rerank: Rerank | None
    count_tokens: CountTokens
    check_generator: Check
    """Raises what keeps the generator from writing, as far as that can be told at no cost."""
    write: Generate
    """For what is written before the search; answers are written elsewhere."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerModels:
    """What an answer needs."""

    generate: Generate
    count_prompt: CountPrompt
    fallback: Generate | None
    """Writes the answer when the generator fails; None where the generator cannot fail."""
    entail: Entail | None
    """Judges whether sources bear a sentence, if a model for it is set."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedModels:
    """Models of this process."""

    embedder: Embedder
    reranker: Reranker | None
    generator: Generator
    fallback: Generator | None
    entailment: Entailment | None = None

    def close(self) -> None:
        """Ends the processes that models run in; nothing may be asked afterwards."""
        if isinstance(self.generator, OwnsProcesses):
            self.generator.close()


def load_models(settings: Settings) -> LoadedModels:
    """All that the settings name. Raises ConfigError, ModelError, MissingExtra."""
    from quarry.models.factory import (
        load_embedder,
        load_entailment,
        load_generator,
        load_reranker,
    )

    embedder = load_embedder(settings.embedder)
    return LoadedModels(
        embedder=embedder,
        reranker=load_reranker(settings.reranker, embedder),
        entailment=load_entailment(settings.answers.entailment),
        fallback=load_fallback(settings.generator, embedder),
        # Last, because it may start processes, which an error of another would leave behind.
        generator=load_generator(settings.generator, embedder),
    )


def load_fallback(settings: GeneratorSettings, embedder: Embedder | None) -> Generator | None:
    """The extractive generator, unless it is the generator itself."""
    from quarry.models.factory import load_generator

    if settings.kind == EXTRACTIVE:
        return None
    return load_generator(GeneratorSettings(kind=EXTRACTIVE), embedder)


def search_models(models: LoadedModels, threads: Threads) -> SearchModels:
    """The models of this process as the graph awaits them, each call in a thread."""

    async def embed(question: str) -> Vector:
        return await threads(models.embedder.embed_question, question)

    async def embed_passages(texts: Sequence[str]) -> Vectors:
        return await threads(models.embedder.embed_documents, texts)

    async def count_tokens(texts: Sequence[str]) -> list[int]:
        return await threads(models.generator.count_tokens, texts)

    async def check() -> None:
        await check_generator(models.generator, threads)

    return SearchModels(
        embed=embed,
        embed_passages=embed_passages,
        rerank=_rerank(models.reranker, threads) if models.reranker else None,
        count_tokens=count_tokens,
        check_generator=check,
        write=models.generator.stream,
    )


def answer_models(models: LoadedModels, threads: Threads) -> AnswerModels:
    """As `search_models`, for the answer."""

    async def count_prompt(messages: Sequence[Message]) -> int:
        return await threads(models.generator.count_prompt, messages)

    entailment = models.entailment

    async def entail(pairs: Sequence[tuple[str, str]]) -> list[float]:
        assert entailment is not None
        return await threads(entailment.entails, pairs)

    return AnswerModels(
        generate=models.generator.stream,
        count_prompt=count_prompt,
        fallback=models.fallback.stream if models.fallback else None,
        entail=entail if entailment else None,
    )


async def check_generator(generator: Generator, threads: Threads) -> None:
    """Raises the error of a generator that cannot count, or whose endpoint refuses."""
    await threads(generator.count_tokens, ["ready"])
    if isinstance(generator, CallsEndpoint):
        await generator.check()


def _rerank(reranker: Reranker, threads: Threads) -> Rerank:
    async def rerank(question: str, passages: Sequence[str]) -> Scores:
        values = await threads(reranker.score, question, passages)
        return Scores(values=values, fuses=reranker.fuses)

    return rerank
