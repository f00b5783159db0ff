"""Milvus Lite's owner: one process opens the data, all others reach it by an address.

The owner holds `data_dir/vectors.lock`, serves `data_dir/vectors.db` on a loopback port and
publishes the address in `data_dir/vectors.json`. Whoever wants vectors enters `vector_server`: the
first becomes the owner, the others stand by and take over when it ends, however it ends.
"""

from __future__ import annotations

import json
import os
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import structlog
from filelock import FileLock, Timeout

from quarry.errors import DataDirBusy, StoreError, StoreUnavailable
from quarry.settings import Settings
from quarry.stores.folder import make_data_dir

LOCK_NAME = "vectors.lock"
DATA_NAME = "vectors.db"
ADDRESS_NAME = "vectors.json"
WRITER_LOCK = "writer.lock"
WRITER_FILE = "writer.json"
START_S = 60.0
"""How long a new owner may take to open its data."""
POLL_S = 0.2

log = structlog.get_logger(__name__)


def uses_lite(settings: Settings) -> bool:
    return settings.stores.vectors == "milvus" and not settings.stores.milvus.uri


@contextmanager
def vector_server(settings: Settings) -> Iterator[None]:
    """While inside, this process or another one serves the vectors of `data_dir`.

    Does nothing for a Milvus server or for memory. Raises StoreError if the data cannot be opened.
    """
    if not uses_lite(settings):
        yield
        return
    make_data_dir(settings.data_dir)
    standby = _Standby(settings.data_dir)
    try:
        standby.start()
        yield
    finally:
        standby.stop()


def server_address(settings: Settings) -> str:
    """The address that the owner published. Raises StoreUnavailable if there is no owner."""
    address = _published(settings.data_dir)
    if not address:
        raise StoreUnavailable(
            f"No process serves the vectors in {settings.data_dir}; start them with vector_server."
        )
    return address


@contextmanager
def writer_lock(settings: Settings) -> Iterator[None]:
    """Held by the one process that ingests into `data_dir`. Raises DataDirBusy."""
    folder = settings.data_dir
    make_data_dir(folder)
    lock = FileLock(folder / WRITER_LOCK, thread_local=False)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        pid = _read(folder / WRITER_FILE).get("pid")
        who = f"process {pid}" if pid else "another process"
        raise DataDirBusy(
            f"The data folder {folder} is being written by {who}; wait for it, or stop it."
        ) from None
    try:
        _publish(folder / WRITER_FILE, {"pid": os.getpid()})
        yield
    finally:
        (folder / WRITER_FILE).unlink(missing_ok=True)
        lock.release()


class _Standby:
    """Owns the vectors if nobody does, else waits in the background to take over."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = FileLock(folder / LOCK_NAME, thread_local=False)
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._server: Any = None
        self._database: Any = None

    def start(self) -> None:
        """Returns once some process serves the vectors."""
        deadline = time.monotonic() + START_S
        while not self._take_over():
            if _published(self._folder):
                self._thread = threading.Thread(target=self._watch, daemon=True)
                self._thread.start()
                return
            if time.monotonic() > deadline:
                raise StoreUnavailable(
                    f"Another process holds {self._folder / LOCK_NAME} and serves nothing; stop it."
                )
            time.sleep(POLL_S)

    def stop(self) -> None:
        self._stop.set()
        if self._thread:
            self._thread.join()
        if self._server:
            (self._folder / ADDRESS_NAME).unlink(missing_ok=True)
            self._server.stop(grace=5).wait()
            self._database.close()
            self._lock.release()

    def _watch(self) -> None:
        while not self._stop.wait(POLL_S):
            try:
                if self._take_over():
                    return
            except StoreError:
                log.exception("vectors_not_taken_over", data_dir=str(self._folder))
                return

    def _take_over(self) -> bool:
        """Becomes the owner unless there is one. The lock ends with its process, even by a kill."""
        try:
            self._lock.acquire(timeout=0)
        except Timeout:
            return False
        try:
            (self._folder / ADDRESS_NAME).unlink(missing_ok=True)
            self._serve()
        except BaseException:
            self._lock.release()
            raise
        return True

    def _serve(self) -> None:
        from milvus_lite.adapter.grpc.server import start_server_in_thread
        from milvus_lite.exceptions import MilvusLiteError

        try:
            # One worker: Lite must not write twice at once, nor read while it flushes.
            server, database, port = start_server_in_thread(
                str(self._folder / DATA_NAME), "127.0.0.1", 0, max_workers=1
            )
            for name in database.list_collections():
                database.get_collection(name).load()
        except (MilvusLiteError, OSError, ValueError) as error:
            raise StoreError(
                f"The vectors in {self._folder / DATA_NAME} cannot be opened: {error}"
            ) from error
        self._server, self._database = server, database
        facts = {"address": f"http://127.0.0.1:{port}", "pid": os.getpid()}
        _publish(self._folder / ADDRESS_NAME, facts)
        log.debug("vectors_served", data_dir=str(self._folder), port=port)


def _published(folder: Path) -> str:
    return str(_read(folder / ADDRESS_NAME).get("address", ""))


def _read(path: Path) -> dict[str, Any]:
    try:
        facts = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return facts if isinstance(facts, dict) else {}


def _publish(path: Path, facts: dict[str, Any]) -> None:
    """Writes the file at once: readers see all of it or the one before."""
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        json.dump(facts, file)
    Path(name).replace(path)
