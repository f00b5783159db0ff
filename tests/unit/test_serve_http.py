"""The HTTP API over the engine in process, driven as a client drives it."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
from httpx_sse import aconnect_sse

from quarry import retention
from quarry.access.principals import load_users, token_hash
from quarry.errors import (
    DataDirBusy,
    DeadlineExceeded,
    FilterError,
    ModelError,
    Overloaded,
    QuarryError,
    QuestionError,
    StoreUnavailable,
)
from quarry.records import SearchRequest
from quarry.settings import Settings
from serve.health import Remembered
from serve.http.app import create_app
from serve.http.errors import CODES
from serve.http.schemas import AnswerBody
from serve.http.sign_in import SignIn
from tests.conftest import REPO
from tests.unit.serve_world import Scripted, World

LOCAL = "local-token"
RESULT_KEYS = "rank chunk_id doc_id uri url title section pages text score signals".split()
SIGNAL_KEYS = "dense_rank dense_score lexical_rank lexical_score fused_score rerank_score".split()
ANSWER_KEYS = "status answer citations doubts cut generation degraded timings_ms trace".split()
CITATION_KEYS = "label doc_id uri url title section pages quote".split()

Client = httpx.AsyncClient
Open = Callable[..., Any]


@pytest.fixture
def users(tmp_path: Path) -> SignIn:
    path = tmp_path / "users.yaml"
    path.write_text(
        f"users:\n  ruth:\n    groups: [hr]\n    token_sha256: {token_hash('ruths-token')}\n"
        "  mei:\n    groups: [staff]\n",
        encoding="utf-8",
    )
    return SignIn(lambda: load_users(path), local_token=LOCAL)


@pytest.fixture
def world() -> World:
    world = World()
    world.add(
        "returns.md",
        "Used tents are returned for store credit.",
        title="Returns",
        section=("Returns", "Used"),
        pages=(2, 3),
    )
    world.add("severance.md", "Severance is 3 weeks of salary a year.", acl=("hr",))
    world.add("staff.md", "Staff tents cost 40 euros.", acl=("staff",))
    return world


@asynccontextmanager
async def client_of(service: Any, sign_in: SignIn, **serve: Any) -> AsyncIterator[Client]:
    settings = Settings.model_validate({"serve": serve})
    app = create_app(service, settings, sign_in=sign_in)
    transport = httpx.ASGITransport(app=app, raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://quarry") as client:
        yield client


@pytest.fixture
async def client(world: World, users: SignIn) -> AsyncIterator[Client]:
    async with client_of(world.engine(), users) as client:
        yield client


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


async def uris(client: Client, question: str = "tents severance", **options: Any) -> set[str]:
    headers = options.pop("headers", {})
    body = {"question": question, **options}
    response = await client.post("/v1/search", json=body, headers=headers)
    assert response.status_code == 200, response.text
    return {result["uri"] for result in response.json()["results"]}


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


# ------------------------------------------------------------------------------------ the shapes


async def test_a_search_has_the_shape_of_the_api(client: Client) -> None:
    response = await client.post("/v1/search", json={"question": "used tents"})
    body = response.json()
    assert list(body) == ["results", "generation", "degraded", "trace"]
    first = body["results"][0]
    assert list(first) == RESULT_KEYS
    assert list(first["signals"]) == SIGNAL_KEYS
    assert (first["rank"], first["uri"], first["title"]) == (1, "returns.md", "Returns")
    assert (first["section"], first["pages"]) == ("Returns > Used", [2, 3])
    assert (body["generation"], body["degraded"]) == ("g1", [])
    assert all(list(stage) == ["stage", "ms", "count", "detail"] for stage in body["trace"])


async def test_an_answer_has_the_shape_of_the_api(client: Client) -> None:
    response = await client.post("/v1/answer", json={"question": "Are used tents returned?"})
    body = response.json()
    assert list(body) == ANSWER_KEYS
    assert body["status"] == "answered"
    assert list(body["citations"][0]) == CITATION_KEYS
    assert "[S1]" in body["answer"]
    assert body["timings_ms"]["total"] > 0


async def test_a_refused_answer_has_no_sources(client: Client) -> None:
    response = await client.post("/v1/answer", json={"question": "zebra?", "mode": "lexical"})
    body = response.json()
    assert (body["status"], body["citations"]) == ("refused", [])


async def test_top_k_and_mode_are_those_of_the_request(client: Client) -> None:
    body = {"question": "tents", "top_k": 1, "mode": "lexical"}
    found = (await client.post("/v1/search", json=body)).json()
    assert len(found["results"]) == 1
    assert [s["stage"] for s in found["trace"]] == ["question", "lexical", "catalog", "fuse"]


async def test_an_explanation_has_the_shape_of_the_api_and_is_of_the_answer(
    client: Client,
) -> None:
    body = {"question": "used tents", "expect": ["store credit", "no such words"]}
    explained = (await client.post("/v1/explain", json=body)).json()
    assert list(explained) == ["question", "stages", "passages", "prompt", "answer", "expected"]
    assert [e["lost"] for e in explained["expected"]] == [None, "documents"]
    answer = (await client.post("/v1/answer", json={"question": "used tents"})).json()
    assert explained["answer"]["answer"] == answer["answer"]
    assert next(iter(explained["passages"].values()))["uri"] == "returns.md"


async def test_an_explanation_shows_what_the_asker_may_read_and_no_more(client: Client) -> None:
    body = {"question": "tents severance", "expect": ["3 weeks of salary"]}
    nobody = (await client.post("/v1/explain", json=body)).text
    assert "severance.md" not in nobody and "staff.md" not in nobody
    ruth = (await client.post("/v1/explain", json=body, headers=bearer("ruths-token"))).json()
    assert ruth["expected"][0]["places"] != []


async def test_expectations_are_for_explanations_only_and_bounded(client: Client) -> None:
    for path, expect in (
        ("/v1/search", ["x"]),
        ("/v1/answer", ["x"]),
        ("/v1/explain", ["x"] * 21),
        ("/v1/explain", ["x" * 2001]),
        ("/v1/explain", [""]),
    ):
        response = await client.post(path, json={"question": "tents", "expect": expect})
        assert response.status_code == 422


async def test_a_conversation_is_bounded(client: Client) -> None:
    turn = {"role": "user", "content": "x"}
    for conversation, status in (
        ([turn] * 20, 200),
        ([turn] * 21, 422),
        ([{**turn, "content": "x" * 8001}], 422),
        ([{**turn, "role": "system"}], 422),
        ([{**turn, "name": "x"}], 422),
    ):
        body = {"question": "tents", "conversation": conversation}
        assert (await client.post("/v1/search", json=body)).status_code == status


async def test_a_filter_is_that_of_the_request(client: Client) -> None:
    assert await uris(client, filter="source = elsewhere") == set()


def test_the_documented_objects_have_the_keys_of_the_real_ones() -> None:
    text = (REPO / "docs" / "api.md").read_text(encoding="utf-8")
    blocks = [json.loads(block) for block in re.findall(r"```json\n(.+?)```", text, re.DOTALL)]
    search, answer, error = blocks[:3]
    assert list(search) == ["results", "generation", "degraded", "trace"]
    assert list(search["results"][0]) == RESULT_KEYS
    assert list(search["results"][0]["signals"]) == SIGNAL_KEYS
    assert list(answer) == ANSWER_KEYS
    assert list(answer["citations"][0]) == CITATION_KEYS
    assert list(error["error"]) == ["code", "message"]


def test_the_documented_request_has_the_keys_of_the_real_one() -> None:
    text = (REPO / "docs" / "api.md").read_text(encoding="utf-8")
    table = text.split("| key | type |")[1].split("\n\n")[0]
    keys = {
        key for cell in re.findall(r"^\| (`.+?) \|", table, re.M) for key in cell.split("`")[1::2]
    }
    real = {field.alias or name for name, field in AnswerBody.model_fields.items()}
    assert keys == real


# ------------------------------------------------------------------------------------- streaming


async def events_of(client: Client, body: dict[str, Any]) -> list[tuple[str, Any]]:
    async with aconnect_sse(client, "POST", "/v1/answer", json=body) as source:
        assert source.response.status_code == 200, await source.response.aread()
        return [(e.event, json.loads(e.data)) async for e in source.aiter_sse()]


async def test_a_stream_is_deltas_and_then_the_whole_answer(world: World, users: SignIn) -> None:
    world.generator = Scripted("Store ", "credit ", "[S1].")
    async with client_of(world.engine(), users) as client:
        events = await events_of(client, {"question": "used tents", "stream": True})
        whole = (await client.post("/v1/answer", json={"question": "used tents"})).json()
    assert [name for name, _ in events] == ["delta"] * (len(events) - 1) + ["final"]
    final = events[-1][1]
    assert "".join(data["text"] for name, data in events[:-1]) == final["answer"]
    for key in ("status", "answer", "citations", "generation", "degraded"):
        assert final[key] == whole[key]


async def test_an_error_before_the_stream_opens_is_a_status(client: Client) -> None:
    body = {"question": "  ", "stream": True}
    response = await client.post("/v1/answer", json=body)
    assert (response.status_code, response.json()["error"]["code"]) == (422, "question_error")


async def test_an_error_in_an_open_stream_is_an_event(world: World, users: SignIn) -> None:
    world.generator = Scripted("Half of it", error=ModelError("The model failed; try again."))
    async with client_of(world.engine(), users) as client:
        events = await events_of(client, {"question": "used tents", "stream": True})
    assert events[-1] == (
        "error",
        {"error": {"code": "model_error", "message": "The model failed; try again."}},
    )


async def test_a_fault_in_an_open_stream_says_nothing_of_itself(
    world: World, users: SignIn
) -> None:
    world.generator = Scripted("Half of it", error=ZeroDivisionError("secret detail"))
    async with client_of(world.engine(), users) as client:
        events = await events_of(client, {"question": "used tents", "stream": True})
    assert events[-1][0] == "error"
    assert "secret" not in json.dumps(events)


# --------------------------------------------------------------------------------------- sign-in


async def test_without_a_token_one_sees_what_is_public(client: Client) -> None:
    assert await uris(client) == {"returns.md"}


async def test_a_users_token_opens_what_the_user_may_read(client: Client) -> None:
    found = await uris(client, headers=bearer("ruths-token"))
    assert found == {"returns.md", "severance.md"}


async def test_the_local_token_may_name_a_person_who_has_the_groups_of_the_users_file(
    client: Client,
) -> None:
    assert await uris(client, headers=bearer(LOCAL), **{"as": "mei"}) == {
        "returns.md",
        "staff.md",
    }


async def test_groups_beside_a_name_take_the_place_of_its_own(client: Client) -> None:
    found = await uris(client, headers=bearer(LOCAL), **{"as": "mei", "groups": []})
    assert found == {"returns.md"}
    assert await uris(client, headers=bearer(LOCAL), groups=["hr"]) == {
        "returns.md",
        "severance.md",
    }


async def test_the_local_token_by_itself_is_nobody(client: Client) -> None:
    assert await uris(client, headers=bearer(LOCAL)) == {"returns.md"}


@pytest.mark.parametrize(
    ("headers", "body"),
    [
        ({}, {"as": "ruth"}),
        ({}, {"groups": ["hr"]}),
        ({}, {"groups": []}),
        (bearer("ruths-token"), {"as": "ruth"}),
        (bearer("ruths-token"), {"groups": ["staff"]}),
        (bearer("unknown"), {}),
        (bearer(""), {}),
        ({"Authorization": "Basic cnV0aDpy"}, {}),
        ({"Authorization": LOCAL}, {}),
    ],
)
@pytest.mark.parametrize("path", ["/v1/search", "/v1/answer", "/v1/explain"])
async def test_whoever_claims_more_than_the_token_gives_is_turned_away(
    client: Client, path: str, headers: dict[str, str], body: dict[str, Any]
) -> None:
    response = await client.post(path, json={"question": "tents", **body}, headers=headers)
    assert response.status_code == 401
    assert response.json()["error"]["code"] == "not_signed_in"
    assert response.headers["WWW-Authenticate"] == "Bearer"


async def test_a_server_without_a_local_token_takes_none(world: World, users: SignIn) -> None:
    async with client_of(world.engine(), SignIn(users._users)) as client:
        response = await client.post(
            "/v1/search", json={"question": "tents"}, headers=bearer(LOCAL)
        )
    assert response.status_code == 401


async def test_a_group_that_poses_as_a_person_is_an_error_of_the_caller(client: Client) -> None:
    response = await client.post(
        "/v1/search", json={"question": "x", "groups": ["user:ruth"]}, headers=bearer(LOCAL)
    )
    assert response.status_code == 400


# ---------------------------------------------------------------------------------------- errors


@pytest.mark.parametrize(
    "error",
    [
        QuestionError("q"),
        FilterError("f"),
        StoreUnavailable("s"),
        ModelError("m"),
        DeadlineExceeded("d"),
        DataDirBusy("b"),
        Overloaded("o"),
        QuarryError("any"),
    ],
    ids=lambda error: type(error).__name__,
)
@pytest.mark.parametrize("kind", ["search", "answer", "stream", "explain"])
async def test_every_error_has_its_status_and_one_shape(
    users: SignIn, error: QuarryError, kind: str
) -> None:
    path = "/v1/answer" if kind == "stream" else f"/v1/{kind}"
    body = {"question": "x", **({"stream": True} if kind == "stream" else {})}
    async with client_of(Broken(error), users) as client:
        response = await client.post(path, json=body)
    assert response.status_code == error.http_status
    assert response.json() == {"error": {"code": error.code, "message": str(error)}}
    assert ("Retry-After" in response.headers) == (error.http_status in (429, 503))


async def test_a_fault_of_ours_says_nothing_of_itself(users: SignIn) -> None:
    async with client_of(Broken(RuntimeError("secret detail")), users) as client:
        response = await client.post("/v1/search", json={"question": "my words"})
    assert response.status_code == 500
    assert response.json()["error"]["code"] == "internal"
    assert "secret" not in response.text and "my words" not in response.text


@pytest.mark.parametrize(
    "content",
    [
        b'{"question": 5}',
        b'{"question": "PRIVATE", "mode": "PRIVATE"}',
        b'{"question": "PRIVATE", "top_k": 0}',
        b'{"question": "PRIVATE", "top_k": 101}',
        b'{"question": "PRIVATE", "top_k": "PRIVATE"}',
        b'{"question": "PRIVATE", "PRIVATE": 1}',
        b'{"question": "PRIVATE", "groups": "PRIVATE"}',
        b'{"question": "PRIVATE", "conversation": [{"role": "PRIVATE", "content": "PRIVATE"}]}',
        b'{"question": "PRIVATE", "conversation": [{"role": "user", "content": 5}]}',
        b'{"question": "PRIVATE", "conversation": "PRIVATE"}',
        b'{"mode": "PRIVATE"}',
        b'["PRIVATE"]',
        b"PRIVATE {",
        b"\xff\xfe",
        b"",
    ],
)
async def test_a_body_that_is_not_right_is_named_without_its_text(
    client: Client, content: bytes
) -> None:
    for path in ("/v1/search", "/v1/answer", "/v1/explain"):
        response = await client.post(
            path, content=content, headers={"Content-Type": "application/json"}
        )
        assert response.status_code in (400, 422)
        assert set(response.json()["error"]) == {"code", "message"}
        assert "PRIVATE" not in response.text


@pytest.mark.parametrize(
    ("method", "path", "content", "code"),
    [
        ("POST", "/v1/search", b'{"question": "\xff\xfe"}', "bad_request"),
        ("POST", "/v1/search", b"{", "invalid_request"),
        ("POST", "/v1/search", b" " * 70_000, "body_too_large"),
        ("GET", "/v1/search", b"", "method_not_allowed"),
        ("GET", "/v2", b"", "not_found"),
    ],
)
async def test_what_is_no_request_gets_its_code_and_a_sentence_that_says_what_to_do(
    client: Client, method: str, path: str, content: bytes, code: str
) -> None:
    headers = {"Content-Type": "application/json"}
    response = await client.request(method, path, content=content, headers=headers)
    error = response.json()["error"]
    assert (response.status_code, error["code"]) == (CODES[code], code)
    assert re.search(r"[;:] (send|see) ", error["message"])


async def test_every_status_of_the_questions_is_described(client: Client) -> None:
    described = (await client.get("/openapi.json")).json()["paths"]["/v1/search"]["post"]
    statuses = "200 400 401 413 422 429 500 503 504".split()
    assert sorted(described["responses"]) == statuses


async def test_a_body_beyond_the_limit_is_refused(client: Client) -> None:
    response = await client.post("/v1/search", json={"question": "x" * 70_000})
    assert response.status_code == 413
    assert response.json()["error"]["code"] == "body_too_large"


async def test_a_body_in_pieces_beyond_the_limit_is_refused(client: Client) -> None:
    async def pieces() -> AsyncIterator[bytes]:
        for _ in range(100):
            yield b" " * 1024

    response = await client.post("/v1/search", content=pieces())
    assert response.status_code == 413


@pytest.mark.parametrize(
    ("method", "path", "status"), [("GET", "/v1/search", 405), ("GET", "/x", 404)]
)
async def test_unknown_places_answer_in_the_same_shape(
    client: Client, method: str, path: str, status: int
) -> None:
    response = await client.request(method, path)
    assert response.status_code == status
    assert set(response.json()["error"]) == {"code", "message"}


async def test_a_question_that_is_too_long_is_an_error_of_the_caller(client: Client) -> None:
    response = await client.post("/v1/search", json={"question": "x" * 2001})
    assert (response.status_code, response.json()["error"]["code"]) == (422, "question_error")


# --------------------------------------------------------------------------------------- overload


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


# -------------------------------------------------------------------------------------- operation


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


# ------------------------------------------------------------------------------------- the past


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
