"""Citation marks in all the forms that models write, and marks that stand in documents, where they
cite nothing of an answer.
"""

from __future__ import annotations

import regex

_SQUARE = r"[\[［【〔⟦〖]"
_ROUND = r"[(（]"
_CURLY = r"[{｛]"
_OPEN = r"[\[［【〔⟦〖(（{｛]"
_CLOSE = r"[\]］】〕⟧〗)）}｝]"
_AFTER_NOUN = r"\b\.?\s?[:#]?\s?"
_NOUN = rf"(?:sources?|src|refs?|references?|citations?){_AFTER_NOUN}"
_MORE_NOUNS = rf"(?:{_NOUN}|(?:cites?|documents?|docs?|passages?){_AFTER_NOUN})"
_NO_NOUN = r"(?!)"
_AND = r"(?:\s?(?:[,;、，；&+/|–—-]|\.\.|…|\band\b|\bor\b|\bto\b|\bthrough\b)){1,2}"
_EMPHASIS = r"[*_`]{0,3}"
_PLACE = (
    r"\s?[,;:.]?\s?(?:†|§|pp?\.?(?=\s?\d)|pages?\b|sec\.|sections?\b|lines?\b|tables?\b|figs?\b"
    r"|figures?\b|chapters?\b|ch\.|para\b|paragraphs?\b|appendix\b|annex\b|clauses?\b|articles?\b)"
)
_TITLED = r"\s?[:：]\s?|\s[–—-]\s|\s?,\s?(?=[\"'“‘«])"
_ASIDE = r"\s?\([^\[\](){}\n]{0,40}\)"


def _shape(opening: str, noun: str, place: str, aside: str, letter: str = "S") -> str:
    """One kind of brackets: labels in a row, each with its place in the source or without.

    Every repeat is bounded, so that what a stream holds back is short, and no text can be read as a
    place in two ways, so that reading takes linear time.
    """
    named = rf"{_EMPHASIS}(?:{noun}{letter}?|{letter})\s?\d{{1,3}}{_EMPHASIS}"
    following = rf"{_AND}\s?{_EMPHASIS}(?:{noun})?{letter}?\s?\d{{1,3}}{_EMPHASIS}"
    words = rf"(?:(?!{_AND}\s?{named})[^\[\]［］【】〔〕⟦⟧〖〗()（）{{}}｛｝\n]){{0,60}}+"
    where = rf"(?:(?:{place}){words}|{aside})"
    return (
        rf"\\?{opening}\s?(?:\\?{_OPEN}\s?){{0,2}}(?:see\s|cf\.\s)?[\^#]?(?P<label>{named})"
        rf"(?:(?P<label>{following})|{where}(?P<label>{_AND}\s?{named})){{0,30}}"
        rf"(?:{where})?(?:\s?\\?{_CLOSE}){{1,3}}"
    )


_LABELLED = "|".join(
    (
        # [S1], [S1, S2], [S1-S3], [[S1]], 【S1】, [Source 2], [^S1], [S1, p. 3; S2], [S1: Title]
        _shape(_SQUARE, _MORE_NOUNS, rf"{_PLACE}|{_TITLED}", _ASIDE),
        # (S1 and S2), (see S3, p. 4); what else is said in round brackets is a remark
        _shape(_ROUND, _NOUN, _PLACE, _NO_NOUN),
        # {S1}, but {s1} is a variable
        _shape(_CURLY, _NO_NOUN, _PLACE, _NO_NOUN, letter="(?-i:S)"),
    )
)
_BARE = (
    # [1], [1, 2], 【1†source】, [^1]
    rf"(?P<bare>\\?[\[［【]\s?\^?(?P<label>\d{{1,3}})(?P<label>{_AND}\s?\d{{1,3}}){{0,30}}"
    r"(?:\s?†[^\[\]［］【】\n]{0,60})?\s?\\?[\]］】])"
)
MARK = regex.compile(rf"{_LABELLED}|{_BARE}", regex.IGNORECASE)
"""A mark that a model may have written; its `label` captures hold one source each, or the end of a
range. One with `bare` has numbers alone, which may mean something else."""
BRACKET = regex.compile(rf"\\?{_OPEN}|\\$")
"""Where a mark may begin."""
LABEL = regex.compile(r"\D*(?P<number>\d{1,3})")
RANGE = regex.compile(r"^\s*(?:[–—-]|\.\.|…|to\b|through\b)", regex.IGNORECASE)
"""How a label begins that is the end of a range."""
_OF_DOCUMENTS = regex.compile(_LABELLED, regex.IGNORECASE)
_ENDS = regex.compile(rf"^(?:\\?{_OPEN}\s?)+|(?:\s?\\?{_CLOSE})+$")


def without_marks_of_its_own(text: str) -> str:
    """Document text in which `[S2]` or `(S2)` reads `⟨S2⟩`, which nobody takes for a citation.

    Else a document could claim that another source bears it out.
    """
    return _OF_DOCUMENTS.sub(lambda mark: f"⟨{_ENDS.sub('', mark.group())}⟩", text)
