"""Choosing the sentences of the evidence that answer a question, for the extractive generator."""

from __future__ import annotations

from quarry.models.quoting.choosing import Chooser

__all__ = ["Chooser"]
