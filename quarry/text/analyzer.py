"""Analysis: the words of a text as the lexical leg indexes and searches them."""

from __future__ import annotations

import re
import threading
import unicodedata
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import pairwise
from typing import Any

import regex
import Stemmer

from quarry.text.identifiers import identifiers

ANALYZER_VERSION = "1"

JOINER = "\u02d1"
"""Stands for `-`, `.` and `_` inside a token. It is a letter (Lm), so that tokenizers of stores,
which split at punctuation, keep the token whole."""

STOP_WORDS = frozenset(
    # Lucene's English list without its negations, then question words, pronouns and auxiliaries,
    # with which people wrap their questions. On Cranfield the longer list is worth 0.013 nDCG@10.
    "a an and are as at be but by for if in into is it of on or such that the their then there "
    "these they this to was will with about also any because been being both can could did do does "
    "doing each from had has have having he her here hers him his how i its itself just me might "
    "must my myself other our ours shall she should so some than theirs them themselves those very "
    "we were what when where which while who whom whose why would you your yours yourself am "
    "ourselves himself herself".split()
)

_UNSPACED = (
    r"\p{Han}\p{Hiragana}\p{Katakana}\p{Hangul}\p{Bopomofo}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}"
)
"""Scripts whose words are not (or, in Korean, not reliably) set apart by blanks."""

_LETTER = r"(?=[\p{L}\p{M}\p{N}])"
"""These scripts have symbols too, such as circled letters; a tokenizer drops them."""

_WORDS = regex.compile(
    rf"(?P<run>{_LETTER}[{_UNSPACED}\u30fc](?:{_LETTER}[{_UNSPACED}\p{{M}}\u30fc])*)"
    r"|(?P<number>\d+(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)+)(?![\p{L}\p{N}])"
    rf"|(?P<word>(?:(?![{_UNSPACED}])[\p{{L}}\p{{M}}\p{{Nd}}\p{{Nl}}\u200c\u200d\u2080-\u2089])+"
    rf"(?:['’](?:(?![{_UNSPACED}])\p{{L}})+)*)"
    r"|(?P<other>\p{No})"
)
_ASCII_WORDS = re.compile(
    r"(?:[0-9]+(?:,[0-9]{3})+(?:\.[0-9]+)?|[0-9]+(?:\.[0-9]+)+)(?![a-z0-9])"
    r"|[a-z0-9]+(?:'[a-z]+)*"
)
_CONTRACTION = regex.compile(r"['’](?:s|t|ll|re|ve|d|m)$")
_APOSTROPHES = regex.compile("['’]")
_MARKS = regex.compile(
    # Latin, Greek and Cyrillic accents, Arabic vowel signs and elongation, Hebrew points, joiners.
    r"[\u0300-\u036f\u0591-\u05bd\u05bf\u05c1\u05c2\u0640\u064b-\u065f\u0670\u200c\u200d]"
)
_NOT_LETTERS = regex.compile(r"[^\p{L}\p{M}\p{N}]")
"""What a compatibility form leaves between its letters: the dot of Ŀ is one."""

_SEPARATORS = regex.compile(r"[-._]+")
_LOCAL = threading.local()


def analyze(text: str, *, codes: Iterable[str] | None = None) -> list[str]:
    """Tokens of cleaned text, in order; the same for documents and questions.

    Words are lower-cased, freed of accents, possessives and stop words, and stemmed by Porter's
    rules (a little better than Snowball English on Cranfield). Decimals stay whole. Scripts without
    word spaces give overlapping pairs. Every identifier follows as one token more. Tokens hold
    letters, marks and digits only. `codes`: the identifiers of `text`, if they are known; to
    find them is half of the work.
    """
    tokens = _ascii_words(text.lower()) if text.isascii() else _words(text.lower())
    known = identifiers(text) if codes is None else codes
    tokens.extend(identifier_token(code) for code in known)
    return tokens


def _words(text: str) -> list[str]:
    tokens: list[str] = []
    for match in _WORDS.finditer(text):
        kind, found = match.lastgroup, match.group()
        if kind == "word":
            tokens.extend(_terms(found))
        elif kind == "run":
            tokens.extend(_pairs(found))
        elif kind == "number":
            tokens.append(_number(found))
        else:
            plain = unicodedata.normalize("NFKC", found)
            tokens.append(plain if plain.isalnum() else found)
    return tokens


def _ascii_words(text: str) -> list[str]:
    """What `_words` gives for ASCII, in a quarter of the time: most of what is indexed is."""
    tokens: list[str] = []
    for found in _ASCII_WORDS.findall(text):
        if "." in found or "," in found:
            tokens.append(_number(found))
        else:
            tokens.extend(_terms(found))
    return tokens


def _number(found: str) -> str:
    return found.replace(",", "").replace(".", JOINER)


def identifier_token(identifier: str) -> str:
    """The token that `analyze` adds for an identifier; no word gives the same one.

    A joiner at the front keeps a code that is one run, such as 99107001, apart from its word.
    """
    return JOINER + _SEPARATORS.sub(JOINER, identifier.lower())


@lru_cache(maxsize=200_000)
def _terms(word: str) -> tuple[str, ...]:
    word = _CONTRACTION.sub("", word)
    parts = _APOSTROPHES.split(word)
    plain = (_plain(part) for part in parts if part not in STOP_WORDS)
    return tuple(_stem(part) for part in plain if part)


def _plain(word: str) -> str:
    if word.isascii():
        return word
    bare = _NOT_LETTERS.sub("", _MARKS.sub("", unicodedata.normalize("NFKD", word)))
    return unicodedata.normalize("NFC", bare).lower()


def _stem(word: str) -> str:
    if len(word) < 3 or not word.isascii():
        return word
    # A stemmer keeps state while it works, so each thread has its own.
    stemmer: Any = getattr(_LOCAL, "stemmer", None)
    if stemmer is None:
        stemmer = _LOCAL.stemmer = Stemmer.Stemmer("porter", 0)
    return str(stemmer.stemWord(word))


def _pairs(run: str) -> Iterator[str]:
    clusters = regex.findall(r"\X", run)
    if len(clusters) == 1:
        yield run
    for left, right in pairwise(clusters):
        yield left + right
