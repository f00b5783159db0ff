"""Sentence borders by rules: no model, the same result everywhere."""

from __future__ import annotations

import regex

_UNSPACED = r"\p{Han}\p{Hiragana}\p{Katakana}\p{Hangul}"

_BREAK = regex.compile(
    # A terminator with its closing marks, then a blank; the blank is not part of a sentence.
    r"""(?P<stop>[.!?…؟۔।॥]+["'”’»)\]]*)(?=\s)"""
    # Scripts without blanks: the full stop of its own, or ! and ? before another such letter.
    rf"""|(?P<wide>[。！？｡]+["'”’»」』）)\]]*|[!?]+["'”’」』）)]*(?=[{_UNSPACED}]))"""
    r"|(?P<line>[^\S\n]*\n\s*)"
)
_ABBREVIATIONS = frozenset(
    # Titles, references, Latin, measures and business forms that are followed by what they belong
    # to. "etc." and "a.m." are absent on purpose: they also end sentences, and a capital decides.
    "fig figs eq eqs no nos nr sec secs "
    "ch chap vol vols pp p ed eds art para ref refs app ver e.g i.e cf vs viz approx ca c al resp "
    "jan feb mar apr jun jul aug sep sept oct nov dec mon tue wed thu fri sat sun "
    "dept est inc ltd co corp gmbh u.s u.k z.b d.h u.a bzw ggf usw abs str tel incl excl max min "
    "hr hrs".split()
)
_TITLES = frozenset("dr mr mrs ms prof st rev hon gen sen rep capt lt col sgt".split())
"""Only with a capital: "Ms. Li", but "after 60 ms." """
_UNIT = regex.compile(r"(?:°|\d\s?)[A-Z]\.$")
_LAST_WORD = regex.compile(r"(?:[\p{L}\p{M}\p{N}]|(?<=\p{L})\.(?=\p{L}))+\.$")
_LIST_NUMBER = regex.compile(
    r"(?:^|\n)[^\S\n]*(?:[-*•]\s+)?\(?(?:\d{1,3}|[A-Za-z]|[ivxIVX]{2,5})\.$"
)
_NEW_ITEM = regex.compile(r"[-*•‣▪–+]\s|\(?\d{1,3}[.)]\s|\(?[a-z]\)\s|[|#>]")
_LABEL = regex.compile(r"[^:;\n]{1,60}: ")
_WRAPPED_LINE = 40
"""A line shorter than this was ended on purpose, not by wrapping."""


def sentences(text: str) -> list[tuple[int, int]]:
    """Spans of the sentences in order; what lies between them is white space only.

    A blank line ends a sentence, and so does a single line end, unless the line looks wrapped:
    long, without a terminator, and not followed by a list item or a table row.
    """
    spans: list[tuple[int, int]] = []
    start = _skip_blanks(text, 0)
    for match in _BREAK.finditer(text):
        if match.start() < start or not _ends(text, start, match):
            continue
        end = start + len(text[start : match.end()].rstrip())
        if end > start:
            spans.append((start, end))
        start = _skip_blanks(text, match.end())
    end = len(text.rstrip())
    if end > start:
        spans.append((start, end))
    return spans


def _skip_blanks(text: str, position: int) -> int:
    while position < len(text) and text[position].isspace():
        position += 1
    return position


def _ends(text: str, start: int, match: regex.Match[str]) -> bool:
    if match.lastgroup == "wide":
        return True
    if match.lastgroup == "line":
        return _line_ends(text, start, match)
    following = _skip_blanks(text, match.end())
    after = text[following : following + 1]
    if after.islower():
        return False
    if not match.group().startswith(".") or match.group().startswith(".."):
        return True
    before = text[start : match.start() + 1]
    return not _is_abbreviation(before[-24:], after) and not _LIST_NUMBER.search(before[-12:])


def _is_abbreviation(before: str, after: str) -> bool:
    last = _LAST_WORD.search(before)
    if last is None:
        return False
    word = last.group()[:-1]
    if len(word) == 1 and word.isalpha() and word.isupper():  # an initial: J. Smith; but 80 °C
        return word != "I" and not _UNIT.search(before)
    if word.lower() in _TITLES:
        return word[0].isupper()
    if word.lower() not in _ABBREVIATIONS:
        return False
    # "No." and "max." are words too: they are abbreviations only before a number.
    return after.isdigit() if word.lower() in {"no", "max", "min", "art", "sun", "sat"} else True


def _line_ends(text: str, start: int, match: regex.Match[str]) -> bool:
    if match.group().count("\n") > 1 or match.end() >= len(text):
        return True
    line_start = max(start, text.rfind("\n", 0, match.start()) + 1)
    line = text[line_start : match.start()]
    label = _LABEL.match(line)
    if label is not None and text.startswith(label.group(), match.end()):
        return True  # rows of a table, each "column: cell; column: cell"
    if len(line) < _WRAPPED_LINE or line.endswith((".", "!", "?", ":", ";", "|")):
        return not line.endswith(tuple(",-")) or bool(_NEW_ITEM.match(text, match.end()))
    return bool(_NEW_ITEM.match(text, match.end()))
