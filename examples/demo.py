"""The whole path on real documents: ingest, serve, ask. Run it with `make demo`.

Everything it writes is in `.demo/` of the checkout; a second run reads only what has changed. With
--exit it stops the server at the end and fails if an answer is not what the documents say.
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from quarry.cli.output import print_line
from quarry.cli.render import answer_lines
from quarry.cli.server import RunningServer
from quarry.stores.folder import SERVER_FILE

REPO = Path(__file__).resolve().parent.parent
DEMO = REPO / ".demo"
CONFIG = DEMO / "quarry.yaml"
DATA = DEMO / "data"
SAMPLES = REPO.parent / "shared" / "samples"
SETTINGS = """\
# Written by examples/demo.py. Every key: quarry init.
data_dir: data
sources:
  default:
    default_acl: [public]
serve:
  port: 0  # a free one
access:
  users_file: ../examples/robotics-handbook/users.yaml
"""
START_S = 300
"""Seconds that the server may take to come up on a slow machine."""
SOME_FAILED = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    text: str
    why: str
    user: str = ""
    status: str = "answered"
    says: str = ""
    """Pattern that the answer must have."""
    never: str = ""
    """Pattern that it must not have."""


SEVERANCE = "How many weeks of base salary does severance give for each year of service?"
QUESTIONS = (
    Question(
        text="I used my tent on one trip. Can I still return it for a refund?",
        why="the page has a refund for unused items and store credit for used ones",
        says="store credit",
        never="full refund",
    ),
    Question(
        text="What does fault E-1042 mean?",
        why="one code among sixty that differ by a digit",
        user="jonas",
        says="overcurrent",
        never="encoder",
    ),
    Question(
        text="Do you ship to Iceland?",
        why="no page says so, though other countries are named",
        status="refused",
        never="Norway|Switzerland",
    ),
    Question(
        text=SEVERANCE,
        why="ruth may read the severance terms",
        user="ruth",
        says="3 weeks",
    ),
    Question(
        text=SEVERANCE,
        why="mei may not, and cannot tell that they exist",
        user="mei",
        status="refused",
        never="3 weeks|39 weeks",
    ),
)

MORE = "Who may clear fault E-1043?"
"""For the command that is printed last; people go on from what works."""


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Ingest the examples, serve them, ask questions.")
    parser.add_argument("--exit", action="store_true", help="stop when the questions are answered")
    stay = not parser.parse_args(arguments).exit
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        return demo(stay=stay)
    except KeyboardInterrupt:
        return 130


def demo(*, stay: bool) -> int:
    DEMO.mkdir(exist_ok=True)
    CONFIG.write_text(SETTINGS, encoding="utf-8")
    for source, folder in corpora():
        with timed(f"ingest {source}"):
            code = ingest(source, folder)
        if code not in (0, SOME_FAILED):
            return code
    with served() as server:
        wrong = [question for question in QUESTIONS if not ask(server, question)]
        for question in wrong:
            print_line(f"NOT AS EXPECTED: {question.text} (as {question.user or 'nobody'})")
        if stay:
            stay_up(server)
    return 1 if wrong else 0


def corpora() -> Iterator[tuple[str, Path]]:
    yield "shop", REPO / "examples" / "outdoor-shop" / "documents"
    yield "handbook", REPO / "examples" / "robotics-handbook" / "documents"
    if SAMPLES.is_dir():
        yield "samples", SAMPLES


def ingest(source: str, folder: Path) -> int:
    return quarry("ingest", os.path.relpath(folder), "--source", source).wait()


def quarry(*arguments: str, **options: Any) -> subprocess.Popen[bytes]:
    """Starts one command as a person would, after showing it."""
    print_line(f"$ {as_typed(*arguments)}")
    sys.stdout.flush()
    command = [sys.executable, "-m", "quarry.cli.main", "--config", str(CONFIG), *arguments]
    return subprocess.Popen(command, **options)  # noqa: S603 - our own command line


def as_typed(*arguments: str) -> str:
    """A command that does the same when it is copied into a shell in this folder."""
    here = Path(sys.executable).parent
    found = shutil.which("quarry")
    is_on_path = found is not None and Path(found).parent == here
    program = "quarry" if is_on_path else os.path.relpath(here / "quarry")
    return shlex.join([program, "--config", os.path.relpath(CONFIG), *arguments])


@contextmanager
def served() -> Iterator[RunningServer]:
    """A server of the demo folder, stopped at the end whatever happens."""
    (DATA / SERVER_FILE).unlink(missing_ok=True)
    log = (DEMO / "serve.log").open("wb")
    # A session of its own: Ctrl-C reaches this program alone, which then stops the server in order.
    process = quarry("serve", stdout=log, stderr=log, start_new_session=True)
    try:
        with timed("start of the server"):
            server = wait_for(process)
        yield server
    finally:
        stop(process)
        log.close()


def wait_for(process: subprocess.Popen[bytes]) -> RunningServer:
    deadline = time.monotonic() + START_S
    while process.poll() is None and time.monotonic() < deadline:
        server = RunningServer.find(DATA)
        if server is not None:
            return server
        time.sleep(0.2)
    log = (DEMO / "serve.log").read_text(encoding="utf-8", errors="replace")
    sys.exit(f"The server did not come up; the end of .demo/serve.log is:\n{log[-2000:]}")


def stop(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is not None:
        return
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(60)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def ask(server: RunningServer, question: Question) -> bool:
    """Prints one answer; tells whether it is what the documents say."""
    person = ["--as", question.user] if question.user else []
    print_line(f"\n# {question.why}\n$ {as_typed('ask', question.text, *person)}\n")
    body = {"question": question.text, **({"as": question.user} if question.user else {})}
    began = time.monotonic()
    answer = server.post("/v1/answer", body, deadline_s=60)
    for line in answer_lines(answer, time.monotonic() - began):
        print_line(line)
    sys.stdout.flush()
    return as_expected(question, answer)


def as_expected(question: Question, answer: dict[str, Any]) -> bool:
    refused = question.status == "refused"
    text = str(answer["answer"])
    return (
        answer["status"] == question.status
        and bool(answer["citations"]) is not refused
        and bool(re.search(question.says, text, re.IGNORECASE))
        and not (question.never and re.search(question.never, text, re.IGNORECASE))
    )


def stay_up(server: RunningServer) -> None:
    print_line(f"\nServing at {server.url} (API page: {server.url}/docs). Ctrl-C stops it.")
    print_line(f"Ask more in another terminal:\n$ {as_typed('ask', MORE, '--as', 'jonas')}")
    sys.stdout.flush()
    signal.pause()


@contextmanager
def timed(what: str) -> Iterator[None]:
    began = time.monotonic()
    yield
    print_line(f"[{what}: {time.monotonic() - began:.1f} s]\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
