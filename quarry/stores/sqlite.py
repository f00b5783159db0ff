"""The one SQLite file of the embedded profile: connections, transactions and their errors.

The tables are in `sqlite_catalog.py`, `sqlite_text.py` and `sqlite_registry.py`; each generation
has its own, named `TABLE_GENERATION`. The file is in WAL mode: readers never wait, one writes at a
time, and several processes may share it on a local disk.
"""

from __future__ import annotations

import json
import re
import sqlite3
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from tenacity import Retrying, retry_if_exception, stop_after_delay, wait_random_exponential

from quarry.errors import StoreError, StoreLost, StoreUnavailable
from quarry.stores.folder import make_data_dir

FILE_NAME: Final = "quarry.sqlite"
BUSY_SECONDS: Final = 30.0
"""How long a writer waits for another process's transaction."""
_GENERATION = re.compile(r"[a-z][a-z0-9_]{0,31}")


class Database:
    """Connections to one file, one a user at a time; safe to use from several threads."""

    def __init__(self, path: Path, *, busy_seconds: float = BUSY_SECONDS) -> None:
        self.path = path
        self._busy_seconds = busy_seconds
        self._idle: list[sqlite3.Connection] = []
        self._guard = threading.Lock()
        self._writing = threading.Lock()
        self._closed = False

    @contextmanager
    def read(self) -> Iterator[sqlite3.Connection]:
        """A connection outside a transaction: each statement sees one state of the file."""
        with translated(self.path):
            connection = self._take()
            try:
                yield connection
            finally:
                self._give_back(connection)

    @contextmanager
    def write(self) -> Iterator[sqlite3.Connection]:
        """One transaction: all of it is stored on return, none of it after an exception."""
        with self._writing, self.read() as connection:
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise

    def close(self) -> None:
        with self._guard:
            self._closed = True
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def _take(self) -> sqlite3.Connection:
        with self._guard:
            if self._closed:
                raise StoreError("The store was closed; open it again.")
            if self._idle:
                return self._idle.pop()
        return self._connect()

    def _give_back(self, connection: sqlite3.Connection) -> None:
        with self._guard:
            if not self._closed:
                self._idle.append(connection)
                return
        connection.close()

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(
            self.path,
            timeout=self._busy_seconds,
            isolation_level=None,
            check_same_thread=False,
            cached_statements=256,
        )
        self._turn_to_wal(connection)
        # FULL: neither a killed process nor a power cut loses a commit.
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA temp_store = MEMORY")
        return connection

    def _turn_to_wal(self, connection: sqlite3.Connection) -> None:
        """A new file: of two connections that do this at once SQLite turns one away without the
        wait of `timeout`, since each would wait for the other."""
        retrying = Retrying(
            stop=stop_after_delay(self._busy_seconds),
            wait=wait_random_exponential(multiplier=0.01, max=0.2),
            retry=retry_if_exception(_is_busy),
            reraise=True,
        )
        retrying(connection.execute, "PRAGMA journal_mode = WAL")


def open_database(data_dir: Path) -> Database:
    """The database of a data folder, which is made if it is not there. Raises StoreError."""
    make_data_dir(data_dir)
    return Database(data_dir / FILE_NAME)


@contextmanager
def translated(path: Path) -> Iterator[None]:
    """Turns every sqlite3 error into one of ours."""
    try:
        yield
    except sqlite3.Error as error:
        raise translation(error, path) from error
    except UnicodeEncodeError as error:
        raise StoreError("A name or an address is not valid Unicode; rename it.") from error


def _is_busy(error: BaseException) -> bool:
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    return code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


def translation(error: sqlite3.Error, path: Path) -> StoreError:
    """Our error for an error of sqlite3, by its primary result code."""
    if _is_busy(error):
        return StoreUnavailable(f"Another process keeps {path} locked; try again when it is done.")
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code == sqlite3.SQLITE_FULL:
        return StoreError(f"The disk that holds {path} is full; make room and run it again.")
    if code in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM):
        return StoreError(f"{path} cannot be written; check the folder and its rights.")
    if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
        return StoreError(f"{path} is damaged; restore it, or delete data_dir and ingest again.")
    if code == sqlite3.SQLITE_IOERR:
        return StoreUnavailable(f"Reading or writing {path} failed; check the disk.")
    if str(error).startswith("no such table"):  # a plain SQLITE_ERROR but for its text
        return StoreLost.of(f"Tables in {path} are")
    name = getattr(error, "sqlite_errorname", type(error).__name__)  # its text may quote a question
    return StoreError(f"SQLite failed on {path} with {name}; run: quarry doctor")


def table(name: str, generation: str) -> str:
    """The name of a generation's table; safe to put into a statement."""
    if not _GENERATION.fullmatch(generation):
        raise StoreError(f"'{generation}' is no name of a generation; use g1, g2 and so on.")
    return f"{name}_{generation}"


def many(values: Iterable[str]) -> str:
    """One parameter for `IN (SELECT value FROM json_each(?))`, however many values."""
    return json.dumps(list(values))
