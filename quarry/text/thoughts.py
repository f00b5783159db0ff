"""Keeps what a reasoning model thinks before it answers out of what it says, while it streams."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import regex

THOUGHTS: Mapping[str, str] = MappingProxyType(
    {
        "<think>": "</think>",
        "<thinking>": "</thinking>",
        "<thought>": "</thought>",
        "<reasoning>": "</reasoning>",
        "[think]": "[/think]",
        "◁think▷": "◁/think▷",
    }
)
"""The closing tag by the opening one, in small letters; models write capitals too."""

_CLOSINGS = {
    opening: regex.compile(regex.escape(closing), regex.IGNORECASE)
    for opening, closing in THOUGHTS.items()
}


def opened_at_end(text: str) -> str:
    """The opening tag that a text ends with, white space aside; empty if it ends otherwise."""
    end = text.rstrip().lower()
    return next((opening for opening in THOUGHTS if end.endswith(opening)), "")


def without_thoughts(text: str) -> str:
    """What a model said, of all that it wrote; empty where its thoughts never end.

    A closing tag alone ends thoughts too: the prompt has the opening one.
    """
    thinking = ThinkingFilter()
    said = thinking.feed(text) + thinking.finish()
    for opening, closing in _CLOSINGS.items():
        end = closing.search(said)
        if end and opening not in said[: end.start()].lower():
            said = said[end.end() :]
    return said


class ThinkingFilter:
    """Passes generated text on without the thoughts at its beginning; thoughts that never end are
    all that was generated.

    However a text is cut into pieces, what comes out is the same. A tag further on is part of the
    answer, which may be about such tags.
    """

    def __init__(self) -> None:
        self._held = ""
        self._within = ""
        self._answers = False

    def feed(self, text: str) -> str:
        """What is answer for certain."""
        self._held += text
        while not self._answers:
            if not (self._leave() if self._within else self._enter()):
                return ""
        return self._give()

    def finish(self) -> str:
        """What was held back; nothing may be fed afterwards."""
        return "" if self._within else self._give()

    def _enter(self) -> bool:
        """Goes into thoughts or the answer; false while the text may become either."""
        begun = self._held.lstrip().lower()
        for opening in THOUGHTS:
            if begun.startswith(opening):
                self._within = opening
                self._held = self._held.lstrip()[len(opening) :]
                return True
        self._answers = not any(opening.startswith(begun) for opening in THOUGHTS)
        return self._answers

    def _leave(self) -> bool:
        closing = _CLOSINGS[self._within].search(self._held)
        if closing is None:
            self._held = self._held[1 - len(THOUGHTS[self._within]) :]
            return False
        self._held, self._within = self._held[closing.end() :], ""
        return True

    def _give(self) -> str:
        given, self._held = self._held, ""
        return given
