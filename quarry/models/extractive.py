"""Answers by quotation: verbatim sentences of the evidence, each with its citation, or a refusal.

Dependable, not clever: it needs no model, cannot make anything up, and refuses when the evidence
lacks what the question is about.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

from quarry.ports import Embedder
from quarry.records import Piece, Prompt, StopReason
from quarry.text import REFUSAL, analyze, sentences


class ExtractiveGenerator:
    def __init__(self, embedder: Embedder | None = None) -> None:
        self._embedder = embedder

    @property
    def name(self) -> str:
        return "extractive"

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        if self._embedder is not None:
            return self._embedder.count_tokens(texts)
        return [len(text.split()) for text in texts]

    async def stream(self, prompt: Prompt) -> AsyncIterator[Piece]:
        words = set(analyze(prompt.question))
        best = max(
            (
                (len(words.intersection(analyze(item.text[a:b]))), -rank, item.text[a:b], item)
                for rank, item in enumerate(prompt.evidence)
                for a, b in sentences(item.text)
            ),
            default=None,
            key=lambda found: found[:2],
        )
        if best is None or not best[0]:
            yield Piece(text=REFUSAL)
        else:
            yield Piece(text=f"{best[2]} [{best[3].label}]")
        yield Piece(stop=StopReason.END)
