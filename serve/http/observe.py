"""ASGI middleware: a request id, security headers, metrics and one log line for each request."""

from __future__ import annotations

import time
from uuid import uuid4

import structlog
from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from quarry.telemetry.metrics import REQUEST_SECONDS, REQUESTS, Metrics

_log = structlog.get_logger(__name__)

HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
"""On every response that does not set its own; there is no CORS, so other origins cannot read."""


class Observer:
    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self._app = app
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request_id, start, status = uuid4().hex, time.perf_counter(), 500

        async def observed(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = int(message["status"])
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
                headers["X-Request-ID"] = request_id
            await send(message)

        with structlog.contextvars.bound_contextvars(request_id=request_id):
            try:
                await self._app(scope, receive, observed)
            finally:
                self._note(scope, status, time.perf_counter() - start)

    def _note(self, scope: Scope, status: int, seconds: float) -> None:
        # The route's template, not the path: paths are the caller's text.
        endpoint = getattr(scope.get("route"), "path", "unknown")
        self._metrics.count(REQUESTS, endpoint=endpoint, status=str(status))
        self._metrics.observe(REQUEST_SECONDS, seconds, endpoint=endpoint)
        ms = round(seconds * 1000, 1)
        _log.info("request", method=scope["method"], endpoint=endpoint, status=status, ms=ms)
