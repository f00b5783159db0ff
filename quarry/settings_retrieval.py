"""Settings of the way from a question to its sources."""

from __future__ import annotations

from pathlib import Path
from typing import Literal, Self

from pydantic import Field, model_validator

from quarry.settings_file import Section


class RewriteSettings(Section):
    follow_up: bool = Field(
        False, description="The generator makes a question of a conversation stand on its own."
    )
    hyde: bool = Field(
        False, description="Vectors are searched with a made-up answer beside the question (HyDE)."
    )
    multi_query: int = Field(
        0, ge=0, le=5, description="Other wordings of the question that are searched as well."
    )
    glossary_file: Path | None = Field(
        None, description="YAML file of other words for terms, per tenant; relative to this file."
    )

    @property
    def writes(self) -> bool:
        """Whether a generator is asked before the search."""
        return self.follow_up or self.hyde or self.multi_query > 0


class SelectSettings(Section):
    mmr: float | None = Field(
        None,
        ge=0,
        le=1,
        description="Maximal marginal relevance: weight of relevance against likeness to what "
        "stands before; unset: off.",
    )
    one_per_section: bool = Field(False, description="Only the best passage under each heading.")
    threshold: float | None = Field(
        None,
        gt=0,
        lt=1,
        description="Least probability that a passage is evidence; needs calibration_file.",
    )
    calibration_file: Path | None = Field(
        None, description="What `quarry calibrate` wrote; relative to this file."
    )
    widen: Literal["none", "short", "neighbours", "section"] = Field(
        "short",
        description="What a source is read with: short ones with the passages beside them, all "
        "with these, or all with their section.",
    )
    long_context: bool = Field(
        False, description="Answers read everything that may be read, where it fits the context."
    )

    @model_validator(mode="after")
    def _a_threshold_is_calibrated(self) -> Self:
        if self.threshold is not None and self.calibration_file is None:
            raise ValueError(
                "threshold needs calibration_file, made from labelled questions; "
                "run: quarry calibrate QUESTIONS"
            )
        return self


class RetrievalSettings(Section):
    top_k: int = Field(10, ge=1, le=100, description="Results of a search.")
    candidates: int = Field(100, ge=1, le=1000, description="Rows asked of each leg.")
    rrf_k: int = Field(60, ge=1, description="k of reciprocal rank fusion.")
    fusion_file: Path | None = Field(
        None,
        description="What `quarry tune fusion` wrote: learned weights in place of ranks for what "
        "is reranked; relative to this file.",
    )
    max_question_chars: int = Field(2000, ge=1, description="Longer questions are refused.")
    evidence_chunks: int = Field(8, ge=1, le=50, description="Sources of an answer at most.")
    rewrite: RewriteSettings = RewriteSettings()
    select: SelectSettings = SelectSettings()


def anchored(retrieval: RetrievalSettings, base: Path) -> RetrievalSettings:
    """Its files made absolute against the folder of the settings file."""
    glossary, calibration = retrieval.rewrite.glossary_file, retrieval.select.calibration_file
    rewrite = retrieval.rewrite.model_copy(
        update={"glossary_file": base / glossary.expanduser() if glossary else None}
    )
    select = retrieval.select.model_copy(
        update={"calibration_file": base / calibration.expanduser() if calibration else None}
    )
    weights = retrieval.fusion_file
    return retrieval.model_copy(
        update={
            "rewrite": rewrite,
            "select": select,
            "fusion_file": base / weights.expanduser() if weights else None,
        }
    )
