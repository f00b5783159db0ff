"""Tokens estimated from above by the length of a text, where its tokenizer cannot be asked."""

from __future__ import annotations

from collections.abc import Sequence

from quarry.records import Message

BYTES_A_TOKEN = 3
"""UTF-8 bytes a token at least, in English (about 4) as in Chinese (3 to 4)."""
TURN_TOKENS = 16
"""Of a chat template for each turn; the longest known ones take about ten."""


def tokens(texts: Sequence[str]) -> list[int]:
    """Of each text alone."""
    return [-(-len(text.encode("utf-8", "replace")) // BYTES_A_TOKEN) for text in texts]


def prompt_tokens(messages: Sequence[Message]) -> int:
    """Of a whole prompt, with room for what a chat template puts round each turn."""
    counts = tokens([message.content for message in messages])
    return sum(counts) + TURN_TOKENS * (len(messages) + 1)
