"""Takes a question apart for extraction: its parts, and the words in each that carry content."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import regex

from quarry.text import analyze, identifiers, sentences

_WORD = regex.compile(r"[\p{L}\p{M}\p{N}]+(?:[.,'’-][\p{L}\p{M}\p{N}]+)*")
_NEXT_QUESTION = regex.compile(
    r"(?<=\?)\s+|(?:,\s*|\s+)(?:and|or|but)\s+"
    r"(?=(?:what|when|where|which|who|whom|whose|how|why|is|are|do|does|did|can|may|must|will"
    r"|should)\b)",
    regex.IGNORECASE,
)
_ASKING = regex.compile(
    # What is measured or asked for, not what it is about.
    r"\bhow\s+(?:long|many|much|often|far|soon|quickly|old|big|large|high|low|fast)\b"
    r"|\b(?:what|which)\s+(?:kind|sort|amount|date|time|place|number)\b"
    r"|\b(?:i|we)\s+(?:have|had)\s+a\s+question\b|\bmay\b",
    regex.IGNORECASE,
)
_WRAPPING = frozenset(
    analyze(
        "get gets got give gives gave go goes went gone happen happened mean means need needs "
        "please question say says tell want know let make take thing way still also ever really "
        "something anything nothing somebody anybody someone anyone here come comes one above below"
    )
)
"""Stems of words that wrap a question rather than carry it; evidence need not hold them."""


@dataclass(frozen=True, slots=True)
class Part:
    """One question of possibly several in a row."""

    text: str
    """This part with the statements before it, which it is about."""
    words: dict[str, str]
    """Content words of the ask: analysed token to the word as written."""
    stated: dict[str, str]
    """Further content words, of the statements."""
    names: frozenset[str]
    """The written words among these that have a capital inside a sentence; lower case here."""
    identifiers: tuple[str, ...]


def parts(question: str) -> list[Part]:
    """The parts that ask for something of their own, in order; at least one.

    A part without words of its own ("and how often?") belongs to the one before. Identifiers carry
    over to later parts, which speak of "it".
    """
    statements, asks = _asks(question)
    context = " ".join(statements)
    names = _names(question)
    carried = identifiers(context)
    found: list[Part] = []
    for ask in asks:
        own, codes = _content(ask), identifiers(ask)
        if found and not own and not codes:
            continue
        carried = codes or carried
        stated = _content(context) if own else {}
        found.append(
            Part(
                text=f"{context} {ask}".strip(),
                words=own or _content(context),
                stated={token: word for token, word in stated.items() if token not in own},
                names=names,
                identifiers=carried,
            )
        )
    return found or [Part(question, _content(question), {}, names, identifiers(question))]


def _names(question: str) -> frozenset[str]:
    inside = (
        word
        for start, end in sentences(question)
        for word in [match.group() for match in _WORD.finditer(question, start, end)][1:]
    )
    return frozenset(word.lower() for word in inside if word[0].isupper())


def _asks(question: str) -> tuple[list[str], list[str]]:
    """Statements, and the questions among the sentences; without a question mark, the last one."""
    whole = [question[start:end] for start, end in sentences(question)]
    asking = [sentence for sentence in whole if "?" in sentence] or whole[-1:]
    statements = [sentence for sentence in whole if sentence not in asking]
    asks = [ask for sentence in asking for ask in _NEXT_QUESTION.split(sentence) if ask.strip()]
    return statements, asks


def _content(text: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for word in _words(_ASKING.sub(" ", text)):
        for token in analyze(word):
            if token not in _WRAPPING:
                found.setdefault(token, word.lower())
    return found


def _words(text: str) -> Iterator[str]:
    """Words that are no identifier and no piece of one."""
    codes = [set(code.split("-")) for code in identifiers(text)]
    for match in _WORD.finditer(text):
        word = match.group()
        if not identifiers(word) and not any(word.upper() in pieces for pieces in codes):
            yield word
