"""Reads the citation marks that models write, and finds the words of a source that bear a claim."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

import regex

from quarry.records import Evidence
from quarry.text import analyze, sentences
from quarry.text.marks import BRACKET, LABEL, MARK
from serve.answering.markdown_code import CodeTracker

_LONGEST_QUOTE = 500
_WRITTEN = regex.compile(r"\[(?P<label>S\d{1,3})\]")


@dataclass(frozen=True, slots=True)
class Mark:
    """One citation in a text: `[S1]` stands at the position `at`."""

    at: int
    label: str

    @property
    def end(self) -> int:
        return self.at + len(self.label) + 2


class MarkWriter:
    """Passes generated text on with every citation mark as `[S1]`, without marks of nothing, and
    without white space at its ends.

    However a text is cut into pieces, what comes out is the same. In code only `[S1]` of sources
    that exist is a mark, and not after a name, where it is an index.
    """

    def __init__(self, known: Collection[str]) -> None:
        self._known = frozenset(known)
        self._held = ""
        self._before = ""
        self._code = CodeTracker()
        self._begun = False
        self._behind_a_mark = False
        self.unknown = 0
        """Labels dropped because no source has them."""

    def feed(self, text: str) -> str:
        """What can be shown already; the rest may be the start of a mark."""
        self._held += text
        return self._flow(last=False)

    def finish(self) -> str:
        """What was held back; nothing may be fed afterwards."""
        shown = self._flow(last=True)
        self._held = ""
        return shown

    def _flow(self, *, last: bool) -> str:
        shown: list[str] = []
        while (opening := BRACKET.search(self._held)) is not None:
            start = opening.start()
            mark = MARK.match(self._held, start, partial=not last)
            if mark is not None and not last and self._may_go_on(mark):
                self._pass(len(self._held[:start].rstrip()), shown)
                return "".join(shown)
            if mark is None or not self._settle(mark, shown):
                self._pass(start + 1, shown)
        self._pass(len(self._held.rstrip()), shown)
        return "".join(shown)

    def _may_go_on(self, mark: regex.Match[str]) -> bool:
        """Whether it is not whole yet, or another closing bracket may belong to it."""
        behind = self._held[mark.end() :]
        return mark.partial or not behind or (len(behind) == 1 and behind.isspace())

    def _settle(self, mark: regex.Match[str], shown: list[str]) -> bool:
        """Shows the known labels of a mark; false if it is none."""
        before = self._held[: mark.start()]
        labels = list(dict.fromkeys(f"S{number}" for number in _numbers(mark["body"])))
        known = [label for label in labels if label in self._known]
        if self._in_code(before) and not (known == labels and self._is_apart(mark, before)):
            return False
        kept = len(before if known else before.rstrip(" "))
        self._pass(kept, shown)
        gone, self._held = self._held[: mark.end() - kept], self._held[mark.end() - kept :]
        self._code.pass_over(gone)
        for label in known:
            self._show(f"[{label}]", shown)
            self._behind_a_mark = True
        self.unknown += len(labels) - len(known)
        return True

    def _in_code(self, before: str) -> bool:
        """Whether what follows this text, of what is held, stands in code."""
        ahead = self._code.copy()
        ahead.pass_over(before)
        return ahead.inside()

    def _is_apart(self, mark: regex.Match[str], before: str) -> bool:
        behind_a_mark = self._behind_a_mark and not before
        return mark.group().startswith("[") and (
            behind_a_mark or not _is_name(self._before + before)
        )

    def _pass(self, length: int, shown: list[str]) -> None:
        """Shows so much of what is held, as it is."""
        text, self._held = self._held[:length], self._held[length:]
        self._code.pass_over(text)
        self._show(text, shown)

    def _show(self, text: str, shown: list[str]) -> None:
        if not self._begun:
            text = text.lstrip()
        if text:
            self._begun, self._behind_a_mark, self._before = True, False, text[-1]
        shown.append(text)


def _is_name(before: str) -> bool:
    """Whether a bracket after this would be an index."""
    return before[-1:].isalnum() or before[-1:] in ("_", ")", "]")


def marks_in(text: str, known: Collection[str]) -> list[Mark]:
    """The marks of known sources in a text that is shown, as `MarkWriter` writes them, in order."""
    code = CodeTracker()
    found: list[Mark] = []
    read = 0
    for written in _WRITTEN.finditer(text):
        code.pass_over(text[read : written.start()])
        read = written.start()
        behind_a_mark = bool(found) and found[-1].end == read
        if written["label"] in known and (
            behind_a_mark or not (code.inside() and _is_name(text[read - 1 : read]))
        ):
            found.append(Mark(read, written["label"]))
    return found


def _numbers(body: str) -> Iterator[int]:
    """The numbers of a mark's sources, ranges filled in."""
    previous: int | None = None
    for part in LABEL.finditer(body):
        number = int(part["number"])
        first = previous + 1 if part["range"] and previous is not None else number
        yield from range(min(first, number), number + 1)
        previous = number


# ------------------------------------------------------------------------------------ the claims


@dataclass(frozen=True, slots=True, kw_only=True)
class Sentence:
    """A sentence of an answer without its marks, and the sources that it names."""

    text: str
    labels: tuple[str, ...]
    paragraph: int
    in_code: bool


def cited_sentences(text: str, marks: Sequence[Mark]) -> list[Sentence]:
    """The sentences in order; a mark belongs to the sentence that it stands in or behind."""
    plain, places = _without(text, marks)
    spans = sentences(plain)
    labels: list[dict[str, None]] = [{} for _ in spans]
    for place, mark in zip(places, marks, strict=True):
        before = [number for number, (start, _) in enumerate(spans) if start < place]
        if before:
            labels[before[-1]][mark.label] = None
    code = CodeTracker()
    found: list[Sentence] = []
    read = paragraph = 0
    for (start, end), named in zip(spans, labels, strict=True):
        paragraph += plain.count("\n\n", read, start)
        code.pass_over(plain[read:start])
        said = plain[start:end]
        in_code = code.inside() or said.startswith("```")
        found.append(Sentence(text=said, labels=tuple(named), paragraph=paragraph, in_code=in_code))
        code.pass_over(said)
        read = end
    return found


def claims(said: Sequence[Sentence]) -> dict[str, list[str]]:
    """For each label in the order of its first mark, the sentences that it stands behind."""
    found: dict[str, list[str]] = {}
    for sentence in said:
        for label in sentence.labels:
            found.setdefault(label, []).append(sentence.text)
    return found


def without_marks(text: str, marks: Sequence[Mark]) -> str:
    """The text as read aloud: no citation marks, no blanks at its ends."""
    return _without(text, marks)[0].strip()


def _without(text: str, marks: Sequence[Mark]) -> tuple[str, list[int]]:
    """The text without its marks, and where in it each of them stood."""
    plain = ""
    places: list[int] = []
    read = 0
    for mark in marks:
        plain = _joined(plain, text[read : mark.at])
        places.append(len(plain))
        read = mark.end
    return _joined(plain, text[read:]), places


def _joined(plain: str, rest: str) -> str:
    """What stood on both sides of a mark, without the blank that stood before it."""
    return (plain.rstrip(" ") if rest[:1] in tuple(".,;:!? \n") else plain) + rest


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
