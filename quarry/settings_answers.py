"""Settings of answers: when their text is shown, and what checks them."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from quarry.settings_file import Section


class EntailmentSettings(Section):
    model: str = Field(
        "", description="Hub id or path of an NLI cross-encoder; empty: words and numbers decide."
    )
    threshold: float = Field(
        0.5, gt=0, lt=1, description="Least probability that a source entails a sentence."
    )
    gpus: float = Field(0.0, ge=0, le=1, description="Share of a GPU that serving it reserves.")


class AnswerSettings(Section):
    mode: Literal["stream", "buffer"] = Field(
        "stream", description="stream shows text as it is written, buffer once it is checked."
    )
    entailment: EntailmentSettings = EntailmentSettings()
