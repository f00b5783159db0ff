"""Reads the citation marks that models write, and finds the words of a source that bear a claim."""

from __future__ import annotations

from collections.abc import Collection, Iterator

import regex

from quarry.records import Evidence
from quarry.text import analyze, sentences

_OPEN = r"[\[［【(（]"
_CLOSE = r"[\]］】)）]"
_MARK = regex.compile(
    # [S1], [S1, S2], [S1-S3], [[S1]], 【S1】, (S1 and S2), [Source S1]
    # Every repeat is bounded, so that what a stream holds back is short.
    rf"(?:{_OPEN}\s?){{1,3}}(?:sources?\b\s?:?\s?)?"
    r"(?P<body>S\s?\d{1,3}"
    r"(?:\s?(?:[,;、，；&+–—-]|\.\.|\band\b|\bor\b)\s?S?\s?\d{1,3}){0,30})"
    rf"(?:\s?{_CLOSE}){{1,3}}",
    regex.IGNORECASE,
)
_PLAIN_MARK = regex.compile(r"\[(S\d+)\]")
_BRACKET = regex.compile(_OPEN)
_LABEL = regex.compile(r"(?P<dash>[–—-]|\.\.)?\s*S?\s?(?P<number>\d{1,3})", regex.IGNORECASE)
_LONGEST_QUOTE = 500
_CLAIM_REACH = 1500
"""Characters before a mark in which the sentence that it supports is looked for."""


class MarkWriter:
    """Passes generated text on with every citation mark as `[S1]`, and marks of nothing left out.

    However a text is cut into pieces, what comes out is the same.
    """

    def __init__(self, known: Collection[str]) -> None:
        self._known = frozenset(known)
        self._held = ""
        self.unknown = 0
        """Labels dropped because no source has them."""

    def feed(self, text: str) -> str:
        """What can be shown already; the rest may be the start of a mark."""
        self._held += text
        return self._flow(last=False)

    def finish(self) -> str:
        """What was held back; nothing may be fed afterwards."""
        return self._flow(last=True)

    def _flow(self, *, last: bool) -> str:
        shown: list[str] = []
        while (opening := _BRACKET.search(self._held)) is not None:
            start = opening.start()
            mark = _MARK.match(self._held, start, partial=not last)
            open_ended = mark is not None and mark.end() == len(self._held)
            if open_ended and not last:
                return "".join(shown) + self._release(start)
            if mark is None or mark.partial:
                shown.append(self._held[: start + 1])
                self._held = self._held[start + 1 :]
                continue
            labels = "".join(f"[{label}]" for label in self._labels(mark["body"]))
            before = self._held[:start]
            shown.append(before + labels if labels else before.rstrip(" "))
            self._held = self._held[mark.end() :]
        return "".join(shown) + self._release(len(self._held) if last else None)

    def _release(self, end: int | None) -> str:
        """Held text up to `end`, less blanks at its end, which a dropped mark takes along."""
        text = self._held[:end]
        if end is None or end < len(self._held):
            text = text.rstrip(" ")
        self._held = self._held[len(text) :]
        return text

    def _labels(self, body: str) -> Iterator[str]:
        numbers: list[int] = []
        for part in _LABEL.finditer(body):
            number = int(part["number"])
            first = numbers[-1] + 1 if part["dash"] and numbers else number
            numbers.extend(range(first, number + 1) if first <= number else [number])
        for label in dict.fromkeys(f"S{number}" for number in numbers):
            if label in self._known:
                yield label
            else:
                self.unknown += 1


def claims(text: str) -> dict[str, list[str]]:
    """For each label in the order of its first mark, the sentences that it stands behind."""
    found: dict[str, list[str]] = {}
    for mark in _PLAIN_MARK.finditer(text):
        before = _PLAIN_MARK.sub("", text[max(0, mark.start() - _CLAIM_REACH) : mark.start()])
        spans = sentences(before)
        claim = before[slice(*spans[-1])].rstrip() if spans else ""
        found.setdefault(mark[1], []).append(claim)
    return found


def quote(source: Evidence, supported: Collection[str]) -> str:
    """The words of the source nearest to these claims, verbatim."""
    spans = [_nearest(source.text, claim) for claim in supported]
    start, end = min(s for s, _ in spans), max(e for _, e in spans)
    together = source.text[start:end]
    if end - start > _LONGEST_QUOTE or "\n\n" in together:
        return source.text[slice(*spans[0])]
    return together


def _nearest(text: str, claim: str) -> tuple[int, int]:
    """The span that is the claim, or the sentence that shares the largest part of its words."""
    where = text.find(claim) if claim else -1
    if where >= 0:
        return where, where + len(claim)
    wanted = set(analyze(claim))
    spans = sentences(text) or [(0, len(text))]
    return max(spans, key=lambda span: len(wanted.intersection(analyze(text[slice(*span)]))))


def without_marks(text: str) -> str:
    """The text as read aloud: no citation marks, no blanks at its ends."""
    return _PLAIN_MARK.sub("", text).strip()
