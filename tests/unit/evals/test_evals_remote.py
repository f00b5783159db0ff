"""Evaluating a server: what is sent, what comes back, and what its errors become."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from quarry.cli.evaluating import open_remote, remote_token
from quarry.cli.main import run
from quarry.errors import UsageError
from quarry.settings import Settings
from tests.unit.evals.evals_world import answer_json, case, search_json


@pytest.fixture
def server():
    """A server that answers every search and answer alike, and refuses questions that say so."""
    seen = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            seen.append((self.path, self.headers.get("Authorization"), body))
            if body["question"] == "refuse":
                self._send(429, {"error": {"code": "overloaded", "message": "too much"}})
            else:
                found = search_json("it is this") if "search" in self.path else answer_json()
                self._send(200, found)

        def _send(self, status, body):
            payload = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(payload)))
            self.end_headers()
            self.wfile.write(payload)

        def log_message(self, *_):
            pass

    http = HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=http.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{http.server_port}", seen
    http.shutdown()
    http.server_close()


def evaluated(tmp_path, url, capsys, *cases, token="secret"):
    path = tmp_path / "set.jsonl"
    path.write_text("".join(c.model_dump_json(exclude_defaults=True) + "\n" for c in cases))
    (tmp_path / "token").write_text(token + "\n")
    arguments = ["eval", str(path), "--url", url, "--json", "--token-file", str(tmp_path / "token")]
    assert run(arguments) == 0
    return json.loads(capsys.readouterr().out)


def test_a_server_is_asked_by_its_api_and_what_cannot_be_known_is_said(
    tmp_path, monkeypatch, server, capsys
):
    monkeypatch.chdir(tmp_path)
    url, seen = server
    told = evaluated(tmp_path, url, capsys, case(person="mei", must=["this"]))
    assert told["runs"][0]["figures"]["measures"]["pass_rate"] == 1.0
    assert any("over HTTP" in note for note in told["notes"])
    (search, token, body), (answer, _, _) = seen
    assert (search, answer, token) == ("/v1/search", "/v1/answer", "Bearer secret")
    assert body["as"] == "mei" and body["top_k"] == 50


def test_an_error_of_the_server_fails_the_case_and_not_the_run(
    tmp_path, monkeypatch, server, capsys
):
    monkeypatch.chdir(tmp_path)
    url, _ = server
    told = evaluated(tmp_path, url, capsys, case("a", question="refuse"), case("b"))
    assert told["runs"][0]["figures"]["failed"] == 1
    assert [each["passed"] for each in told["runs"][0]["cases"]] == [False, True]


async def test_without_a_token_none_is_sent(server):
    url, seen = server
    with open_remote(url + "/", "") as system:
        await system.ask("search", {"question": "q"})
        assert system.inside is None
    assert seen[0][1] is None


def test_a_token_file_that_cannot_be_read_is_an_error(tmp_path):
    with pytest.raises(UsageError, match="token file"):
        remote_token(Settings(data_dir=tmp_path), "http://x", tmp_path / "none")
    assert remote_token(Settings(data_dir=tmp_path), "http://x", None) == ""
