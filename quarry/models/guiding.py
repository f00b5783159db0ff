"""The form of an answer as a regular expression, for models that write under a constraint."""

from __future__ import annotations

import re
from collections.abc import Sequence

from quarry.text import REFUSAL

# A sentence: no bracket, no tag, no line break; a full stop inside it only before a digit. It does
# not begin with a small letter, so that nothing like "or [S2]" follows a citation.
_SENTENCE = r"[^\[\]<>\n.!? a-z]([^\[\]<>\n.!?]|[.][0-9])*[.!?]?"
_MORE_SENTENCES = 5
"""After the first; a small model would go on for ever."""


def answer_pattern(labels: Sequence[str]) -> str:
    """Matches the refusal, or a few sentences of which each ends in citations of these labels.

    A bound on the length of sentences would make the engine's automaton too large.
    """
    label = "|".join(labels)
    cited = rf"{_SENTENCE}( ?\[({label})\])+[.]?"
    return rf"({_verbatim(REFUSAL)}|{cited}([ \n]+{cited}){{0,{_MORE_SENTENCES}}})"


def _verbatim(text: str) -> str:
    """In the plain syntax that all engines of guided decoding know."""
    return re.sub(r"[^\w\s]", lambda match: f"[{match.group()}]", text)
