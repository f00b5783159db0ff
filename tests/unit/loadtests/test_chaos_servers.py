"""Starting a server that can be killed, without the server."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from loadtests.chaos import servers
from loadtests.chaos.servers import Milvus
from quarry.errors import QuarryError

LOGGED = """[2026/12/01 10:00:00.000] [INFO] ["all is well"]
[2026/12/01 10:00:01.000] [WARN] ["session not found"]
"""


class Silent(Milvus):
    """A process that runs and answers only after it was started `good` times."""

    good = 0
    starts = 0

    def _start(self) -> subprocess.Popen[bytes]:
        self.starts += 1
        command = [sys.executable, "-c", "import time; time.sleep(60)", "--data", str(self.folder)]
        return subprocess.Popen(command, start_new_session=True)

    def _answers(self) -> bool:
        return self.starts == self.good


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Silent]:
    monkeypatch.setattr(servers, "HUNG_S", 0.0)
    made = Silent(tmp_path / "milvus")
    yield made
    made.kill()


def test_a_server_that_runs_but_does_not_answer_is_killed_and_started_again(
    server: Silent,
) -> None:
    server.good = 2
    server.start()
    assert server.starts == 2
    assert len(servers.servers_in(server.folder)) == 1


def test_one_that_never_answers_shows_the_warnings_of_its_log(
    server: Silent, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(servers, "START_S", 0.0)
    log = server.folder / "logs" / "standalone-1.log"
    log.parent.mkdir(parents=True)
    log.write_text(LOGGED)
    with pytest.raises(QuarryError, match="session not found") as told:
        server.start()
    assert "all is well" not in str(told.value)
