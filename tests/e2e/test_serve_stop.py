"""The server is stopped while it answers; its generator is a slow endpoint on loopback."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import httpx
import pytest

from quarry.generations import open_live
from quarry.models.factory import load_embedder
from quarry.settings import Settings
from quarry.stores.milvus_lite import vector_server
from serve.serving.app import serving
from tests.contract import openai_server
from tests.unit.serve.serve_world import World

pytestmark = [pytest.mark.ray, pytest.mark.slow, pytest.mark.timeout(600)]

LONGER_THAN_RAY_WAITS_S = 7.0
"""Ray Serve gives requests of a replica that it ends five seconds."""


@pytest.fixture
async def endpoint() -> AsyncIterator[openai_server.Server]:
    reply = openai_server.answer("Used tents give store credit [S1].")
    late = replace(reply, pause_s=LONGER_THAN_RAY_WAITS_S / len(reply.parts))
    async with openai_server.serving(lambda _: late) as server:
        yield server


async def test_questions_in_flight_are_answered_before_the_server_ends(
    endpoint: openai_server.Server, tmp_path: Path
) -> None:
    settings = Settings.model_validate(
        {
            "data_dir": tmp_path,
            "serve": {"port": 0, "deadline_s": 60},
            "embedder": {"model": "fake"},
            "reranker": {"kind": "none"},
            "generator": {"kind": "openai", "model": "m1", "base_url": endpoint.url},
        }
    )
    embedder = load_embedder(settings.embedder)
    with vector_server(settings):
        _, stores = open_live(settings, embedder)
        world = World(settings=settings, stores=stores, embedder=embedder)
        world.add("returns.md", "Used tents give store credit.")
        stores.close()
    stack = ExitStack()
    url = await asyncio.to_thread(stack.enter_context, serving(settings))
    async with httpx.AsyncClient(base_url=url, timeout=60) as client:
        body = {"question": "What do used tents give?"}
        asked = asyncio.create_task(client.post("/v1/answer", json=body))
        await endpoint.asked.wait()
        stopped = asyncio.create_task(asyncio.to_thread(stack.close))
        refused = await _refused(client)
        answered = await asked
    await stopped
    assert (refused.status_code, refused.json()["error"]["code"]) == (503, "stopping")
    assert answered.status_code == 200, answered.text
    assert answered.json()["answer"] == "Used tents give store credit [S1]."


async def _refused(client: httpx.AsyncClient) -> httpx.Response:
    """The first reply to a search that is none: the server begins to stop meanwhile."""
    for _ in range(1000):
        reply = await client.post("/v1/search", json={"question": "tents"})
        if not reply.is_success:
            return reply
        await asyncio.sleep(0.05)
    raise AssertionError("it takes questions still")
