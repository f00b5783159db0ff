"""The tags between which reasoning models write what they think before they answer."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

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


def opened_at_end(text: str) -> str:
    """The opening tag that a text ends with, white space aside; empty if it ends otherwise."""
    end = text.rstrip().lower()
    return next((opening for opening in THOUGHTS if end.endswith(opening)), "")
