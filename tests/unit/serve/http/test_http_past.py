"""Searches of what was served at a time."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from quarry import retention
from serve.http.sign_in import SignIn
from tests.unit.serve.http.http_client import (
    Client,
    client_of,
)
from tests.unit.serve.serve_world import World


@pytest.fixture
async def past_client(world: World, users: SignIn) -> AsyncIterator[Client]:
    """Of a world that keeps the past for 30 days."""
    world.stores = replace(world.stores, retention=timedelta(days=30))
    retention.advance(world.stores)
    async with client_of(world.engine(), users) as client:
        yield client


async def test_a_search_shows_what_was_served_at_the_time_named(
    world: World, past_client: Client
) -> None:
    then = datetime.now(UTC).isoformat()
    world.add("returns.md", "Used tents are not taken back any more.", title="Returns")

    async def texts(**body: str) -> list[str]:
        answered = await past_client.post("/v1/search", json={"question": "used tents", **body})
        assert answered.status_code == 200
        return [result["text"] for result in answered.json()["results"]]

    assert await texts(as_of=then) == ["Used tents are returned for store credit."]
    assert await texts() == ["Used tents are not taken back any more."]


@pytest.mark.parametrize("path", ["/v1/search", "/v1/answer", "/v1/explain"])
@pytest.mark.parametrize("time", ["", "yesterday", "2999-01-01", "2001-01-31"])
async def test_a_time_that_cannot_be_gone_back_to_is_422(
    past_client: Client, path: str, time: str
) -> None:
    response = await past_client.post(path, json={"question": "used tents", "as_of": time})
    assert (response.status_code, response.json()["error"]["code"]) == (422, "as_of_error")


async def test_without_a_retention_422_names_the_setting(client: Client) -> None:
    now = datetime.now(UTC).isoformat()
    response = await client.post("/v1/search", json={"question": "used tents", "as_of": now})
    assert response.status_code == 422
    assert "stores.retention_days" in response.json()["error"]["message"]
