"""Asks one case of a system and keeps what came back, in process and over HTTP alike.

A system is one callable that takes and gives the JSON of the API (docs/api.md), so that what is
measured is what callers get.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

import structlog

from evals.datasets.questions import Case
from evals.running.collection import record_name
from quarry.errors import QuarryError
from quarry.records import Mode

_log = structlog.get_logger(__name__)

Endpoint: TypeAlias = Literal["search", "answer"]
Ask: TypeAlias = Callable[[Endpoint, dict[str, Any]], Awaitable[Mapping[str, Any]]]
"""One request of the API; raises a QuarryError where the API gives an error."""

MOST_RESULTS = 100
"""The API gives no more results of one search."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """One way to ask the same questions."""

    mode: Mode = Mode.HYBRID
    rerank: bool = True
    filters: bool = True
    """False: superseded versions as well, and without the filter of the case."""
    answers: bool = True
    """False: only search."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """One search result, best first in its list."""

    document: str
    """The record's name in a file of many, else the uri; what `Case.relevant` names."""
    doc_id: str
    section: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Cited:
    document: str
    doc_id: str
    section: str
    quote: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """What one asking of a case gave; `error` is the code of the error that ended it."""

    passages: tuple[Passage, ...] = ()
    status: str = ""
    """`answered`, `refused`, or empty where no answer was asked for or none came."""
    answer: str = ""
    citations: tuple[Cited, ...] = ()
    error: str = ""
    degraded: tuple[str, ...] = ()
    search_ms: float = 0.0
    answer_ms: float = 0.0
    prompt_tokens: int = 0
    completion_tokens: int = 0


async def observe(case: Case, ask: Ask, variant: Variant, depth: int) -> Observed:
    """Searches to `depth` results and then asks; an error ends the case and is kept by its code,
    with what was found before it."""
    began = time.perf_counter()
    try:
        found = await ask("search", search_body(case, variant, depth))
    except QuarryError as error:
        return _failed(case, error, Observed())
    searched = Observed(
        passages=tuple(passage_of(result) for result in found["results"]),
        degraded=tuple(found["degraded"]),
        search_ms=(time.perf_counter() - began) * 1000,
    )
    if not variant.answers:
        return searched
    began = time.perf_counter()
    try:
        said = await ask("answer", request_body(case, variant))
    except QuarryError as error:
        return _failed(case, error, searched)
    prompt_tokens, completion_tokens = _tokens(said["trace"])
    return replace(
        searched,
        status=str(said["status"]),
        answer=str(said["answer"]),
        citations=tuple(_cited(citation) for citation in said["citations"]),
        degraded=tuple(dict.fromkeys((*searched.degraded, *said["degraded"]))),
        answer_ms=(time.perf_counter() - began) * 1000,
        prompt_tokens=prompt_tokens,
        completion_tokens=completion_tokens,
    )


def _failed(case: Case, error: QuarryError, so_far: Observed) -> Observed:
    _log.warning("case_failed", case=case.id, error=error.code)
    return replace(so_far, error=error.code)


def request_body(case: Case, variant: Variant) -> dict[str, Any]:
    """The JSON body that asks a case; keys at their default are left out."""
    body: dict[str, Any] = {"question": case.question, "mode": variant.mode.value}
    if not variant.rerank:
        body["rerank"] = False
    if not variant.filters:
        body["all_versions"] = True
    elif case.filter:
        body["filter"] = case.filter
    if case.person:
        body["as"] = case.person
    if case.groups:
        body["groups"] = list(case.groups)
    if case.conversation:
        body["conversation"] = [turn.model_dump() for turn in case.conversation]
    return body


def search_body(case: Case, variant: Variant, depth: int) -> dict[str, Any]:
    return request_body(case, variant) | {"top_k": min(depth, MOST_RESULTS)}


def passage_of(result: Mapping[str, Any]) -> Passage:
    """One result of the JSON of a search."""
    return Passage(
        document=record_name(str(result["uri"])),
        doc_id=str(result["doc_id"]),
        section=str(result["section"]),
        text=str(result["text"]),
    )


def _cited(citation: Mapping[str, Any]) -> Cited:
    return Cited(
        document=record_name(str(citation["uri"])),
        doc_id=str(citation["doc_id"]),
        section=str(citation["section"]),
        quote=str(citation["quote"]),
    )


def _tokens(trace: list[Mapping[str, Any]]) -> tuple[int, int]:
    """Prompt and completion tokens of all generations of a request."""
    written = [stage for stage in trace if "prompt_tokens" in stage["detail"]]
    prompt = sum(int(stage["detail"]["prompt_tokens"]) for stage in written)
    return prompt, sum(int(stage["count"]) for stage in written)
