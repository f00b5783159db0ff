"""The file of users as a server follows it: what it takes away ends within seconds."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path

import structlog

from quarry.access.principals import NOBODY_KNOWN, Users, load_users
from quarry.errors import QuarryError

_log = structlog.get_logger(__name__)

LOOK_S = 1.0
"""Seconds between two looks at the file."""


class FollowedUsers:
    """The users that the file names now. While it is missing or wrong, nobody is known: a person
    whose rights are being taken away must not keep them because of a slip of the pen."""

    def __init__(self, path: Path, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._path = path
        self._clock = clock
        self._guard = threading.Lock()
        self._seen: tuple[int, int, int] | None = None
        self._looked_at = clock()
        self._users = load_users(path)
        self._seen = self._stamp()

    def __call__(self) -> Users:
        with self._guard:
            now = self._clock()
            if now - self._looked_at >= LOOK_S:
                self._looked_at = now
                self._look()
            return self._users

    def _look(self) -> None:
        stamp = self._stamp()
        if stamp == self._seen and stamp is not None:
            return
        # Whatever happens while it is read: nobody is known until it is right.
        self._users, self._seen = NOBODY_KNOWN, None
        try:
            self._users = load_users(self._path)
        except QuarryError as error:
            _log.error("users_file_not_read", error=type(error).__name__, reason=str(error))
            return
        self._seen = stamp
        _log.info("users_file_read", users=len(self._users))

    def _stamp(self) -> tuple[int, int, int] | None:
        try:
            found = self._path.stat()
        except OSError:
            return None
        return found.st_mtime_ns, found.st_size, found.st_ino
