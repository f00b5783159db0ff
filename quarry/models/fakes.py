"""Models without weights: fast, deterministic, for tests and load tests. They ship.

They are simple on purpose, but not constant: texts that share words are near each other, so that
retrieval over them behaves like retrieval.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence

import numpy as np

from quarry.ids import digest
from quarry.models.vectors import unit_rows
from quarry.records import EmbedderFingerprint, Message, Piece, Prompt, StopReason, Vector, Vectors
from quarry.text import REFUSAL, analyze, sentences

_SPECIAL_TOKENS = 2
"""Counted a text, as real tokenizers add a start and an end."""


class FakeEmbedder:
    """Sum of one fixed random vector a word: cosine grows with the words that two texts share."""

    def __init__(self, dimension: int = 64, max_tokens: int = 256) -> None:
        self._dimension = dimension
        self._words: dict[str, Vector] = {}
        self._fingerprint = EmbedderFingerprint(
            model_id="fake",
            weights_hash=digest("fake", str(dimension)),
            dimension=dimension,
            question_prompt="",
            document_prompt="",
            normalized=True,
            max_tokens=max_tokens,
        )

    @property
    def fingerprint(self) -> EmbedderFingerprint:
        return self._fingerprint

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Words between blanks, and two."""
        return [len(text.split()) + _SPECIAL_TOKENS for text in texts]

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        rows = [self._sum(text) for text in texts]
        return unit_rows(np.array(rows, dtype=np.float32).reshape(len(texts), self._dimension))

    def embed_question(self, text: str) -> Vector:
        vector: Vector = self.embed_questions([text])[0]
        return vector

    def embed_questions(self, texts: Sequence[str]) -> Vectors:
        return self.embed_documents(texts)

    def token_embeddings(self, texts: Sequence[str], *, question: bool = False) -> list[Vectors]:
        """One unit vector a word; shape (words, dimension) each."""
        return [
            unit_rows(np.array([self._word(word) for word in self._read(text)], dtype=np.float32))
            for text in texts
        ]

    def _sum(self, text: str) -> Vector:
        total: Vector = np.sum([self._word(word) for word in self._read(text)], axis=0)
        return total

    def _read(self, text: str) -> list[str]:
        # The empty word keeps texts without words embeddable.
        return analyze(" ".join(text.split()[: self._fingerprint.max_tokens])) or [""]

    def _word(self, word: str) -> Vector:
        vector = self._words.get(word)
        if vector is None:
            generator = np.random.default_rng(int(digest(word, size=8), 16))
            vector = generator.standard_normal(self._dimension).astype(np.float32)
            self._words[word] = vector
        return vector


class FakeReranker:
    """Scores a passage by the part of the question's words that it holds, from 0 to 1."""

    def __init__(self, *, fuses: bool = False) -> None:
        self._fuses = fuses

    @property
    def name(self) -> str:
        return "fake"

    @property
    def fuses(self) -> bool:
        return self._fuses

    def score(self, question: str, passages: Sequence[str]) -> list[float]:
        words = set(analyze(question))
        return [len(words.intersection(analyze(p))) / max(1, len(words)) for p in passages]


class FakeGenerator:
    """Quotes the first sentence of each source with its citation, a word a piece.

    `delay_s` is waited before each piece, so that load tests see the pace of a real model.
    """

    def __init__(self, *, delay_s: float = 0.0) -> None:
        self._delay_s = delay_s

    @property
    def name(self) -> str:
        return "fake"

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        return [len(text.split()) for text in texts]

    def count_prompt(self, messages: Sequence[Message]) -> int:
        return sum(self.count_tokens([message.content for message in messages]))

    async def stream(self, prompt: Prompt) -> AsyncGenerator[Piece, None]:
        words = _answer(prompt).split(" ")
        shown = words[: prompt.max_tokens]
        for position, word in enumerate(shown):
            await asyncio.sleep(self._delay_s)
            yield Piece(text=f" {word}" if position else word)
        yield Piece(
            stop=StopReason.END if len(shown) == len(words) else StopReason.LENGTH,
            prompt_tokens=self.count_prompt(prompt.messages),
            completion_tokens=len(shown),
        )


def _answer(prompt: Prompt) -> str:
    quotes = []
    for item in prompt.evidence:
        spans = sentences(item.text)
        if spans:
            quotes.append(f"{item.text[slice(*spans[0])]} [{item.label}]")
    return " ".join(quotes) or REFUSAL
