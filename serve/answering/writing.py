"""What a generator writes, made fit to be shown while it streams: no thoughts, one form of citation
marks, no foreign links, and a refusal that is nothing but the refusal.
"""

from __future__ import annotations

from collections.abc import Sequence

from quarry.records import Evidence
from quarry.text import REFUSAL
from quarry.text.marks import without_marks_of_its_own
from quarry.text.thoughts import ThinkingFilter
from serve.answering.citations import Mark, MarkWriter, marks_in
from serve.answering.links import LinkGuard, addresses

_DECORATION = " \n\t\"'“”„«»*_>`"
"""What models put round the refusal."""
_UNPLAIN: dict[int, str | None] = {
    **{code: None for code in (*range(0x20), *range(0x7F, 0xA0)) if chr(code) not in "\t\n\r"},
    **dict.fromkeys(map(ord, "\x0b\x0c\x1c\x1d\x1e\x1f\x85\u2028\u2029"), " "),
    **dict.fromkeys(range(0xD800, 0xE000), "\ufffd"),
}


class AnswerWriter:
    """Takes generated text in pieces, gives the text to show; how it is cut makes no difference.

    Links are guarded last: where a mark is left out, what stood on its sides may become a link.
    """

    def __init__(self, evidence: Sequence[Evidence]) -> None:
        self._plain = PlainCharacters()
        self._thinking = ThinkingFilter()
        self._known = {item.label for item in evidence}
        texts = [without_marks_of_its_own(item.text) for item in evidence]
        self._marks = MarkWriter(self._known, texts)
        self._links = LinkGuard(addresses(evidence))
        self._ends = _Ends()
        self._gate = _RefusalGate()
        self._shown: list[str] = []

    @property
    def marks(self) -> tuple[Mark, ...]:
        """Where the citations stand in all that was shown."""
        return () if self._gate.refused else tuple(marks_in("".join(self._shown), self._known))

    @property
    def unknown_citations(self) -> int:
        """Citations left out because they name no source."""
        return self._marks.unknown

    @property
    def removed_links(self) -> int:
        """Images and links left out because they are not from the sources."""
        return self._links.removed

    def feed(self, text: str) -> str:
        """What can be shown already."""
        plain = self._plain.feed(text)
        return self._show(self._links.feed(self._marks.feed(self._thinking.feed(plain))))

    def finish(self) -> str:
        """The rest; nothing may be fed afterwards."""
        said = self._marks.feed(self._thinking.finish()) + self._marks.finish()
        rest = self._links.feed(said) + self._links.finish()
        return self._show(rest) + self._keep(self._gate.finish())

    def _show(self, text: str) -> str:
        return self._keep(self._gate.feed(self._ends.feed(text)))

    def _keep(self, text: str) -> str:
        self._shown.append(text)
        return text


class PlainCharacters:
    """Passes a text on with a line feed for every line end, a blank for other separators of lines
    and fields, U+FFFD for half a surrogate pair, and no other control character.

    Markdown, Unicode and Python differ in where such characters end a line: what follows this
    filter need know line feeds alone.
    """

    def __init__(self) -> None:
        self._after_return = False

    def feed(self, text: str) -> str:
        if not text:
            return ""
        rest = text.removeprefix("\n") if self._after_return else text
        self._after_return = text.endswith("\r")
        return rest.replace("\r\n", "\n").replace("\r", "\n").translate(_UNPLAIN)


class _Ends:
    """Passes a text on without the white space at its ends, where something was left out."""

    def __init__(self) -> None:
        self._blank = ""
        self._begun = False

    def feed(self, text: str) -> str:
        said = (self._blank + text).rstrip()
        self._blank = (self._blank + text)[len(said) :]
        if not self._begun:
            said = said.lstrip()
        self._begun = self._begun or bool(said)
        return said


class _RefusalGate:
    """Holds a text back while it may become the refusal; what follows a refusal is left out."""

    def __init__(self) -> None:
        self._begun = ""
        self._open = False
        self.refused = False

    def feed(self, text: str) -> str:
        if self._open or self.refused:
            return text if self._open else ""
        self._begun += text
        said = self._begun.lstrip(_DECORATION).casefold()
        wanted = REFUSAL.casefold()
        if said.startswith(wanted):
            self.refused = True
            return REFUSAL
        if wanted.startswith(said):
            return ""
        return self._release()

    def finish(self) -> str:
        if self._open or self.refused:
            return ""
        said = self._begun.strip(_DECORATION).casefold()
        if said and said == REFUSAL.casefold().rstrip("."):
            self.refused = True
            return REFUSAL
        return self._release()

    def _release(self) -> str:
        self._open = True
        return self._begun
