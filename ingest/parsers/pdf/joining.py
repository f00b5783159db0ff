"""Putting the lines of a paragraph together again."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence, Set

_WORD = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)*")
_HYPHEN_END = re.compile(r"([^\W\d_]+(?:-[^\W\d_]+)*)([-\u00ad\u2010])$")
_WORD_START = re.compile(r"[^\W\d_]+")
_COMPOUNDING = frozenset(
    "cost cross deep end fast fine first five four full half hard high large long low machine mixed"
    " model multi non one open real second self short six small soft state task third three time"
    " two type user well wide".split()
)
"""Words that stand before a hyphen more often than they are cut by one."""
_LINKING = frozenset("a and by for in of off on out the to up".split())
"""Inner words of compounds such as state-of-the-art."""
_NO_BLANKS = re.compile(  # Han, kana and their punctuation: no blank at a line end
    "[\u2e80-\u30ff\u31c0-\u31ef\u3400-\u9fff\uf900-\ufaff\uff00-\uff60]"
)
_HANGUL = re.compile("[\u1100-\u11ff\u3130-\u318f\uac00-\ud7af]")


def vocabulary(lines: Iterable[str]) -> frozenset[str]:
    """Words of a document, and compounds that it writes with a hyphen inside a line; lower case."""
    words: set[str] = set()
    broken = False
    for line in lines:
        found = [word.lower() for word in _WORD.findall(line)]
        whole = found[1:] if broken else found
        broken = line.rstrip().endswith(("-", "\u00ad", "\u2010"))
        for word in whole[:-1] if broken else whole:
            words.add(word)
            words.update(word.split("-"))
    return frozenset(words)


def joined(
    lines: Sequence[str], spaced: Sequence[bool], words: Set[str], *, marks_blanks: bool
) -> str:
    """The lines as one text.

    `spaced` tells which lines end in a blank on the page; `marks_blanks` whether this document's
    Korean lines do that where a blank belongs, so that its absence means: the word goes on.
    """
    text = ""
    for number, line in enumerate(lines):
        if not text:
            text = line
            continue
        before = spaced[number - 1]
        text = _appended(text, line, before or not marks_blanks, words)
    return text


def _appended(text: str, line: str, blank: bool, words: Set[str]) -> str:
    broken = _HYPHEN_END.search(text)
    rest = _WORD_START.match(line)
    if broken and rest:
        if broken[2] == "\u00ad" or not _keeps_hyphen(broken[1], rest[0], words):
            return text[:-1] + line
        return text + line
    if text.endswith("-") and line[:1].isalnum() and text[-2:-1].isalnum():
        return text + line  # such as 2015-2016
    last, first = text[-1], line[:1]
    if _NO_BLANKS.match(last) and _NO_BLANKS.match(first):
        return text + line
    if _HANGUL.match(first) and not blank:
        return text + line
    return f"{text} {line}"


def _keeps_hyphen(start: str, rest: str, words: Set[str]) -> bool:
    """Whether a hyphen at a line end belongs to the word: as the document writes it elsewhere."""
    start, rest_lower = start.lower(), rest.lower()
    last = start.rpartition("-")[2]
    if f"{start}{rest_lower}" in words or f"{last}{rest_lower}" in words:
        return False
    if f"{start}-{rest_lower}" in words or f"{last}-{rest_lower}" in words:
        return True
    if rest[0].isupper() or len(last) == 1 or ("-" in start and last in _LINKING):
        return True
    if last in _COMPOUNDING and rest_lower in words:
        return True
    return len(last) > 2 and len(rest) > 2 and last in words and rest_lower in words
