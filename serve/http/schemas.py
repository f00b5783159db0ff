"""The JSON of the API and of `--json`; these shapes are stable (docs/api.md)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError

from quarry.records import Answer, Candidate, Mode, SearchResult, Signals, StageRecord
from serve.answering.answer import section_path

MESSAGE_CHARACTERS = 8000
CONVERSATION_MESSAGES = 20
Phrase = Annotated[str, Field(min_length=1, max_length=2000)]


UNKNOWN_KEY = "unknown_key"
"""Type of the error for a key that a body must not have; its context has `key` and `known`."""


class Keyed(BaseModel):
    """An object that callers write; a key that is not named in it is an error."""

    model_config = ConfigDict(extra="forbid")

    @model_validator(mode="before")
    @classmethod
    def _only_known_keys(cls, given: Any) -> Any:
        # pydantic would refuse it as well, but without saying what is known beside it.
        known = [info.alias or name for name, info in cls.model_fields.items()]
        for key in given if isinstance(given, dict) else ():
            if key not in known:
                context = {"key": key, "known": known}
                raise PydanticCustomError(UNKNOWN_KEY, "The key is not known.", context)
        return given


class TurnIn(Keyed):
    """One earlier message."""

    role: Literal["user", "assistant"]
    content: str = Field(max_length=MESSAGE_CHARACTERS)


class Body(Keyed):
    """What the endpoints for questions take."""

    question: str = Field(description="The question, in plain words.")
    mode: Mode = Field(Mode.HYBRID, description="Which first-stage legs are used.")
    top_k: int | None = Field(
        None, ge=1, le=100, description="Results at most; unset: as the server is set."
    )
    filter: str = Field("", description="Filter language, such as `series = HR-014`.")
    all_versions: bool = Field(False, description="Superseded and withdrawn versions as well.")
    as_of: str | None = Field(
        None,
        max_length=40,
        description="Search what was served then: a date (its end, UTC), or a date and time.",
    )
    rerank: bool = Field(True, description="Whether the reranker orders the top.")
    conversation: list[TurnIn] = Field(
        default_factory=list,
        max_length=CONVERSATION_MESSAGES,
        description="What was said before, oldest first.",
    )
    as_user: str | None = Field(
        None, alias="as", max_length=200, description="Ask as this user; local token only."
    )
    groups: list[str] | None = Field(
        None, max_length=200, description="With these groups; local token only."
    )


class SearchBody(Body):
    """Body of POST /v1/search."""


class AnswerBody(Body):
    """Body of POST /v1/answer."""

    stream: bool = Field(False, description="Server-sent events: delta …, then final.")


class ExplainBody(Body):
    """Body of POST /v1/explain."""

    expect: list[Phrase] = Field(
        default_factory=list,
        max_length=20,
        description="Words of the documents, verbatim; for each the stage is named that lost it.",
    )


class SignalsOut(BaseModel):
    """Why a result stands where it stands; ranks count from 1, null: not found by that leg."""

    dense_rank: int | None
    dense_score: float | None
    lexical_rank: int | None
    lexical_score: float | None
    fused_score: float | None
    rerank_score: float | None


class ResultOut(BaseModel):
    rank: int
    chunk_id: str
    doc_id: str
    uri: str
    url: str = Field("", description="Public address from the document's metadata; often empty.")
    title: str
    section: str
    pages: list[int] | None = Field(description="First and last page, from 1.")
    text: str
    score: float
    signals: SignalsOut


class StageOut(BaseModel):
    stage: str
    ms: float
    count: int = Field(description="Items that left the stage.")
    detail: dict[str, Any]


class SearchOut(BaseModel):
    results: list[ResultOut]
    generation: str
    degraded: list[str] = Field(description="Stages that the result was made without.")
    trace: list[StageOut]


class CitationOut(BaseModel):
    label: str
    doc_id: str
    uri: str
    url: str = Field("", description="Public address from the document's metadata; often empty.")
    title: str
    section: str
    pages: list[int] | None
    quote: str = Field(description="Words of the source, verbatim.")


class DoubtOut(BaseModel):
    sentence: str
    reason: str = Field(description="uncited, numbers, words, negation, meaning or language.")
    labels: list[str] = Field(description="The sources that it names.")


class AnswerOut(BaseModel):
    status: str = Field(description="answered or refused.")
    answer: str
    citations: list[CitationOut]
    doubts: list[DoubtOut] = Field(description="Sentences that the sources may not bear.")
    cut: bool = Field(description="Whether the token limit ended what was written.")
    generation: str
    degraded: list[str]
    timings_ms: dict[str, float]
    trace: list[StageOut]


class ErrorDetail(BaseModel):
    code: str
    message: str


class ErrorOut(BaseModel):
    """Body of every response with a status of 400 or above."""

    error: ErrorDetail


def search_json(result: SearchResult) -> dict[str, Any]:
    """The stable JSON of a search."""
    return {
        "results": [
            _result(rank, candidate) for rank, candidate in enumerate(result.candidates, start=1)
        ],
        "generation": result.generation,
        "degraded": list(result.degraded),
        "trace": _trace(result.trace),
    }


def answer_json(answer: Answer) -> dict[str, Any]:
    """The stable JSON of an answer."""
    return {
        "status": answer.status.value,
        "answer": answer.text,
        "citations": [
            {
                "label": citation.label,
                "doc_id": citation.doc_id,
                "uri": citation.uri,
                "url": citation.url,
                "title": citation.title,
                "section": citation.section,
                "pages": _pages(citation.pages),
                "quote": citation.quote,
            }
            for citation in answer.citations
        ],
        "doubts": [
            {"sentence": doubt.sentence, "reason": doubt.reason, "labels": list(doubt.labels)}
            for doubt in answer.doubts
        ],
        "cut": answer.cut,
        "generation": answer.generation,
        "degraded": list(answer.degraded),
        "timings_ms": dict(answer.timings_ms),
        "trace": _trace(answer.trace),
    }


def error_json(code: str, message: str) -> dict[str, Any]:
    return {"error": {"code": code, "message": message}}


def passage_json(candidate: Candidate) -> dict[str, Any]:
    """Where a passage is from, and its text."""
    chunk, document = candidate.chunk, candidate.document
    return {
        "doc_id": document.doc_id,
        "uri": document.uri,
        "url": document.url,
        "title": document.title,
        "section": section_path(chunk.section),
        "pages": _pages(chunk.pages),
        "text": chunk.text,
    }


def signals_json(signals: Signals) -> dict[str, Any]:
    return {name: getattr(signals, name) for name in SignalsOut.model_fields}


def _result(rank: int, candidate: Candidate) -> dict[str, Any]:
    return {
        "rank": rank,
        "chunk_id": candidate.chunk.chunk_id,
        **passage_json(candidate),
        "score": candidate.score,
        "signals": signals_json(candidate.signals),
    }


def _pages(pages: tuple[int, int] | None) -> list[int] | None:
    return list(pages) if pages else None


def stage_json(record: StageRecord) -> dict[str, Any]:
    return {
        "stage": record.stage,
        "ms": record.ms,
        "count": record.count,
        "detail": _plain(record.detail),
    }


def _trace(records: Iterable[StageRecord]) -> list[dict[str, Any]]:
    return [stage_json(record) for record in records]


def _plain(detail: Mapping[str, Any]) -> dict[str, Any]:
    return {
        key: list(value) if isinstance(value, tuple) else value for key, value in detail.items()
    }
