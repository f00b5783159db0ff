"""POST /v1/search, POST /v1/answer and POST /v1/explain."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Iterable
from contextlib import aclosing
from datetime import UTC, datetime
from typing import Any, TypeVar

import structlog
from fastapi import APIRouter, Depends, Header, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from sse_starlette import EventSourceResponse, ServerSentEvent

from quarry.errors import QuarryError
from quarry.past import parse_time
from quarry.records import Answer, Message, SearchRequest, StageRecord
from quarry.settings import Settings
from quarry.telemetry.metrics import (
    ANSWERS,
    CUT_ANSWERS,
    DEGRADED,
    DOUBTS,
    GENERATED_TOKENS,
    REMOVED_LINKS,
    STAGE_SECONDS,
    UNKNOWN_CITATIONS,
    Metrics,
)
from serve.answering.generate import Delta
from serve.http.errors import INTERNAL, QUERY, error_body
from serve.http.explanations import ExplainOut, explanation_json
from serve.http.limits import Admission
from serve.http.schemas import (
    AnswerBody,
    AnswerOut,
    Body,
    ErrorOut,
    ExplainBody,
    SearchBody,
    SearchOut,
    answer_json,
    search_json,
)
from serve.http.service import Service
from serve.http.sign_in import SignIn
from serve.results import Event
from serve.stage import late

_log = structlog.get_logger(__name__)

T = TypeVar("T")

SLACK_S = 1.0
"""The service keeps the deadline itself; this is for one that hangs."""
ERRORS: dict[int | str, dict[str, Any]] = {
    status: {"model": ErrorOut, "description": description}
    for status, description in {
        400: "The filter does not parse, a name is no name, or the body cannot be read.",
        401: "The token is unknown, or may not name another person.",
        413: "The body is too large.",
        422: "The question or another key is not right, or as_of cannot be gone back to.",
        429: "Too many questions at once; see Retry-After.",
        500: "A fault of the server; its log says what.",
        503: "A store or model does not answer.",
        504: "The time for the request is up.",
    }.items()
}
STREAM: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "The answer; with stream, events delta {text}, then final (the answer) "
        "or error.",
        "content": {"text/event-stream": {}},
    }
}


def questions_router(
    service: Service,
    settings: Settings,
    *,
    sign_in: SignIn,
    admission: Admission,
    metrics: Metrics,
) -> APIRouter:
    router = APIRouter(
        prefix="/v1", tags=["questions"], responses=ERRORS, dependencies=[Depends(_no_query)]
    )
    handlers = _Handlers(service, settings, admission, metrics)

    @router.post("/search", response_model=SearchOut, summary="Find passages")
    async def search(body: SearchBody, authorization: str | None = Header(None)) -> Response:
        return await handlers.search(_request(body, authorization, sign_in, settings))

    @router.post(
        "/answer", response_model=AnswerOut, responses=STREAM, summary="Answer from passages"
    )
    async def answer(body: AnswerBody, authorization: str | None = Header(None)) -> Response:
        request = _request(body, authorization, sign_in, settings)
        return await (handlers.stream(request) if body.stream else handlers.answer(request))

    @router.post("/explain", response_model=ExplainOut, summary="How an answer comes about")
    async def explain(body: ExplainBody, authorization: str | None = Header(None)) -> Response:
        request = _request(body, authorization, sign_in, settings)
        return await handlers.explain(request, body.expect)

    return router


async def _no_query(request: Request) -> None:
    """A key in the address would be ignored, as if it had never been asked for."""
    if request.url.query:
        raise RequestValidationError([{"type": QUERY, "loc": (QUERY,), "msg": ""}])


def _request(
    body: Body, authorization: str | None, sign_in: SignIn, settings: Settings
) -> SearchRequest:
    return SearchRequest(
        question=body.question,
        principal=sign_in.principal(authorization, as_user=body.as_user, groups=body.groups),
        mode=body.mode,
        top_k=body.top_k or settings.retrieval.top_k,
        filter=body.filter,
        all_versions=body.all_versions,
        as_of=None if body.as_of is None else parse_time(body.as_of, datetime.now(UTC)),
        rerank=body.rerank,
        conversation=tuple(Message(role=t.role, content=t.content) for t in body.conversation),
        deadline_s=settings.serve.deadline_s,
    )


class _Handlers:
    def __init__(
        self, service: Service, settings: Settings, admission: Admission, metrics: Metrics
    ) -> None:
        self._service = service
        self._deadline_s = settings.serve.deadline_s
        self._admission = admission
        self._metrics = metrics

    async def search(self, request: SearchRequest) -> Response:
        with self._admission.enter():
            result = await self._within(self._service.search(request))
        self._count(result.trace, result.degraded)
        return JSONResponse(search_json(result))

    async def answer(self, request: SearchRequest) -> Response:
        with self._admission.enter():
            answer = await self._within(self._service.answer_whole(request))
        self._count_answer(answer)
        return JSONResponse(answer_json(answer))

    async def explain(self, request: SearchRequest, phrases: Iterable[str]) -> Response:
        expect = [(phrase,) for phrase in phrases]
        with self._admission.enter():
            explanation = await self._within(self._service.explain(request, expect))
        self._count_answer(explanation.answer)
        return JSONResponse(explanation_json(explanation))

    async def stream(self, request: SearchRequest) -> Response:
        """Waits for the first event, so that errors before it are HTTP statuses."""
        events = self._admitted(request)
        first = await self._within(anext(events))
        return EventSourceResponse(self._sent(first, events), ping=15)

    async def _admitted(self, request: SearchRequest) -> AsyncGenerator[Event, None]:
        """The events, holding one place until they end or are closed."""
        with self._admission.enter():
            async with aclosing(self._service.answer(request)) as events:
                async for event in events:
                    yield event

    async def _sent(
        self, first: Event, events: AsyncGenerator[Event, None]
    ) -> AsyncIterator[ServerSentEvent]:
        async with aclosing(events):
            try:
                yield self._event(first)
                async for event in events:
                    yield self._event(event)
            except QuarryError as error:
                yield _sse("error", error_body(error))
            except Exception as error:
                # The status line is out: the stream has to say it, the log says where.
                _log.exception("stream_broke", error=type(error).__name__)
                yield _sse("error", INTERNAL)

    def _event(self, event: Event) -> ServerSentEvent:
        if isinstance(event, Delta):
            return _sse("delta", {"text": event.text})
        self._count_answer(event.answer)
        return _sse("final", answer_json(event.answer))

    async def _within(self, work: Awaitable[T]) -> T:
        try:
            return await asyncio.wait_for(work, self._deadline_s + SLACK_S)
        except TimeoutError as error:
            raise late() from error

    def _count(self, trace: Iterable[StageRecord], degraded: Iterable[str]) -> None:
        for record in trace:
            self._metrics.observe(STAGE_SECONDS, record.ms / 1000, stage=record.stage)
        for stage in degraded:
            self._metrics.count(DEGRADED, stage=stage)

    def _count_answer(self, answer: Answer) -> None:
        self._count(answer.trace, answer.degraded)
        self._metrics.count(ANSWERS, status=answer.status.value)
        for record in answer.trace:
            if record.stage == "generate":
                self._metrics.count(GENERATED_TOKENS, record.count)
            self._metrics.count(UNKNOWN_CITATIONS, record.detail.get("unknown_citations", 0))
            self._metrics.count(REMOVED_LINKS, record.detail.get("removed_links", 0))
        for doubt in answer.doubts:
            self._metrics.count(DOUBTS, reason=doubt.reason)
        if answer.cut:
            self._metrics.count(CUT_ANSWERS)


def _sse(name: str, data: dict[str, Any]) -> ServerSentEvent:
    return ServerSentEvent(event=name, data=json.dumps(data, ensure_ascii=False))
