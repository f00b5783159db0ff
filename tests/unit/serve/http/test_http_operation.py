"""Overload, deadlines, health, metrics and the headers of responses."""

from __future__ import annotations

import asyncio
from pathlib import Path

import httpx

from quarry.settings import Settings
from serve.health import Remembered
from serve.http.app import create_app
from serve.http.sign_in import SignIn
from tests.unit.serve.http.http_client import (
    Broken,
    Client,
    Waiting,
    client_of,
    client_over,
    events_of,
    uris,
)
from tests.unit.serve.serve_world import Scripted, World


async def test_more_questions_than_are_let_in_are_told_to_come_back(users: SignIn) -> None:
    service = Waiting()
    async with client_of(service, users, max_in_flight=2) as client:

        async def search() -> httpx.Response:
            return await client.post("/v1/search", json={"question": "x"})

        held = [asyncio.create_task(search()) for _ in range(2)]
        for _ in held:
            await service.inside.acquire()
        refused = await search()
        assert refused.status_code == 429
        assert int(refused.headers["Retry-After"]) >= 1
        assert (await client.get("/healthz")).status_code == 200
        service.go.set()
        assert [(await task).status_code for task in held] == [503, 503]
        assert (await search()).status_code == 503, "the places are free again"


async def test_a_stream_holds_its_place_until_it_ends(world: World, users: SignIn) -> None:
    world.generator = Scripted("Store credit [S1].")
    async with client_of(world.engine(), users, max_in_flight=1) as client:
        for _ in range(3):
            events = await events_of(client, {"question": "used tents", "stream": True})
            assert events[-1][0] == "final"
        for _ in range(3):
            assert (
                await client.post("/v1/answer", json={"question": " ", "stream": True})
            ).is_error
        assert await uris(client) == {"returns.md"}


async def test_a_service_that_hangs_ends_at_the_deadline(users: SignIn) -> None:
    async with client_of(Waiting(), users, deadline_s=0.05) as client:
        response = await client.post("/v1/search", json={"question": "x"})
    assert (response.status_code, response.json()["error"]["code"]) == (504, "deadline_exceeded")


async def test_health_says_that_the_server_runs_and_readiness_that_its_parts_do(
    client: Client, users: SignIn
) -> None:
    assert (await client.get("/healthz")).json() == {"status": "ok"}
    ready = await client.get("/readyz")
    assert ready.status_code == 200
    assert set(ready.json()["parts"]) == {"catalog", "text", "vectors", "embedder", "generator"}
    async with client_of(Broken(RuntimeError()), users) as broken:
        not_ready = await broken.get("/readyz")
    assert not_ready.status_code == 503
    assert not_ready.json() == {
        "status": "not_ready",
        "parts": {"vectors": "store_unavailable", "text": "ok"},
    }


async def test_a_server_is_not_ready_before_those_who_look_for_it_find_it(
    users: SignIn, tmp_path: Path
) -> None:
    class Ready(Waiting):
        async def ready(self) -> dict[str, str]:
            return {"text": "ok"}

    file = tmp_path / "server.json"
    app = create_app(Ready(), Settings(), sign_in=users, announced=file.exists)
    async with client_over(app) as client:
        early = await client.get("/readyz")
        assert (early.status_code, early.json()["parts"]) == (503, {"server": "starting"})
        assert (await client.get("/healthz")).status_code == 200
        file.touch()
        assert (await client.get("/readyz")).status_code == 200
        file.unlink()
        assert (await client.get("/readyz")).status_code == 200, "it is not asked again"


async def test_readiness_is_asked_once_in_a_while_however_many_call() -> None:
    asked: list[float] = []
    now = 0.0

    async def ready() -> dict[str, str]:
        asked.append(now)
        return {"text": "ok"}

    remembered = Remembered(ready, seconds=2.0, clock=lambda: now)
    assert await asyncio.gather(*(remembered() for _ in range(20))) == [{"text": "ok"}] * 20
    assert asked == [0.0]
    now = 2.5
    await remembered()
    assert asked == [0.0, 2.5]


async def test_metrics_count_requests_and_stages_without_a_word_of_theirs(client: Client) -> None:
    await client.post("/v1/search", json={"question": "PRIVATE tents"})
    await client.post("/v1/answer", json={"question": "PRIVATE tents"})
    await client.get("/PRIVATE")
    text = (await client.get("/metrics")).text
    assert 'quarry_requests_total{endpoint="/v1/search",status="200"} 1.0' in text
    assert 'quarry_requests_total{endpoint="unknown",status="404"} 1.0' in text
    assert 'quarry_stage_seconds_count{stage="dense"} 2.0' in text
    assert "quarry_requests_in_flight 0.0" in text
    assert "quarry_answers_total" in text
    assert "PRIVATE" not in text


async def test_metrics_count_what_was_left_out_of_answers_and_what_is_to_doubt(
    world: World, users: SignIn
) -> None:
    world.generator = Scripted(
        "Used tents give store credit [S1][S9]. Pandas eat bamboo. ![x](http://e.example/q)"
    )
    async with client_of(world.engine(), users) as client:
        await client.post("/v1/answer", json={"question": "used tents"})
        text = (await client.get("/metrics")).text
    assert "quarry_unknown_citations_total 1.0" in text
    assert "quarry_removed_links_total 1.0" in text
    assert 'quarry_doubts_total{reason="uncited"} 1.0' in text
    assert "quarry_cut_answers_total 0.0" in text


async def test_the_api_page_needs_nothing_from_elsewhere(client: Client) -> None:
    page = await client.get("/docs")
    assert page.status_code == 200
    paths = ("/v1/search", "/v1/answer", "/v1/explain", "/healthz", "/readyz", "/metrics")
    for path in paths:
        assert path in page.text
    assert "<script" not in page.text
    assert "cdn" not in page.text
    assert "default-src 'none'" in page.headers["Content-Security-Policy"]
    assert set((await client.get("/openapi.json")).json()["paths"]) >= {"/v1/search", "/v1/answer"}


async def test_responses_cannot_be_framed_sniffed_cached_or_read_by_other_origins(
    client: Client,
) -> None:
    for response in (
        await client.get("/healthz", headers={"Origin": "http://evil.example"}),
        await client.post("/v1/search", json={"question": "tents"}),
        await client.get("/nowhere"),
    ):
        assert response.headers["X-Content-Type-Options"] == "nosniff"
        assert response.headers["X-Frame-Options"] == "DENY"
        assert response.headers["Cache-Control"] == "no-store"
        assert "Access-Control-Allow-Origin" not in response.headers
        assert len(response.headers["X-Request-ID"]) == 32


async def test_a_server_that_stops_lets_in_nobody_and_waits_for_those_inside(
    users: SignIn,
) -> None:
    service = Waiting()
    app = create_app(service, Settings(), sign_in=users)
    async with client_over(app) as client:
        held = asyncio.create_task(client.post("/v1/search", json={"question": "x"}))
        await service.inside.acquire()
        assert await app.state.admission.drain(0.0) == 1
        refused = await client.post("/v1/search", json={"question": "x"})
        assert (refused.status_code, refused.json()["error"]["code"]) == (503, "stopping")
        ready = await client.get("/readyz")
        assert (ready.status_code, ready.json()["parts"]) == (503, {"server": "stopping"})
        service.go.set()
        assert await app.state.admission.drain(30.0) == 0
        assert (await held).json()["error"]["code"] == "store_unavailable"
