"""Cleaning: what looks the same becomes the same, and nothing that a reader needs is lost."""

from __future__ import annotations

import unicodedata

import regex

CLEANER_VERSION = "1"

_KEPT_FORMS = frozenset({"<super>", "<sub>", "<fraction>", "<circle>"})
"""Compatibility forms that NFKC would flatten into another meaning: 10² is not 102."""

_LINE_ENDS = regex.compile("\r\n?|[\v\f\x1c-\x1e\x85\u2028\u2029]")
_INVISIBLE = regex.compile(
    # Other controls, soft hyphen, grapheme joiner, bidi marks, zero-width spaces, word joiner and
    # invisible operators, byte order mark, interlinear marks, invisible tag characters and
    # noncharacters. Kept: tab, line feed, and the two joiners that _JOINERS looks at.
    r"[\x00-\x08\x0e-\x1b\x1f\x7f-\x84\x86-\x9f\xad\u034f\u061c\u180e\u200b\u200e\u200f"
    r"\u202a-\u202e\u2060-\u2064\u2066-\u206f\ufeff\ufff9-\ufffc\U000e0000-\U000e007f"
    r"\ufdd0-\ufdef\ufffe\uffff]"
)
_JOINERS = regex.compile(
    # Zero-width (non-)joiners shape letters in these scripts and compose emoji; elsewhere they are
    # invisible noise that splits words.
    r"(?<![\p{Arabic}\p{Syriac}\p{Mongolian}\p{Devanagari}\p{Bengali}\p{Gurmukhi}\p{Gujarati}"
    r"\p{Oriya}\p{Tamil}\p{Telugu}\p{Kannada}\p{Malayalam}\p{Sinhala}\p{Khmer}\p{Myanmar}"
    r"\p{Extended_Pictographic}\p{Emoji_Modifier}\ufe0f])[\u200c\u200d]"
    r"|[\u200c\u200d](?=[\s\u200c\u200d]|\Z)"
)
_SURROGATES = regex.compile("[\ud800-\udfff]")
_SPACES = regex.compile(r"(?<=\S)[^\S\n]{2,}(?=\S)|(?<=\S)[^\S\n ](?=\S)")
_TRAILING = regex.compile(r"[^\S\n]+(?=\n|\Z)")
_BLANK_START = regex.compile(r"\A(?:[^\S\n]*\n)+")


class _Folding(dict[int, str]):
    """Translation table that works each character out when it is first met."""

    def __missing__(self, codepoint: int) -> str:
        folded = self[codepoint] = _fold(chr(codepoint))
        return folded


def _fold(char: str) -> str:
    if char in "\u2010\u2011":  # hyphen and non-breaking hyphen
        return "-"
    if char in "\u3164\uffa0":  # Hangul fillers, shown as blanks
        return " "
    if char != "\t" and unicodedata.category(char) == "Zs":
        return " "
    form = unicodedata.decomposition(char).partition(" ")[0]
    if not form.startswith("<") or form in _KEPT_FORMS:
        return char
    folded = unicodedata.normalize("NFKC", char)
    # A free-standing accent decomposes into a blank and a mark, which would split a word.
    return char if folded.startswith(" ") else folded


_FOLDING = _Folding()


def clean(text: str) -> str:
    """Text as Quarry stores, embeds and searches it; `clean(clean(x)) == clean(x)`.

    - Letters: composed (NFC); ligatures, full-width, presentation and mathematical forms become
      plain letters; superscripts, subscripts, fractions and circled numbers stay what they are.
    - Removed: control characters, soft hyphens, zero-width and bidi controls, invisible tags, and
      joiners outside the scripts that need them. A lone surrogate becomes U+FFFD.
    - Lines: every kind of line end becomes a line feed, and all of them are kept save those before
      the first and after the last visible character.
    - Blanks: every kind becomes a space, runs shrink to one, none is left at a line's end. The
      indent of a line is kept where there are several lines, since code needs it.
    """
    if not text.isascii():
        text = _SURROGATES.sub("\ufffd", text)
    text = _LINE_ENDS.sub("\n", text)
    text = _INVISIBLE.sub("", text)
    if not text.isascii():
        text = _compose(text)
    text = _TRAILING.sub("", text)
    text = _BLANK_START.sub("", text.rstrip())
    if "\n" not in text:
        text = text.lstrip()
    return _SPACES.sub(" ", text)


def _compose(text: str) -> str:
    text = unicodedata.normalize("NFC", text)
    while "\u200c" in text or "\u200d" in text:
        without = unicodedata.normalize("NFC", _JOINERS.sub("", text))
        if without == text:
            break
        text = without
    return unicodedata.normalize("NFC", text.translate(_FOLDING))
