"""Finding a running server of a data folder, and hearing its errors as our own."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any, ClassVar

import pytest
from filelock import FileLock

from quarry.cli.check import Verdict
from quarry.cli.checks import settings_checks
from quarry.cli.server import RunningServer
from quarry.errors import (
    FilterError,
    FingerprintMismatch,
    QuarryError,
    QuestionError,
    StoreUnavailable,
)
from quarry.served_settings import _INDEX, marks
from quarry.settings import Settings


class Script(BaseHTTPRequestHandler):
    """Answers every request with what the test wrote down, and keeps what was asked."""

    status: ClassVar[int] = 200
    body: ClassVar[bytes] = b"{}"
    seen: ClassVar[list[tuple[str, str, Any]]] = []

    def do_GET(self) -> None:
        self._send(200, b"ok")

    def do_POST(self) -> None:
        sent = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.seen.append((self.path, self.headers["Authorization"], sent))
        self._send(self.status, self.body)

    def _send(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def address() -> Iterator[str]:
    Script.seen.clear()
    with HTTPServer(("127.0.0.1", 0), Script) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.fixture(autouse=True)
def lock(tmp_path: Path) -> Iterator[FileLock]:
    """What the server of the folder holds."""
    with FileLock(tmp_path / "server.lock") as held:
        yield held


def written(folder: Path, text: str) -> Path:
    (folder / "server.json").write_text(text)
    return folder


def described(url: str) -> str:
    return json.dumps({"url": url, "token": "local"})


def answering(monkeypatch: pytest.MonkeyPatch, status: int, body: object) -> None:
    monkeypatch.setattr(Script, "status", status)
    monkeypatch.setattr(Script, "body", json.dumps(body).encode())


def test_a_server_that_is_well_is_found_and_asked_with_its_token(
    address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = RunningServer.find(written(tmp_path, described(address)))
    assert server is not None
    answering(monkeypatch, 200, {"results": []})
    assert server.post("/v1/search", {"question": "q"}, deadline_s=5) == {"results": []}
    assert Script.seen == [("/v1/search", "Bearer local", {"question": "q"})]


def test_the_file_of_a_killed_server_is_not_believed(
    address: str, tmp_path: Path, lock: FileLock
) -> None:
    lock.release()
    assert RunningServer.find(written(tmp_path, described(address))) is None
    (tmp_path / "server.lock").unlink()
    assert RunningServer.find(tmp_path) is None


@pytest.mark.parametrize("text", ["", "{", "[]", '{"url": "http://127.0.0.1:1"}'])
def test_a_file_that_says_nothing_useful_means_no_server(text: str, tmp_path: Path) -> None:
    assert RunningServer.find(written(tmp_path, text)) is None


def test_a_server_that_is_gone_means_no_server(tmp_path: Path, address: str) -> None:
    assert RunningServer.find(tmp_path) is None
    assert RunningServer.find(written(tmp_path, described("http://127.0.0.1:1"))) is None


@pytest.mark.parametrize(
    ("status", "code", "kind"),
    [
        (422, "question_error", QuestionError),
        (400, "filter_error", FilterError),
        (503, "store_unavailable", StoreUnavailable),
        (500, "something_new", QuarryError),
    ],
)
def test_an_error_of_the_server_is_the_error_that_it_would_be_in_process(
    address: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    status: int,
    code: str,
    kind: type[QuarryError],
) -> None:
    server = RunningServer.find(written(tmp_path, described(address)))
    assert server is not None
    answering(monkeypatch, status, {"error": {"code": code, "message": "Say it plainly."}})
    with pytest.raises(QuarryError, match="Say it plainly") as caught:
        server.post("/v1/search", {}, deadline_s=5)
    assert type(caught.value) is kind


def test_an_error_without_words_still_is_one_sentence(
    address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = RunningServer.find(written(tmp_path, described(address)))
    assert server is not None
    answering(monkeypatch, 502, "bad gateway")
    with pytest.raises(StoreUnavailable, match="502"):
        server.post("/v1/search", {}, deadline_s=5)


def test_the_token_is_not_in_what_a_log_would_show() -> None:
    assert "hunter2" not in repr(RunningServer(url="u", token="hunter2"))


# ---------------------------------------------------------------- settings it was started with


def server_of(folder: Path, url: str, started_with: Settings) -> RunningServer:
    facts = {"url": url, "token": "local", "settings": marks(started_with)}
    server = RunningServer.find(written(folder, json.dumps(facts)))
    assert server is not None
    return server


def with_(**sections: Any) -> Settings:
    return Settings.model_validate(sections)


@pytest.mark.parametrize(
    ("sections", "key"),
    [
        ({"embedder": {"model": "fake"}}, "embedder.model"),
        ({"embedder": {"max_tokens": 250}}, "embedder.max_tokens"),
        ({"chunking": {"max_tokens": 99}}, "chunking.max_tokens"),
        ({"stores": {"milvus": {"collection_prefix": "other"}}}, "stores.milvus.collection_prefix"),
    ],
)
def test_a_server_of_another_index_is_not_asked(
    address: str, tmp_path: Path, sections: dict[str, Any], key: str
) -> None:
    server = server_of(tmp_path, address, Settings())
    with pytest.raises(FingerprintMismatch, match=rf"another {key}; restart quarry serve"):
        server.other_settings(with_(**sections))


def test_other_settings_of_a_server_are_named_and_those_that_change_nothing_are_not(
    address: str, tmp_path: Path
) -> None:
    server = server_of(tmp_path, address, Settings())
    assert server.other_settings(Settings()) == []
    assert server.other_settings(with_(serve={"port": 1}, telemetry={"log_level": "debug"})) == []
    changed = with_(retrieval={"top_k": 3, "select": {"mmr": 0.5}}, reranker={"kind": "none"})
    assert set(server.other_settings(changed)) == {
        "retrieval.top_k",
        "retrieval.select.mmr",
        "reranker.kind",
    }


def test_what_a_server_publishes_of_its_settings_shows_no_value_and_has_no_secret() -> None:
    openai = {"kind": "openai", "model": "m", "base_url": "http://u:hunter2@host/v1"}
    told = marks(with_(generator={**openai, "api_key": "hunter3"}))
    assert "hunter" not in json.dumps(told)
    assert "generator.base_url" in told
    assert told == marks(with_(generator={**openai, "api_key": "another"}))
    assert not [key for key in told if key.endswith(("api_key", "token"))]


@pytest.mark.parametrize(
    ("sections", "verdict", "named"),
    [
        ({}, Verdict.OK, "quarry serve runs at"),
        ({"retrieval": {"top_k": 3}}, Verdict.NOTE, "started with another retrieval.top_k"),
        ({"embedder": {"model": "fake"}}, Verdict.MISSING, "started with another embedder.model"),
    ],
)
def test_doctor_names_a_server_that_must_be_restarted(
    address: str, tmp_path: Path, sections: dict[str, Any], verdict: Verdict, named: str
) -> None:
    server_of(tmp_path, address, Settings())
    found = settings_checks(with_(data_dir=tmp_path, **sections))
    (check,) = [check for check in found if (check.group, check.name) == ("ports", "serve")]
    assert check.verdict is verdict
    assert named in check.detail


def test_every_key_that_names_an_index_is_compared() -> None:
    assert set(marks(Settings())) >= _INDEX


def test_a_server_that_says_nothing_of_its_settings_is_asked(address: str, tmp_path: Path) -> None:
    server = RunningServer.find(written(tmp_path, described(address)))
    assert server is not None
    assert server.other_settings(with_(embedder={"model": "fake"})) == []
