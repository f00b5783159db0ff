"""Answers by quotation: verbatim sentences of the evidence, each with its citation, or a refusal.

Dependable, not clever: it needs no model, makes nothing up, and refuses when the evidence lacks
what the question is about (`quarry.models.quoting` says how that is found).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence

from quarry.models.quoting import Chooser
from quarry.ports import Embedder
from quarry.records import Message, Piece, Prompt, StopReason
from quarry.text import REFUSAL


class ExtractiveGenerator:
    """With an embedder it also knows words that mean the same, and nearness in meaning."""

    def __init__(self, embedder: Embedder | None = None) -> None:
        self._embedder = embedder
        self._chooser = Chooser(embedder)

    @property
    def name(self) -> str:
        return "extractive"

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """The embedder's tokens; without one, words between blanks."""
        if self._embedder is not None:
            return self._embedder.count_tokens(texts)
        return [len(text.split()) for text in texts]

    def count_prompt(self, messages: Sequence[Message]) -> int:
        return sum(self.count_tokens([message.content for message in messages]))

    async def stream(self, prompt: Prompt) -> AsyncGenerator[Piece, None]:
        """One piece a quote, ending in its citation; or `REFUSAL` and nothing else."""
        quotes = await asyncio.to_thread(self._chooser.quotes, prompt.question, prompt.evidence)
        answer = quotes or [REFUSAL]
        for position, quote in enumerate(answer):
            yield Piece(text=f" {quote}" if position else quote)
        read = [item.text for item in prompt.evidence]
        counts = await asyncio.to_thread(self.count_tokens, [*answer, *read])
        yield Piece(
            stop=StopReason.END,
            prompt_tokens=sum(counts[len(answer) :]),
            completion_tokens=sum(counts[: len(answer)]),
        )
