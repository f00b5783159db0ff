"""Reads the citation marks that models write, and finds the words of a source that bear a claim."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

import regex

from quarry.records import Evidence
from quarry.text import analyze, sentences
from quarry.text.marks import BRACKET, LABEL, MARK, RANGE
from serve.answering.markdown_code import CodeTracker

_LONGEST_QUOTE = 500
_TAIL = 24
"""Characters before a number in brackets that tell whether it was copied with them."""
_SENTENCE_ENDS = ("", ".", "!", "?", "\n", "。")
_MARKERS = regex.compile(r"[\s>*+•#.):~\d-]*")
"""Of lists, quotations and headings, before the text of a line."""
_MAY_CLOSE = regex.compile(r"\s?\\?")
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
    that exist is a mark, and not after a name, where it is an index. `[1]` is a mark if there is a
    source of this number, unless it was copied from one of `texts`, those of the sources as they
    are in the prompt, or the generator has written an `S` before a number already.
    """

    def __init__(self, known: Collection[str], texts: Collection[str] = ()) -> None:
        self._known = frozenset(known)
        self._texts = texts
        self._held = ""
        self._before = ""
        self._code = CodeTracker()
        self._behind_a_mark = False
        self._writes_labels = False
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
        return mark.partial or _MAY_CLOSE.fullmatch(self._held, mark.end()) is not None

    def _settle(self, mark: regex.Match[str], shown: list[str]) -> bool:
        """Shows the known labels of a mark; false if it is none."""
        before = self._held[: mark.start()]
        labels = list(dict.fromkeys(f"S{number}" for number in _numbers(mark.captures("label"))))
        known = [label for label in labels if label in self._known]
        if not self._is_meant(mark, before, all_known=known == labels):
            return False
        kept = len(before if known else before.rstrip(" "))
        self._pass(kept, shown)
        gone, self._held = self._held[: mark.end() - kept], self._held[mark.end() - kept :]
        self._code.pass_over(gone)
        self._writes_labels = self._writes_labels or (bool(known) and not mark["bare"])
        for label in known:
            self._show(f"[{label}]", shown)
            self._behind_a_mark = True
        self.unknown += len(labels) - len(known)
        return True

    def _is_meant(self, mark: regex.Match[str], before: str, *, all_known: bool) -> bool:
        """Whether it is a citation, here, and not something else that looks like one."""
        in_code = self._in_code(before)
        behind_a_mark = self._behind_a_mark and not before
        apart = behind_a_mark or not _is_name(self._before + before)
        if mark["bare"]:
            tail = (self._before + before)[-_TAIL:].lstrip()
            copied = any(tail + mark.group() in text for text in self._texts)
            ends = self._held[mark.end() : mark.end() + 1] in _SENTENCE_ENDS
            meant = all_known and not (in_code or copied or self._writes_labels)
            return meant and (apart or ends or not mark.group().startswith("["))
        return not in_code or (all_known and apart and mark.group().startswith("["))

    def _in_code(self, before: str) -> bool:
        """Whether what follows this text, of what is held, stands in code."""
        ahead = self._code.copy()
        ahead.pass_over(before)
        return ahead.inside()

    def _pass(self, length: int, shown: list[str]) -> None:
        """Shows so much of what is held, as it is."""
        text, self._held = self._held[:length], self._held[length:]
        self._code.pass_over(text)
        self._show(text, shown)

    def _show(self, text: str, shown: list[str]) -> None:
        if not self._before:
            text = text.lstrip()
        if text:
            self._before, self._behind_a_mark = (self._before + text)[-_TAIL:], False
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


def _numbers(labels: Sequence[str]) -> Iterator[int]:
    """The numbers of a mark's sources, ranges filled in, backward ones too."""
    previous: int | None = None
    for label in labels:
        part = LABEL.match(label)
        assert part is not None, "a label has a number"
        number = int(part["number"])
        if previous is not None and RANGE.match(label):
            step = 1 if number >= previous else -1
            yield from range(previous + step, number + step, step)
        else:
            yield number
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
    """The sentences in order; a mark belongs to the sentence that it stands in or behind, or before
    if nothing else of the line stands before it."""
    plain, places = _without(text, marks)
    spans = sentences(plain)
    labels: list[dict[str, None]] = [{} for _ in spans]
    for place, mark in zip(places, marks, strict=True):
        if spans:
            labels[_owner(plain, place, spans, places)][mark.label] = None
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


def _owner(plain: str, place: int, spans: Sequence[tuple[int, int]], places: Sequence[int]) -> int:
    """The number of the sentence that a mark at this place belongs to.

    Between two sentences it belongs to the one before, unless nothing of the line stands before it,
    or the line begins with a mark and ends without one: then each stands before its sentence.
    """
    after = bisect_left(spans, place, key=lambda span: span[0])
    if after == len(spans) or (after and place <= spans[after - 1][1]):
        return after - 1
    start, end = plain.rfind("\n", 0, place) + 1, plain.find("\n", place)
    end = len(plain) if end < 0 else end
    if not after or spans[after][0] > end:
        return max(0, after - 1)
    if _MARKERS.fullmatch(plain, start, place):
        return after
    beside = [each for each in places if start <= each <= end]
    leads = _MARKERS.fullmatch(plain, start, beside[0]) and plain[beside[-1] : end].strip(
        " .,;:!?。"
    )
    return after if leads else after - 1


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
    for mark in (*marks, None):
        rest = text[read : mark.at] if mark else text[read:]
        if rest[:1] in tuple(".,;:!? \n"):  # without the blank that stood before the mark
            plain = plain.rstrip(" ")
            if rest[0] != " ":
                places = [min(place, len(plain)) for place in places]
        plain += rest
        if mark:
            places.append(len(plain))
            read = mark.end
    return plain, places


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
