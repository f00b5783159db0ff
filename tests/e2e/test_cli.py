"""The command `quarry` as people run it: real processes, real stores, a fake embedder for speed."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from quarry.cli.main import run
from quarry.cli.server import RunningServer
from quarry.settings import load_settings
from quarry.stores.milvus_lite import writer_lock

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1200)]

SETTINGS = """\
sources: {default: {default_acl: [public]}}
embedder: {model: fake}
reranker: {kind: none}
ingest: {parse_workers: 1}
access: {users_file: users.yaml}
"""
PAGES = {
    "returns.md": "# Returns\n\nUsed tents come back within 60 days for store credit.\n",
    "shipping.md": "# Shipping\n\nParcels to Norway take five business days.\n",
    "secret.md": "---\nacl: [hr]\n---\n# Severance\n\nSeverance is three weeks a year.\n",
    "broken.pdf": "this is no PDF",
}
START_S = 600


@pytest.fixture(scope="module")
def indexed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace that one ingest has filled; one of its files is broken. Tests only read it."""
    folder = tmp_path_factory.mktemp("indexed")
    make_workspace(folder)
    done = quarry(folder, "ingest", "docs", "--json")
    assert done.returncode == 3, done.stderr
    (folder / "ingest.json").write_text(done.stdout)
    return folder


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    return make_workspace(tmp_path)


@pytest.fixture
def copied(indexed: Path, tmp_path: Path) -> Path:
    """The filled workspace for a test that changes it."""
    shutil.copytree(indexed, tmp_path / "copy", symlinks=True)
    return tmp_path / "copy"


def make_workspace(folder: Path) -> Path:
    (folder / "quarry.yaml").write_text(SETTINGS)
    (folder / "users.yaml").write_text("users: {ruth: {groups: [hr]}}\n")
    (folder / "docs").mkdir()
    for name, text in PAGES.items():
        (folder / "docs" / name).write_text(text)
    return folder


def quarry(folder: Path, *arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command(*arguments),
        cwd=folder,
        env=environment(**environ),
        capture_output=True,
        text=True,
        timeout=START_S,
        check=False,
    )


@pytest.fixture
def here(
    indexed: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., Any]:
    """Runs a command in this process, where it needs no process of its own; gives its JSON."""
    monkeypatch.chdir(indexed)
    for name in [name for name in os.environ if name.startswith("QUARRY_")]:
        monkeypatch.delenv(name)

    def call(*arguments: str) -> Any:
        capsys.readouterr()
        assert run([*arguments, "--json"]) == 0, capsys.readouterr().err
        return json.loads(capsys.readouterr().out)

    return call


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "quarry.cli.main", *arguments]


def environment(**more: str) -> dict[str, str]:
    mine = {name: value for name, value in os.environ.items() if not name.startswith("QUARRY_")}
    return {**mine, **more}


def refused(done: subprocess.CompletedProcess[str], said: str) -> None:
    """Exit code 2, one plain sentence, no traceback, and nothing on standard output."""
    assert done.returncode == 2, done.stderr
    assert said in done.stderr
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    assert done.stderr.rstrip()[-1] in ".?"
    assert "Traceback" not in done.stderr


# ---------------------------------------------------------------------------- what goes well


def test_an_ingest_ends_with_counts_and_names_the_file_that_failed(indexed: Path) -> None:
    summary = json.loads((indexed / "ingest.json").read_text())
    documents = summary["documents"]
    assert (documents["listed"], documents["indexed"], documents["failed"]) == (4, 3, 1)
    assert documents["by_state"] == {"corrupt": 1, "indexed": 3}
    assert [failure["uri"] for failure in summary["failures"]] == ["broken.pdf"]
    listed = json.loads(quarry(indexed, "documents", "--json").stdout)["documents"]
    assert {d["uri"]: d["state"] for d in listed} == {
        "broken.pdf": "corrupt",
        "returns.md": "indexed",
        "secret.md": "indexed",
        "shipping.md": "indexed",
    }
    assert all(d["chunk_count"] > 0 for d in listed if d["state"] == "indexed")
    assert all(d["reason"] for d in listed if d["state"] != "indexed")


def test_a_search_finds_words_and_an_answer_cites_its_source(here: Callable[..., Any]) -> None:
    found = here("search", "tents", "--mode", "lexical")
    assert found["results"][0]["uri"] == "returns.md"
    answer = here("ask", "How long do used tents have to come back?")
    assert (answer["status"], answer["citations"][0]["uri"]) == ("answered", "returns.md")


def test_a_restricted_document_is_there_for_its_readers_alone(here: Callable[..., Any]) -> None:
    def uris(*arguments: str) -> set[str]:
        return {result["uri"] for result in here("search", "severance", *arguments)["results"]}

    assert "secret.md" in uris("--as", "ruth")
    assert "secret.md" in uris("--groups", "hr")
    assert "secret.md" not in uris()
    assert "secret.md" not in uris("--as", "zoe")
    assert "secret.md" not in uris("--as", "ruth", "--groups", "sales")


def test_a_refusal_is_a_done_answer_without_sources(indexed: Path) -> None:
    done = quarry(indexed, "ask", "Quelle heure est-il à Tokyo ?", "--filter", "source = nowhere")
    assert done.returncode == 0
    assert "Sources" not in done.stdout
    assert "Refused in" in done.stdout


def test_running_it_again_reads_only_what_has_changed(copied: Path) -> None:
    again = json.loads(quarry(copied, "ingest", "docs", "--source", "docs", "--json").stdout)
    assert (again["documents"]["unchanged"], again["documents"]["indexed"]) == (4, 0)
    deleted = quarry(copied, "delete", "shipping.md", "--json")
    assert json.loads(deleted.stdout)["documents"]["deleted"] == 1
    found = json.loads(quarry(copied, "search", "Norway", "--json").stdout)
    assert "shipping.md" not in {result["uri"] for result in found["results"]}
    revisions = json.loads(quarry(copied, "history", "shipping.md", "--json").stdout)["revisions"]
    assert revisions[-1]["state"] == "deleted"
    verified = quarry(copied, "verify", "--json")
    assert (verified.returncode, json.loads(verified.stdout)["clean"]) == (0, True)


def test_a_collection_is_scored_in_an_index_of_its_own(workspace: Path) -> None:
    beir = workspace / "tiny"
    (beir / "qrels").mkdir(parents=True)
    texts = {"d1": "Tents and sleeping bags.", "d2": "Stoves and fuel.", "d3": "Ropes and knots."}
    (beir / "corpus.jsonl").write_text(
        "".join(json.dumps({"_id": i, "title": "", "text": t}) + "\n" for i, t in texts.items())
    )
    (beir / "queries.jsonl").write_text('{"_id": "q1", "text": "stoves"}\n')
    (beir / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq1\td2\t1\n")
    done = quarry(workspace, "eval", "beir", "tiny", "--modes", "lexical,hybrid+rerank", "--json")
    assert done.returncode == 0, done.stderr
    modes = json.loads(done.stdout)["modes"]
    assert list(modes) == ["lexical", "hybrid+rerank"]
    lexical = modes["lexical"]
    assert (lexical["nDCG@10"], lexical["R@100"], lexical["RR@10"]) == (1.0, 1.0, 1.0)
    assert (lexical["queries"], lexical["failed"]) == (1, 0)
    assert json.loads(quarry(workspace, "documents", "--json").stdout) == {"documents": []}
    refused_after_notes(quarry(workspace, "eval", "beir", "docs"), "corpus.jsonl")


# ------------------------------------------------------------------------- what bad input gets


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("nowhere/page.md", "There is nothing at nowhere/page.md"),
        ("file:///nowhere", "There is nothing at file:///nowhere"),
        ("s3://bucket", "s3:// are not read"),
    ],
)
def test_a_path_that_is_not_there(workspace: Path, target: str, said: str) -> None:
    refused(quarry(workspace, "ingest", "docs", target), said)
    assert not (workspace / ".quarry").exists()


def test_an_unknown_configuration_key(workspace: Path) -> None:
    (workspace / "quarry.yaml").write_text("serve: {prot: 1}\n")
    refused(quarry(workspace, "status"), "unknown key 'serve.prot'; did you mean 'serve.port'?")


def test_a_mistyped_variable(workspace: Path) -> None:
    refused(quarry(workspace, "status", QUARRY_SERV__PORT="1"), "use QUARRY_SERVE__PORT")


def test_no_settings_file(tmp_path: Path) -> None:
    refused(quarry(tmp_path, "status"), "run 'quarry init'")


def test_a_port_in_use(workspace: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        refused(quarry(workspace, "serve", "--port", port), f"Port {port}")


def test_another_process_that_holds_the_data_folder(workspace: Path) -> None:
    with writer_lock(load_settings(workspace / "quarry.yaml", {})):
        done = quarry(workspace, "ingest", "docs")
    refused_after_notes(done, f"is being written by process {os.getpid()}")


@pytest.mark.parametrize(
    "arguments", [("ask", "tents?"), ("search", "tents"), ("ingest", "docs", "--source", "docs")]
)
def test_an_index_that_another_embedder_built(copied: Path, arguments: tuple[str, ...]) -> None:
    (copied / "docs" / "new.md").write_text("# New\n\nSomething to read.\n")
    done = quarry(copied, *arguments, QUARRY_EMBEDDER__MAX_TOKENS="250")
    refused_after_notes(done, "was built with another embedder.max_tokens")


def refused_after_notes(done: subprocess.CompletedProcess[str], said: str) -> None:
    """As `refused`, where lines of progress may come first."""
    *_, last = done.stderr.splitlines()
    assert done.returncode == 2, done.stderr
    assert said in last
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


@pytest.mark.parametrize(("question", "said"), [("", "empty"), ("why " * 600, "longer than 2000")])
@pytest.mark.parametrize("kind", ["ask", "search"])
def test_a_question_that_is_empty_or_too_long(
    indexed: Path, kind: str, question: str, said: str
) -> None:
    refused(quarry(indexed, kind, question), said)


# ---------------------------------------------------------------------- signals and the server


def test_an_interrupt_ends_quietly_and_the_next_run_goes_on(workspace: Path) -> None:
    for number in range(300):
        (workspace / "docs" / f"page{number}.md").write_text(f"# Page {number}\n\nText.\n")
    with subprocess.Popen(
        command("ingest", "docs"),
        cwd=workspace,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        assert process.stderr is not None
        line = process.stderr.readline()
        while line and not line.startswith("starting"):
            line = process.stderr.readline()
        time.sleep(1)
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does
        printed = process.stderr.read()
        assert process.wait(START_S) == 130
    assert "Traceback" not in printed
    done = quarry(workspace, "ingest", "docs", "--json")
    assert json.loads(done.stdout)["documents"]["listed"] == 304
    listed = json.loads(quarry(workspace, "documents", "--json").stdout)["documents"]
    assert len(listed) == 304


def test_a_running_server_gives_the_same_results_as_the_process_itself(copied: Path) -> None:
    def outcome(*arguments: str) -> Any:
        done = quarry(copied, *arguments, "--json")
        printed = json.loads(done.stdout) if done.stdout else done.stderr
        if isinstance(printed, dict):
            for key in ("trace", "timings_ms"):
                printed.pop(key, None)
        return done.returncode, printed

    questions = [
        ("search", "tents", "--top-k", "2"),
        ("search", "severance", "--as", "ruth"),
        ("search", "severance"),
        ("ask", "How long do used tents have to come back?"),
        ("ask", "tents", "--filter", "source = nowhere"),
        ("ask", "tents", "--filter", "source ="),
        ("ask", ""),
    ]
    alone = [outcome(*question) for question in questions]
    with served(copied) as server:
        assert json.loads(quarry(copied, "status", "--json").stdout)["server"] == server.url
        assert [outcome(*question) for question in questions] == alone
        said = "was started with another embedder.max_tokens; restart quarry serve"
        refused(quarry(copied, "ask", "tents", QUARRY_EMBEDDER__MAX_TOKENS="250"), said)
        done = quarry(copied, "search", "tents", QUARRY_RETRIEVAL__RRF_K="9")
        assert (done.returncode, done.stderr.count("\n")) == (0, 1)
        assert "was started with another retrieval.rrf_k; restart quarry serve" in done.stderr


@contextmanager
def served(folder: Path) -> Iterator[RunningServer]:
    with (folder / "serve.log").open("wb") as log:
        process = subprocess.Popen(
            command("serve", "--port", "0"),
            cwd=folder,
            env=environment(QUARRY_TELEMETRY__LOG_FORMAT="json"),
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
        try:
            yield wait_for(folder, process)
        finally:
            printed = len((folder / "serve.log").read_text())
            process.send_signal(signal.SIGINT)
            assert process.wait(60) == 0
    assert RunningServer.find(folder / ".quarry") is None
    assert "Traceback" not in (folder / "serve.log").read_text()
    log = (folder / "serve.log").read_text()
    (last,) = [event for event in events(log[printed:]) if "part" not in event]
    assert last["event"] == "stopped"  # a line of ours, and none of Ray's
    assert {event["part"] for event in events(log) if "part" in event} >= {"gateway"}


def events(log: str) -> list[dict[str, Any]]:
    """Lines of the log; each is JSON, save the one for the person at the terminal."""
    lines = [line for line in log.splitlines() if not line.startswith("Serving at ")]
    return [json.loads(line) for line in lines]


def wait_for(folder: Path, process: subprocess.Popen[bytes]) -> RunningServer:
    deadline = time.monotonic() + START_S
    while process.poll() is None and time.monotonic() < deadline:
        server = RunningServer.find(folder / ".quarry")
        if server is not None:
            return server
        time.sleep(0.5)
    pytest.fail(f"the server did not come up: {(folder / 'serve.log').read_text()[-2000:]}")
