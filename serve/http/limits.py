"""What a server lets in: so many requests at once, bodies of so many bytes."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from quarry.errors import Overloaded, Stopping
from quarry.telemetry.metrics import IN_FLIGHT, Metrics
from serve.http.schemas import CONVERSATION_MESSAGES, MESSAGE_CHARACTERS, error_json

_ESCAPED_BYTES = 12
"""Of a character beyond the basic plane, in JSON that is ASCII alone: an escaped surrogate pair."""
MAX_BODY_BYTES = CONVERSATION_MESSAGES * MESSAGE_CHARACTERS * _ESCAPED_BYTES + 1024 * 1024
"""The longest conversation fits, however it is escaped, with a mebibyte for all else."""
RETRY_AFTER_S = 1.0


class Admission:
    """Counts the questions that are being worked on; beyond the limit it says no at once."""

    def __init__(self, limit: int, metrics: Metrics) -> None:
        self._limit = limit
        self._metrics = metrics
        self._in_flight = 0
        self._closed = False
        self._idle = asyncio.Event()
        self._idle.set()

    @property
    def closed(self) -> bool:
        return self._closed

    @contextmanager
    def enter(self) -> Iterator[None]:
        """Holds one place. Raises Overloaded when all are taken, Stopping after `drain`."""
        if self._closed:
            raise Stopping("The server is stopping; ask again when it is back.")
        if self._in_flight >= self._limit:
            raise Overloaded("Too many questions at once; ask again in a moment.", RETRY_AFTER_S)
        self._change(+1)
        try:
            yield
        finally:
            self._change(-1)

    async def drain(self, seconds: float) -> int:
        """Lets nobody in any more and waits for those inside; how many are left after the time."""
        self._closed = True
        with suppress(TimeoutError):
            await asyncio.wait_for(self._idle.wait(), seconds)
        return self._in_flight

    def _change(self, by: int) -> None:
        self._in_flight += by
        if self._in_flight:
            self._idle.clear()
        else:
            self._idle.set()
        self._metrics.set(IN_FLIGHT, self._in_flight)


class BodyLimit:
    """ASGI middleware: reads the body up to the limit, answers 413 beyond it."""

    def __init__(self, app: ASGIApp, max_bytes: int = MAX_BODY_BYTES) -> None:
        self._app = app
        self._max = max_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        messages: list[Message] = []
        size, more = 0, True
        while more:
            message = await receive()
            size += len(message.get("body", b""))
            if size > self._max:
                await _too_large(self._max)(scope, receive, send)
                return
            messages.append(message)
            more = message["type"] == "http.request" and message.get("more_body", False)

        async def replay() -> Message:
            return messages.pop(0) if messages else await receive()

        await self._app(scope, replay, send)


def _too_large(limit: int) -> JSONResponse:
    message = f"The body is longer than {limit} bytes; send less."
    return JSONResponse(
        error_json("body_too_large", message), status_code=413, headers={"Connection": "close"}
    )
