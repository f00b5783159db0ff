"""`quarry serve` as people run it, with vLLM and a real small model: it answers, streams, cancels,
cites and refuses.

The model has 135 million parameters: what it says is not tested, only that it is held to the
contract of answers.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest
import yaml
from httpx_sse import connect_sse

from quarry.access.principals import token_hash
from quarry.cli.server import RunningServer
from quarry.text import REFUSAL
from tests.vllm.conftest import cpu_settings

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

START_S = 600
PAGES = {
    "hours.md": "# Opening hours\n\nThe shop in Oslo opens at nine and closes at six.\n",
    "returns.md": "# Returns\n\nUsed tents come back within 60 days for store credit only.\n",
    "severance.md": "---\nacl: [hr]\n---\n# Severance\n\nSeverance is three weeks of salary.\n",
}
HOURS = "When does the shop in Oslo open?"


@dataclass
class Server:
    url: str
    pid: int

    def ask(self, question: str, *, token: str = "", **options: Any) -> dict[str, Any]:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        response = httpx.post(
            f"{self.url}/v1/answer",
            json={"question": question, **options},
            headers=headers,
            timeout=120,
        )
        assert response.status_code == 200, response.text
        answer: dict[str, Any] = response.json()
        return answer

    def metrics(self) -> str:
        return httpx.get(f"{self.url}/metrics", timeout=30).text


def quarry(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "quarry.cli.main", *arguments]


@pytest.fixture(scope="module")
def folder(model: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("served")
    (folder / "docs").mkdir()
    for name, text in PAGES.items():
        (folder / "docs" / name).write_text(text, encoding="utf-8")
    users = {"users": {"ruth": {"groups": ["hr"], "token_sha256": token_hash("ruths-token")}}}
    (folder / "users.yaml").write_text(yaml.safe_dump(users), encoding="utf-8")
    generator = cpu_settings(model, max_tokens=1500).model_dump(mode="json", exclude={"api_key"})
    settings = {
        "sources": {"default": {"default_acl": ["public"]}},
        "generator": generator,
        "serve": {"port": 0, "deadline_s": 120},
        "ingest": {"parse_workers": 1},
        "access": {"users_file": "users.yaml"},
    }
    (folder / "quarry.yaml").write_text(yaml.safe_dump(settings), encoding="utf-8")
    done = subprocess.run(
        quarry("ingest", "docs"),
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[Server]:
    with (folder / "serve.log").open("wb") as log:
        process = subprocess.Popen(quarry("serve"), cwd=folder, stdout=log, stderr=log)
    try:
        found = _started(folder, process)
        below = psutil.Process(process.pid).children(recursive=True)
        yield Server(found.url, process.pid)
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(60)
    assert process.returncode == 0
    _, alive = psutil.wait_procs(below, timeout=30)
    assert alive == [], "the engine's processes end with the server"
    log_text = (folder / "serve.log").read_text(encoding="utf-8")
    assert "Oslo" not in log_text, "no question and no document in the log"
    assert "Traceback" not in log_text


def _started(folder: Path, process: subprocess.Popen[bytes]) -> RunningServer:
    end = time.monotonic() + START_S
    while time.monotonic() < end and process.poll() is None:
        server = RunningServer.find(folder / ".quarry")
        if server is not None:
            return server
        time.sleep(0.5)
    pytest.fail(f"the server did not come up: {(folder / 'serve.log').read_text()[-3000:]}")


def test_it_is_ready(server: Server) -> None:
    ready = httpx.get(f"{server.url}/readyz", timeout=60)
    assert ready.json()["parts"]["generator"] == "ok"


def test_it_answers_with_citations_that_exist(server: Server) -> None:
    answer = server.ask(HOURS)
    assert answer["status"] == "answered", answer
    assert answer["degraded"] == []
    cited = {citation["label"] for citation in answer["citations"]}
    assert cited and all(f"[{label}]" in answer["answer"] for label in cited)
    assert "hours.md" in {citation["uri"] for citation in answer["citations"]}
    for citation in answer["citations"]:
        assert citation["quote"] in PAGES[citation["uri"]]
    written = next(stage for stage in answer["trace"] if stage["stage"] == "generate")
    assert written["count"] > 0
    assert written["detail"]["prompt_tokens"] > 100
    assert written["detail"]["stop"] in ("end", "length")


def test_it_streams_what_a_whole_request_gets(server: Server) -> None:
    events = _stream(server, HOURS)
    name, final = events[-1]
    assert name == "final"
    deltas = [data["text"] for kind, data in events if kind == "delta"]
    assert len(deltas) > 1
    whole = server.ask(HOURS)
    assert "".join(deltas) == final["answer"] == whole["answer"]
    assert final["citations"] == whole["citations"]


def test_it_refuses_without_asking_the_model_what_nobody_may_know(server: Server) -> None:
    question = "How many weeks of salary is severance?"
    only_severance = {"filter": "source = docs", "top_k": 1}
    known = server.ask(question, token="ruths-token", **only_severance)
    stages = [stage["stage"] for stage in known["trace"]]
    assert "generate" in stages
    refused = server.ask(question, filter="tenant = nowhere")
    assert (refused["status"], refused["answer"]) == ("refused", REFUSAL)
    assert refused["citations"] == []
    assert "generate" not in [stage["stage"] for stage in refused["trace"]]
    unseen = server.ask(question)
    assert "severance.md" not in {citation["uri"] for citation in unseen["citations"]}
    assert "three weeks" not in unseen["answer"]


def test_a_caller_who_goes_away_stops_the_engine(server: Server) -> None:
    engine = _engine_of(server)
    with (
        httpx.Client(timeout=120) as client,
        connect_sse(
            client,
            "POST",
            f"{server.url}/v1/answer",
            json={"question": "Tell a long story about the shop in Oslo.", "stream": True},
        ) as source,
    ):
        next(iter(source.iter_sse()))
    _until_idle(engine)
    assert server.ask(HOURS)["degraded"] == []


def test_several_ask_at_once(server: Server) -> None:
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(8) as pool:
        together = list(pool.map(server.ask, [HOURS] * 8))
    assert [(answer["status"], answer["degraded"]) for answer in together] == [("answered", [])] * 8


@pytest.mark.skipif(os.cpu_count() == 1, reason="one core is for all")
def test_the_cores_that_the_engine_computes_on_are_left_to_it(server: Server) -> None:
    worker = _engine_of(server)
    waiting, replica = worker.parents()[:2]
    for process in (waiting, replica):
        assert not set(process.cpu_affinity()) & set(worker.cpu_affinity()), process
    assert worker.nice() == replica.nice() == psutil.Process(server.pid).nice() < waiting.nice()


def _stream(server: Server, question: str) -> list[tuple[str, dict[str, Any]]]:
    body = {"question": question, "stream": True}
    with (
        httpx.Client(timeout=120) as client,
        connect_sse(client, "POST", f"{server.url}/v1/answer", json=body) as source,
    ):
        return [(event.event, json.loads(event.data)) for event in source.iter_sse()]


def _engine_of(server: Server) -> psutil.Process:
    """The process that computes: the one below the server with the most memory."""
    below = psutil.Process(server.pid).children(recursive=True)
    found: psutil.Process = max(below, key=lambda process: process.memory_info().rss)
    return found


def _until_idle(process: psutil.Process) -> None:
    """Waits until a process computes nothing for a second, which no answer of 200 tokens does."""
    end = time.monotonic() + 60
    while time.monotonic() < end:
        before = process.cpu_times().user
        time.sleep(1)
        if process.cpu_times().user - before < 0.2:
            return
    pytest.fail("the engine went on writing for nobody")
