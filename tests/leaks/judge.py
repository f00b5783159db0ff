"""Finds in a reply what stands for a document that it must not show, and counts what was tried."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

from tests.leaks.cases import Ask, Corpus

_TOLD = re.compile(r"zq[a-j]{5}qz|\b[0-9a-f]{32}\b|\b\d{8}-[0-9a-f]{12}\b")
"""Marks, ids of documents and chunks, and revisions: all that a document can be told by."""

tally: Counter[str] = Counter()
"""What the suite has done, for its last line."""


def told(text: str) -> set[str]:
    """Every mark, id and revision in a text, however it is written."""
    return set(_TOLD.findall(text.lower()))


def leaked(reply: str, allowed: Iterable[str], asked: str) -> set[str]:
    """What the reply tells that is not allowed, save what the question itself said."""
    return told(reply) - set(allowed) - told(asked)


def count(ask: Ask, corpus: Corpus, reply: str) -> None:
    """Adds one case to the tally."""
    tally["cases"] += 1
    tally["errors"] += reply.startswith('{"error"')
    tally["rewritten"] += '"detail": {"question": ' in reply and '"follow_up"' not in reply
    tally["replies"] += bool(told(reply))
    words = set(ask.question.split())
    seen = {doc.number for doc in corpus.shown(ask)}
    hidden = [doc for doc in corpus.docs if doc.number not in seen or doc.fate == "replaced"]
    tally["forbidden"] += any(words & set(" ".join(doc.texts).split()) for doc in hidden)


def tally_line() -> str:
    """One line on what was tried; empty where nothing was."""
    if not tally:
        return ""
    return (
        f"leaks: {tally['cases']} cases over {tally['corpora']} corpora; something hidden shared "
        f"words with the question in {tally['forbidden']}, documents were shown in "
        f"{tally['replies']}, an error came in {tally['errors']}"
    )
