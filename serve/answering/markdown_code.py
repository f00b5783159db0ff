"""Knows, while a text streams by, whether the next character stands in Markdown code."""

from __future__ import annotations

from copy import copy


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
