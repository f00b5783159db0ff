"""The shapes of replies and streams, as a client sees them."""

from __future__ import annotations

import json
import re

from quarry.errors import (
    ModelError,
)
from serve.http.schemas import AnswerBody
from serve.http.sign_in import SignIn
from tests.conftest import REPO
from tests.unit.serve.http.http_client import (
    ANSWER_KEYS,
    CITATION_KEYS,
    RESULT_KEYS,
    SIGNAL_KEYS,
    Client,
    bearer,
    client_of,
    events_of,
    uris,
)
from tests.unit.serve.serve_world import Scripted, World


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


async def test_the_longest_conversation_of_the_api_is_let_in(client: Client) -> None:
    turn = {"role": "user", "content": "я" * 8000}
    body = {"question": "used tents", "conversation": [turn] * 20}
    response = await client.post(
        "/v1/search",
        content=json.dumps(body, ensure_ascii=True),
        headers={"Content-Type": "application/json"},
    )
    assert response.status_code == 200
    assert response.json()["trace"][0]["detail"]["conversation"] == "not_read"
    body["conversation"] = [turn] * 21
    assert (await client.post("/v1/search", json=body)).status_code == 422


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
