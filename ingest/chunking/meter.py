"""Counting tokens in few large calls: tokenizers are fast in batches and slow one by one."""

from __future__ import annotations

from collections.abc import Iterable

import regex

from quarry.ports import TokenCounter

CHARS_PER_TOKEN = 16
"""Characters that one token may stand for, on average, in a text of more than a few words."""
_LONG = 256
"""Characters up to which the tokenizer is believed: names, words, deeply indented code."""

_WORDS = regex.compile(r"\s*\S+")


class TokenMeter:
    """Token counts without special tokens and prompts; each text is counted once.

    A tokenizer may count an unbroken word of any length as one unknown token, so a long text costs
    at least one token for every `CHARS_PER_TOKEN` characters.

    Sums are exact for tokenizers that split at blanks first (WordPiece) and close for others, so
    a finished chunk is counted again as a whole.
    """

    def __init__(self, counter: TokenCounter) -> None:
        self._counter = counter
        self._known: dict[str, int] = {}
        (self.overhead,) = counter.count_tokens([""])

    def measure(self, texts: Iterable[str]) -> None:
        """Counts what is not known yet in one call."""
        new = list(dict.fromkeys(text for text in texts if text not in self._known))
        if new:
            counts = self._counter.count_tokens(new)
            for text, count in zip(new, counts, strict=True):
                self._known[text] = max(0, count - self.overhead, _least(text))

    def cost(self, text: str) -> int:
        if text not in self._known:
            self.measure([text])
        return self._known[text]

    def totals(self, texts: list[str]) -> list[int]:
        """Whole lengths, special tokens and prompts included; nothing is remembered."""
        return self._counter.count_tokens(texts) if texts else []


def _least(text: str) -> int:
    return -(-len(text) // CHARS_PER_TOKEN) if len(text) > _LONG else 0


def cut(text: str, budget: int, meter: TokenMeter) -> list[str]:
    """Pieces of at most `budget` tokens, cut at blanks; a longer word is cut inside.

    The pieces put together are the text.
    """
    found = _WORDS.findall(text)
    meter.measure(found)
    words = [part for word in found for part in _cut_word(word, budget, meter)]
    most = max(_LONG, budget * CHARS_PER_TOKEN)
    pieces: list[str] = []
    room = 0
    for word in words:
        cost = meter.cost(word)
        if pieces and cost <= room and len(pieces[-1]) + len(word) <= most:
            pieces[-1] += word
        else:
            pieces.append(word)
            room = budget
        room -= cost
    return pieces


def _cut_word(word: str, budget: int, meter: TokenMeter) -> list[str]:
    if len(word) == 1 or meter.cost(word) <= budget:
        return [word]
    half = len(word) // 2
    return [*_cut_word(word[:half], budget, meter), *_cut_word(word[half:], budget, meter)]
