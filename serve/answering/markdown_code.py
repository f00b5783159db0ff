"""Knows, while a text streams by, whether the next character stands in Markdown code."""

from __future__ import annotations

from copy import copy

import regex

_LONGEST_LINE = 2000
"""Characters; where a line ends that is longer cannot be told from its beginning."""
_MARKERS = regex.compile(r"[\s>*+\-.):~\d]*")
"""Of lists, definition lists and quotations, before the text of a line."""
_OPENS = regex.compile(r"(?P<run>`{3,})[^`|]*")
"""A line with a bar may be the head of a table."""
_CLOSES = regex.compile(r"`{3,}[ \t]*")
_RUN = regex.compile(r"\s*(?P<run>`{3,})")


class CodeTracker:
    """Follows backticks: fences at the beginning of a line, and spans within one line.

    Spans over several lines are not followed, because a stray backtick would make code of all that
    comes after it.
    """

    def __init__(self) -> None:
        self._fence = 0
        self._span = 0
        self._run = 0
        self._line_begins = True

    def copy(self) -> CodeTracker:
        """One that goes on from here by itself."""
        return copy(self)

    def inside(self) -> bool:
        """Whether a character that is no backtick would stand in code here."""
        if not self._run:
            return bool(self._fence or self._span)
        fence, span = self._after_run()
        return bool(fence or span)

    def pass_over(self, text: str) -> None:
        """The text was read; cutting it in pieces makes no difference."""
        for character in text:
            if character == "`":
                self._run += 1
                continue
            if self._run:
                self._fence, self._span = self._after_run()
                self._run, self._line_begins = 0, False
            if character == "\n":
                self._span, self._line_begins = 0, True
            elif not character.isspace():
                self._line_begins = False

    def _after_run(self) -> tuple[int, int]:
        if self._fence:
            closes = self._line_begins and self._run >= self._fence
            return (0 if closes else self._fence), 0
        if self._span:
            return 0, 0 if self._run == self._span else self._span
        if self._line_begins and self._run >= 3:
            return self._run, 0
        return 0, self._run


class BlockTracker:
    """Knows which lines are in a fence for certain, and what a paragraph held so far that changes
    what follows. Lines end with a line feed alone, as `writing.PlainCharacters` makes them.

    Certain is only a fence of backticks that begins and ends without an indent: one in a list or a
    quotation may end before its closing line. After a line that could be read in two ways, no later
    fence is certain.
    """

    def __init__(self) -> None:
        self.line = ""
        """What stands on this line so far; of a longer one, the beginning."""
        self.may_define = False
        """Whether a line of this paragraph begins with a bracket, as definitions of links do."""
        self._fence = 0
        self._certain = True

    def in_fence(self) -> bool:
        """Whether what comes next stands in a fence for certain."""
        return bool(self._fence) and "```" not in self.line

    def at_beginning(self) -> bool:
        """Whether this line has no text yet, save the marks of a list or a quotation."""
        return _MARKERS.fullmatch(self.line) is not None

    def pass_over(self, text: str) -> None:
        """The text was shown; cutting it in pieces makes no difference."""
        *whole, rest = text.split("\n")
        for piece in whole:
            self._go_on(piece)
            self._end_line()
        self._go_on(rest)

    def _go_on(self, text: str) -> None:
        opening = text.find("[")
        if opening >= 0 and _MARKERS.fullmatch(self.line + text[:opening]):
            self.may_define = True
        self.line = (self.line + text)[:_LONGEST_LINE]

    def _end_line(self) -> None:
        line, self.line = self.line, ""
        whole = len(line) < _LONGEST_LINE
        if self._fence:
            self._leave_fence(line)
        elif self._certain and whole and (opening := _OPENS.fullmatch(line)) is not None:
            self._fence = len(opening["run"])
        elif not whole or "```" in line or "~~~" in line:
            self._certain = False
        # To Markdown a line is blank that has nothing but spaces and tabs.
        if self._fence or not line.strip(" \t"):
            self.may_define = False

    def _leave_fence(self, line: str) -> None:
        """Goes on in the fence, out of it, or into doubt where readers may differ."""
        run = _RUN.match(line)
        if run is None or len(run["run"]) < self._fence:
            return
        self._certain = _CLOSES.fullmatch(line) is not None and len(line) < _LONGEST_LINE
        self._fence = 0
