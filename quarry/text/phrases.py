"""Whether a text holds a phrase that a person has typed."""

from __future__ import annotations

from collections.abc import Iterable

from quarry.text.cleaner import clean


def folded(text: str) -> str:
    """Cleaned, case and runs of white space ignored."""
    return " ".join(clean(text).casefold().split())


def holds_any(text: str, phrases: Iterable[str]) -> bool:
    """Whether the text holds one of the phrases, which are `folded` already."""
    whole = folded(text)
    return any(phrase in whole for phrase in phrases)
