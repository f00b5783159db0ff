"""Whether a sentence denies what a source says, or says what a source denies, in the same words."""

from __future__ import annotations

import regex

from quarry.text import analyze, sentences

_NEGATION = regex.compile(
    r"\b(?:not|no|never|none|nor|neither|without|cannot)\b|n['’]t\b", regex.IGNORECASE
)
_CLAUSE = regex.compile(
    r"[,;:()—–|]|\b(?:and|but|or|while|whereas|although|though|which|because|if|when)\b",
    regex.IGNORECASE,
)
_LIMITS = frozenset(
    "only except unless until before after more less fewer over under other than beyond later "
    "earlier longer yet always all every".split()
)
"""Words with which a denial and what it denies may both be true: not after 60 days, within 60."""
_WORD = regex.compile(r"\p{L}+")
_LEAST_WORDS = 3
"""A clause of fewer content words says too little to be recognised in a source."""


def contradicts(sentence: str, read: str) -> bool:
    """Whether a clause has all its content words in a clause of the source that differs from it by
    a negation, and in none that does not."""
    sources = [
        clause for start, end in sentences(read) for clause in _CLAUSE.split(read[start:end])
    ]
    return any(_denied(clause, sources) for clause in _CLAUSE.split(sentence))


def _denied(clause: str, sources: list[str]) -> bool:
    words = _content(clause)
    if len(words) < _LEAST_WORDS:
        return False
    same = [source for source in sources if words <= _content(source)]
    return bool(same) and all(_opposed(clause, source) for source in same)


def _opposed(clause: str, source: str) -> bool:
    negated = [bool(_NEGATION.search(each)) for each in (clause, source)]
    if negated[0] == negated[1]:
        return False
    denial, other = (clause, source) if negated[0] else (source, clause)
    return _limits(denial) <= _limits(other)


def _content(text: str) -> set[str]:
    return set(analyze(_NEGATION.sub(" ", text), codes=())) - _LIMITS


def _limits(text: str) -> set[str]:
    return {word.lower() for word in _WORD.findall(text)} & _LIMITS
