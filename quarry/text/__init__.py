"""One set of text rules for documents and questions (invariant 5).

`clean` comes first, on everything that enters; the others expect cleaned text. Change a rule and
raise its version: both are part of a generation's fingerprint.
"""

from __future__ import annotations

from quarry.text.analyzer import ANALYZER_VERSION, analyze
from quarry.text.cleaner import CLEANER_VERSION, clean
from quarry.text.identifiers import identifiers
from quarry.text.phrases import folded, holds_any
from quarry.text.sentences import sentences

REFUSAL = "The documents I may use do not answer this question."
"""The whole text of a refused answer; a generator that finds nothing yields exactly this."""


def embedded_text(header: str, text: str) -> str:
    """What is embedded, hashed and counted in tokens: the header, a line end, the passage."""
    return f"{header}\n{text}" if header else text


__all__ = [
    "ANALYZER_VERSION",
    "CLEANER_VERSION",
    "REFUSAL",
    "analyze",
    "clean",
    "embedded_text",
    "folded",
    "holds_any",
    "identifiers",
    "sentences",
]
