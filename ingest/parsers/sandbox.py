"""Parsing in processes that can be killed: a file that hangs, swells or crashes harms only itself.

The processes are started as programs of their own, not forked, so this works inside Ray workers and
in threads; they see neither the network nor the environment's secrets.
"""

from __future__ import annotations

import os
import queue
import subprocess
import sys
import time
import weakref
from collections.abc import Iterator
from multiprocessing import Pipe
from typing import Any

import structlog

from quarry.errors import ParseError
from quarry.records import DocState, ParsedDocument, SourceItem
from quarry.settings import IngestSettings, Settings

_MAX_FILES = 500
"""Files that one process parses; libraries leak."""
_START_S = 120.0
"""Seconds that a process may take to start on a busy machine."""
_PASSED_ON = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "LD_LIBRARY_PATH", "SYSTEMROOT")
"""Environment that a parser gets to see."""
_ENTRY = "ingest.parsers:parse_item"


class ParserPool:
    """A `Parser` over `settings.ingest.parse_workers` processes (0: one a core), for any threads.

    Processes start when they are first needed and are used again. `entry` names the function that
    they parse with.
    """

    def __init__(self, settings: Settings, *, entry: str = _ENTRY) -> None:
        self._settings = settings.ingest
        self._entry = entry
        self._slots: queue.LifoQueue[_Process | None] = queue.LifoQueue()
        self._running: set[_Process] = set()
        for _ in range(settings.ingest.parse_workers or os.cpu_count() or 1):
            self._slots.put(None)
        self._finalizer = weakref.finalize(self, _kill_all, self._running)

    def parse(self, content: bytes, item: SourceItem) -> Iterator[ParsedDocument]:
        """The documents of one address, in batches as they are parsed; waits for a free process.

        Raises ParseError: what the parser raises, timed_out after `parse_timeout_s` seconds of
        waiting, too_large beyond `parse_memory_mb`, failed if the process crashes. What was
        yielded before stays good.
        """
        slot = self._slots.get()
        whole = False
        process: _Process | None = slot
        try:
            if process is None:
                process = self._started()
                process.wait_until_ready()
            yield from process.parse(content, item, self._settings)
            whole = True
        except ParseError as error:
            whole = process is not None and not isinstance(error, _Lost)
            raise
        finally:
            if process is not None and (not whole or process.files >= _MAX_FILES):
                process.kill()
                self._running.discard(process)
                process = None
            self._slots.put(process)

    def close(self) -> None:
        """Ends all processes."""
        self._finalizer()

    def _started(self) -> _Process:
        process = _Process(self._settings, self._entry)
        self._running.add(process)
        return process


class _Lost(ParseError):
    """The process is of no more use."""


class _Process:
    def __init__(self, settings: IngestSettings, entry: str) -> None:
        ours, theirs = Pipe()
        self._connection = ours
        self.files = 0
        with theirs:
            self._program = subprocess.Popen(  # noqa: S603 – our own program
                [sys.executable, "-m", "ingest.parsers.worker", str(theirs.fileno())],
                env=_environment(),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                process_group=0,
            )
        ours.send((settings, entry))

    def wait_until_ready(self) -> None:
        """Starting takes time of its own, which no file is charged with. Raises ParseError."""
        try:
            if not self._connection.poll(_START_S):
                raise _Lost(DocState.FAILED, "Its parser did not start in time; run it again.")
            self._connection.recv()
        except (EOFError, ConnectionError):
            raise _Lost(
                DocState.FAILED, f"Its parser could not be started ({self._ending()})."
            ) from None

    def parse(
        self, content: bytes, item: SourceItem, settings: IngestSettings
    ) -> Iterator[ParsedDocument]:
        self.files += 1
        left = settings.parse_timeout_s
        try:
            self._connection.send((content, item))
            while True:
                started = time.monotonic()
                if not self._connection.poll(left):
                    raise _Lost(
                        DocState.TIMED_OUT,
                        f"It took longer to parse than {settings.parse_timeout_s:g} seconds.",
                    )
                message = self._connection.recv()
                left = max(left - (time.monotonic() - started), 0.0)
                if message is None:
                    return
                yield from _documents(message, item)
        except (EOFError, ConnectionError):
            raise _Lost(DocState.FAILED, f"Its parser crashed ({self._ending()}).") from None

    def kill(self) -> None:
        self._connection.close()
        self._program.kill()
        self._program.wait()

    def _ending(self) -> str:
        self._program.kill()
        code = self._program.wait()
        return f"signal {-code}" if code < 0 else f"exit code {code}"


def _documents(message: Any, item: SourceItem) -> list[ParsedDocument]:
    """The documents of a batch. Raises ParseError for the messages that end a file badly."""
    if isinstance(message, list):
        return message
    if len(message) == 2:
        state, reason = message
        raise ParseError(state, reason)
    kind, place, _ = message
    structlog.get_logger(__name__).error(
        "parser fault", address=item.address, error=kind, place=place
    )
    raise ParseError(DocState.FAILED, f"Its parser ran into a fault of the program ({kind}).")


def _environment() -> dict[str, str]:
    kept = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
    paths = os.pathsep.join(path for path in sys.path if path)
    return kept | {"PYTHONPATH": paths, "OMP_NUM_THREADS": "1", "PYTHONUTF8": "1"}


def _kill_all(running: set[_Process]) -> None:
    while running:
        running.pop().kill()


__all__ = ["ParserPool"]
