"""The form of an answer as a regular expression, for models that write under a constraint."""

from __future__ import annotations

import re
from collections.abc import Sequence

from quarry.text import REFUSAL

# A sentence: no bracket, no tag, no line break; a full stop inside it only before a digit.
_SENTENCE = r"[^\[\]<>\n.!?]([^\[\]<>\n.!?]|[.][0-9])*[.!?]?"


def answer_pattern(labels: Sequence[str]) -> str:
    """Matches the refusal, or sentences of which each ends in citations of these labels."""
    label = "|".join(labels)
    cited = rf"{_SENTENCE}( ?\[({label})\])+[.]?"
    return rf"({_verbatim(REFUSAL)}|{cited}([ \n]+{cited})*)"


def _verbatim(text: str) -> str:
    """In the plain syntax that all engines of guided decoding know."""
    return re.sub(r"[^\w\s]", lambda match: f"[{match.group()}]", text)
