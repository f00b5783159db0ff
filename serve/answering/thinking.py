"""Keeps what a reasoning model thinks before it answers out of the answer, while it streams."""

from __future__ import annotations

import regex

from quarry.text.thoughts import THOUGHTS

_CLOSINGS = {
    opening: regex.compile(regex.escape(closing), regex.IGNORECASE)
    for opening, closing in THOUGHTS.items()
}


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
