"""Citation marks in all the forms that models write, and marks that stand in documents, where they
cite nothing of an answer.
"""

from __future__ import annotations

import regex

_OPEN = r"[\[［【〔(（]"
_CLOSE = r"[\]］】〕)）]"
_NOUN = r"(?:sources?|src|refs?|references?|citations?)\b\.?\s?[:#]?\s?"
_AND = r"(?:\s?(?:[,;、，；&+/|–—-]|\.\.|…|\band\b|\bor\b|\bto\b|\bthrough\b)){1,2}"
_NEXT = rf"{_AND}\s?(?:{_NOUN})?S?\s?\d{{1,3}}"
_PLACE = (
    r"\s?[,;:]?\s?(?:†|pp?\.|pages?\b|§|sec\.|section\b|lines?\b)[^\[\]［］【】〔〕()（）\n]{0,40}"
)
MARK = regex.compile(
    # [S1], [S1, S2], [S1-S3], [[S1]], 【S1】, (S1 and S2), [Source 2], [^S1], [S1, p. 3]
    # Every repeat is bounded, so that what a stream holds back is short.
    rf"(?:{_OPEN}\s?){{1,3}}(?:see\s|cf\.\s)?\^?\*{{0,2}}"
    rf"(?P<body>(?:{_NOUN}S?|S)\s?\d{{1,3}}(?:{_NEXT}){{0,30}})"
    rf"\*{{0,2}}(?:{_PLACE})?(?:\s?{_CLOSE}){{1,3}}",
    regex.IGNORECASE,
)
BRACKET = regex.compile(_OPEN)
LABEL = regex.compile(
    rf"(?P<range>[–—-]|\.\.|…|\bto\b|\bthrough\b)?\s?(?:{_NOUN})?S?\s?(?P<number>\d{{1,3}})",
    regex.IGNORECASE,
)
_ENDS = regex.compile(rf"^(?:{_OPEN}\s?)+|(?:\s?{_CLOSE})+$")


def without_marks_of_its_own(text: str) -> str:
    """Document text in which `[S2]` or `(S2)` reads `⟨S2⟩`, which nobody takes for a citation.

    Else a document could claim that another source bears it out.
    """
    return MARK.sub(lambda mark: f"⟨{_ENDS.sub('', mark.group())}⟩", text)
