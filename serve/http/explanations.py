"""The JSON of POST /v1/explain and of `quarry explain --json` (docs/api.md)."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from pydantic import BaseModel, Field

from quarry.explanation import Expectation, Explanation, Stage
from serve.http.schemas import (
    AnswerOut,
    SignalsOut,
    StageOut,
    answer_json,
    passage_json,
    signals_json,
    stage_json,
)


class ItemOut(BaseModel):
    rank: int
    chunk_id: str
    score: float | None
    before: int | None = Field(description="Rank before a stage that reorders.")
    label: str = Field(description="Number of a source, such as S1.")
    tokens: int | None = Field(description="Of a source in the prompt, by the generator.")


class LeftOutOut(BaseModel):
    chunk_id: str
    reason: str
    beside: str = Field(description="The passage in whose favour it was left out, if any.")


class ExplainedStageOut(StageOut):
    items: list[ItemOut] = Field(description="Passages that left the stage, best first.")
    left_out: list[LeftOutOut]


class PassageOut(BaseModel):
    doc_id: str
    uri: str
    url: str
    title: str
    section: str
    pages: list[int] | None
    text: str
    signals: SignalsOut


class MessageOut(BaseModel):
    role: str
    content: str


class PlaceOut(BaseModel):
    chunk_id: str
    lost: str | None
    reason: str
    dense_rank: int | None
    lexical_rank: int | None
    fused_rank: int | None
    final_rank: int | None
    label: str


class ExpectationOut(BaseModel):
    phrases: list[str]
    lost: str | None = Field(description="The first stage that lost it; null: it was cited.")
    reason: str
    places: list[PlaceOut]
    whole: bool = Field(description="False: not all documents could be looked through in time.")


class ExplainOut(BaseModel):
    question: str
    stages: list[ExplainedStageOut]
    passages: dict[str, PassageOut]
    prompt: list[MessageOut]
    answer: AnswerOut
    expected: list[ExpectationOut]


def explanation_json(explanation: Explanation) -> dict[str, Any]:
    """The stable JSON of an explanation."""
    return {
        "question": explanation.question,
        "stages": [_stage(stage) for stage in explanation.stages],
        "passages": {
            chunk_id: {**passage_json(passage), "signals": signals_json(passage.signals)}
            for chunk_id, passage in explanation.passages.items()
        },
        "prompt": [asdict(message) for message in explanation.prompt],
        "answer": answer_json(explanation.answer),
        "expected": [_expectation(each) for each in explanation.expected],
    }


def _stage(stage: Stage) -> dict[str, Any]:
    return {
        **stage_json(stage.record),
        "items": [asdict(item) for item in stage.items],
        "left_out": [asdict(each) for each in stage.left_out],
    }


def _expectation(expectation: Expectation) -> dict[str, Any]:
    return {
        "phrases": list(expectation.phrases),
        "lost": expectation.lost,
        "reason": expectation.reason,
        "places": [asdict(place) for place in expectation.places],
        "whole": expectation.whole,
    }
