"""A client of the HTTP API over a service in process, and services that go wrong."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import httpx
from fastapi import FastAPI
from httpx_sse import aconnect_sse

from quarry.errors import (
    StoreUnavailable,
)
from quarry.records import SearchRequest
from quarry.settings import Settings
from serve.http.app import create_app
from serve.http.sign_in import SignIn

LOCAL = "local-token"

RESULT_KEYS = "rank chunk_id doc_id uri url title section pages text score signals".split()
SIGNAL_KEYS = "dense_rank dense_score lexical_rank lexical_score fused_score rerank_score".split()
ANSWER_KEYS = "status answer citations doubts cut generation degraded timings_ms trace".split()
CITATION_KEYS = "label doc_id uri url title section pages quote".split()

Client = httpx.AsyncClient
Open = Callable[..., Any]


@asynccontextmanager
async def client_of(service: Any, sign_in: SignIn, **serve: Any) -> AsyncIterator[Client]:
    settings = Settings.model_validate({"serve": serve})
    async with client_over(create_app(service, settings, sign_in=sign_in)) as client:
        yield client


@asynccontextmanager
async def client_over(app: FastAPI) -> AsyncIterator[Client]:
    transport = httpx.ASGITransport(app=app, raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://quarry") as client:
        yield client


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


async def uris(client: Client, question: str = "tents severance", **options: Any) -> set[str]:
    headers = options.pop("headers", {})
    body = {"question": question, **options}
    response = await client.post("/v1/search", json=body, headers=headers)
    assert response.status_code == 200, response.text
    return {result["uri"] for result in response.json()["results"]}


async def events_of(client: Client, body: dict[str, Any]) -> list[tuple[str, Any]]:
    async with aconnect_sse(client, "POST", "/v1/answer", json=body) as source:
        assert source.response.status_code == 200, await source.response.aread()
        return [(e.event, json.loads(e.data)) async for e in source.aiter_sse()]


class Broken:
    """A service whose every question ends with one error."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    async def search(self, request: SearchRequest) -> Any:
        raise self._error

    async def answer(self, request: SearchRequest) -> Any:
        raise self._error
        yield

    async def answer_whole(self, request: SearchRequest) -> Any:
        raise self._error

    async def explain(self, request: SearchRequest, expect: Any = ()) -> Any:
        raise self._error

    async def ready(self) -> dict[str, str]:
        return {"vectors": "store_unavailable", "text": "ok"}


class Waiting(Broken):
    """Questions wait until they are let go."""

    def __init__(self) -> None:
        super().__init__(StoreUnavailable("let go"))
        self.go = asyncio.Event()
        self.inside = asyncio.Semaphore(0)

    async def search(self, request: SearchRequest) -> Any:
        self.inside.release()
        await self.go.wait()
        raise self._error
