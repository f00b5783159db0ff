"""The server as it runs: Ray Serve, SQLite, Milvus Lite, the packaged embedder, real HTTP."""

from __future__ import annotations

import asyncio
import json
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from httpx_sse import connect_sse

from quarry.access.principals import token_hash
from quarry.generations import open_live
from quarry.models.factory import load_embedder
from quarry.settings import Settings
from quarry.stores.milvus_lite import vector_server
from quarry.text import REFUSAL
from serve.engine import open_engine
from serve.http.explanations import explanation_json
from serve.http.schemas import answer_json, search_json
from serve.serving.app import serving
from tests.unit.serve.serve_world import World, request

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

USERS = f"users: {{ruth: {{groups: [hr], token_sha256: {token_hash('ruths-token')}}}}}\n"
TENT = "Can a used tent be returned?"


@dataclass
class Server:
    url: str
    world: World
    token: str

    def post(self, path: str, question: str, **options: Any) -> httpx.Response:
        token = options.pop("token", "")
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        body = {"question": question, **options}
        return httpx.post(f"{self.url}{path}", json=body, headers=headers, timeout=60)

    def ask(self, question: str, **options: Any) -> dict[str, Any]:
        response = self.post("/v1/answer", question, **options)
        assert response.status_code == 200, response.text
        answer: dict[str, Any] = response.json()
        return answer

    def uris(self, question: str, **options: Any) -> list[str]:
        response = self.post("/v1/search", question, **options)
        assert response.status_code == 200, response.text
        return [result["uri"] for result in response.json()["results"]]


def settings_in(folder: Path, **sections: Any) -> Settings:
    return Settings.model_validate(
        {
            "data_dir": folder / "data",
            "serve": {"port": 0, "deadline_s": 60},
            **sections,
        }
    )


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("served")
    (folder / "users.yaml").write_text(USERS, encoding="utf-8")
    settings = settings_in(folder, access={"users_file": folder / "users.yaml"})
    embedder = load_embedder(settings.embedder)
    with vector_server(settings):
        _, stores = open_live(settings, embedder)
        world = World(settings=settings, stores=stores, embedder=embedder)
        world.add(
            "returns.md",
            "Unopened tents are refunded within 30 days of delivery.",
            "A used tent can be returned within 60 days for store credit only.",
            header="Returns",
        )
        world.add("faults.md", "E-1042: axis 2 drive overcurrent.", "E-1024: brake voltage low.")
        world.add("severance.md", "Severance is 3 weeks of base salary a year.", acl=("hr",))
        with serving(settings) as url:
            facts = json.loads((settings.data_dir / "server.json").read_text(encoding="utf-8"))
            yield Server(url, world, facts["token"])
        stores.close()
    assert not (settings.data_dir / "server.json").exists()


@pytest.mark.ray
def test_a_question_is_answered_from_its_source(server: Server) -> None:
    answer = server.ask(TENT)
    assert answer["status"] == "answered"
    assert "store credit" in answer["answer"]
    citation = answer["citations"][0]
    assert citation["uri"] == "returns.md"
    assert citation["quote"] in "A used tent can be returned within 60 days for store credit only."
    assert answer["degraded"] == []


@pytest.mark.ray
def test_the_exact_code_is_first(server: Server) -> None:
    response = server.post("/v1/search", "What is E1042?")
    first = response.json()["results"][0]
    assert first["text"].startswith("E-1042")
    assert first["signals"]["lexical_rank"] == 1


@pytest.mark.ray
def test_a_restricted_document_answers_one_person_and_does_not_exist_for_others(
    server: Server,
) -> None:
    question = "How many weeks of base salary is severance?"
    assert "3 weeks" in server.ask(question, token="ruths-token")["answer"]
    assert "3 weeks" in server.ask(question, token=server.token, **{"as": "ruth"})["answer"]
    for options in ({}, {"token": server.token}, {"token": server.token, "as": "mei"}):
        refused = server.ask(question, **options)
        assert (refused["status"], refused["answer"]) == ("refused", REFUSAL)
        assert refused["citations"] == []
        assert "severance.md" not in server.uris(question, **options)
    assert server.post("/v1/answer", question, **{"as": "ruth"}).status_code == 401


@pytest.mark.ray
def test_a_stream_ends_in_the_answer_that_a_whole_request_gets(server: Server) -> None:
    body = {"question": TENT, "stream": True}
    with (
        httpx.Client(timeout=60) as client,
        connect_sse(client, "POST", f"{server.url}/v1/answer", json=body) as source,
    ):
        events = [(event.event, json.loads(event.data)) for event in source.iter_sse()]
    whole = server.ask(TENT)
    assert events[-1][0] == "final"
    assert "".join(data["text"] for name, data in events if name == "delta") == whole["answer"]
    for key in ("status", "answer", "citations", "generation", "degraded"):
        assert events[-1][1][key] == whole[key]


@pytest.mark.ray
def test_the_server_and_this_process_give_the_same_answer(server: Server) -> None:
    with open_engine(server.world.settings) as engine:
        found = search_json(asyncio.run(engine.search(request(TENT, deadline_s=60))))
        answer = answer_json(asyncio.run(engine.answer_whole(request(TENT, deadline_s=60))))
    served = server.post("/v1/search", TENT).json()
    assert [r["chunk_id"] for r in served["results"]] == [r["chunk_id"] for r in found["results"]]
    remote = server.ask(TENT)
    for key in ("status", "answer", "citations", "generation", "degraded"):
        assert remote[key] == answer[key]
    assert [s["stage"] for s in remote["trace"]] == [s["stage"] for s in answer["trace"]]


@pytest.mark.ray
def test_an_explanation_crosses_the_deployments_whole(server: Server) -> None:
    """Times differ, and scores of a model that works in bfloat16 may in the last digit."""
    phrase = "60 days"
    with open_engine(server.world.settings) as engine:
        asked = request(TENT, deadline_s=60)
        here = explanation_json(asyncio.run(engine.explain(asked, [(phrase,)])))
    there = server.post("/v1/explain", TENT, expect=[phrase]).json()
    here = json.loads(json.dumps(here))
    assert there.keys() == here.keys()
    for key in ("prompt", "expected"):
        assert there[key] == here[key]
    assert there["passages"].keys() == here["passages"].keys()
    for mine, its in zip(here["stages"], there["stages"], strict=True):
        for key in ("stage", "count", "left_out"):
            assert its[key] == mine[key], mine["stage"]
        assert [i["chunk_id"] for i in its["items"]] == [i["chunk_id"] for i in mine["items"]], (
            mine["stage"]
        )


@pytest.mark.ray
def test_an_updated_document_is_served_in_its_new_state_at_once(server: Server) -> None:
    server.world.add("opening.md", "The shop in Oslo opens at nine.", header="Opening hours")
    assert "opening.md" in server.uris("When does the shop in Oslo open?")
    server.world.add("opening.md", "The shop in Oslo opens at ten.", header="Opening hours")
    response = server.post("/v1/search", "When does the shop in Oslo open?")
    texts = [r["text"] for r in response.json()["results"] if r["uri"] == "opening.md"]
    assert texts == ["The shop in Oslo opens at ten."]
    server.world.remove("opening.md")
    assert "opening.md" not in server.uris("When does the shop in Oslo open?")


@pytest.mark.ray
def test_errors_of_the_caller_cross_the_deployments_as_themselves(server: Server) -> None:
    for options, status, code in (
        ({"question": " "}, 422, "question_error"),
        ({"question": "x", "filter": "a = = b"}, 400, "filter_error"),
        ({"question": "x", "top_k": 0}, 422, "invalid_request"),
    ):
        response = httpx.post(f"{server.url}/v1/search", json=options, timeout=60)
        assert (response.status_code, response.json()["error"]["code"]) == (status, code)
        assert "Traceback" not in response.text


@pytest.mark.ray
def test_health_readiness_metrics_and_the_api_page_are_there(server: Server) -> None:
    assert httpx.get(f"{server.url}/healthz").json() == {"status": "ok"}
    ready = httpx.get(f"{server.url}/readyz", timeout=30).json()
    assert ready["status"] == "ready"
    assert set(ready["parts"]) == {
        "catalog",
        "text",
        "vectors",
        "embedder",
        "reranker",
        "generator",
    }
    server.ask(TENT)
    metrics = httpx.get(f"{server.url}/metrics").text
    assert 'quarry_stage_seconds_count{stage="rerank"}' in metrics
    assert "POST /v1/answer" in httpx.get(f"{server.url}/docs").text


@pytest.mark.ray
def test_the_address_file_is_for_this_user_only(server: Server) -> None:
    path = server.world.settings.data_dir / "server.json"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert json.loads(path.read_text(encoding="utf-8"))["url"] == server.url
