"""A `quarry serve` of this data folder that is already running, and how to ask it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from filelock import FileLock, Timeout

from quarry.errors import (
    FingerprintMismatch,
    QuarryError,
    StoreUnavailable,
    kinds_of_one_message,
)
from quarry.served_settings import unlike
from quarry.settings import Settings
from quarry.stores.folder import SERVER_FILE, SERVER_LOCK

if TYPE_CHECKING:
    import httpx

_HEALTH_S = 2.0
"""Seconds within which a server that is well answers /healthz."""
_SLACK_S = 5.0
"""Seconds on top of the request's own deadline before we stop waiting."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningServer:
    """Address and local token of a server; the token may name any principal."""

    url: str
    token: str = field(repr=False)
    settings: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Digests of the settings that it was started with (`quarry.served_settings`)."""

    @classmethod
    def find(cls, data_dir: Path) -> RunningServer | None:
        """The server of this data folder, if one runs and is well.

        A file that a killed server left behind is not believed: another program may listen at its
        address by now, and must get neither the question nor the token.
        """
        if not _is_held(data_dir / SERVER_LOCK):
            return None
        try:
            raw = json.loads((data_dir / SERVER_FILE).read_text(encoding="utf-8"))
            settings = {str(key): str(mark) for key, mark in raw.get("settings", {}).items()}
            server = cls(url=str(raw["url"]), token=str(raw["token"]), settings=settings)
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return None  # none, or one that is just being written: in process works as well
        return server if server._is_well() else None

    def other_settings(self, settings: Settings) -> list[str]:
        """Keys that shape answers and have other values there.

        Raises FingerprintMismatch for those that name another index: it would answer from that.
        """
        index, others = unlike(settings, self.settings)
        if index:
            raise FingerprintMismatch(
                f"The server at {self.url} was started with another {', '.join(index)}; restart "
                "quarry serve, or set that back."
            )
        return others

    def post(self, path: str, body: Mapping[str, Any], *, deadline_s: float) -> dict[str, Any]:
        """One JSON answer. Raises the error that the server names, as if it were raised here."""
        import httpx

        try:
            response = httpx.post(
                self.url + path,
                json=body,
                headers={"Authorization": f"Bearer {self.token}"} if self.token else {},
                timeout=deadline_s + _SLACK_S,
            )
        except httpx.HTTPError as error:
            raise StoreUnavailable(
                f"The server at {self.url} stopped answering ({type(error).__name__}); try again."
            ) from error
        if response.status_code >= 400:
            raise _error_from(response)
        answer: dict[str, Any] = response.json()
        return answer

    def _is_well(self) -> bool:
        import httpx

        try:
            return httpx.get(f"{self.url}/healthz", timeout=_HEALTH_S).status_code == 200
        except (httpx.HTTPError, httpx.InvalidURL):
            return False


def _is_held(path: Path) -> bool:
    """Whether a process holds the lock; the system frees it however that process ends."""
    if not path.exists():
        return False
    lock = FileLock(path)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        return True
    except OSError:  # not ours to open: somebody else's server, whose token we could not read
        return False
    lock.release()
    return False


def _error_from(response: httpx.Response) -> QuarryError:
    """The error of our own tree that the body names: the exit code is the same as in process."""
    try:
        body = response.json()["error"]
        code, message = str(body["code"]), str(body["message"])
    except (ValueError, KeyError, TypeError):
        return StoreUnavailable(f"The server answered {response.status_code} without saying why.")
    for kind in kinds_of_one_message():
        if kind.__new__(kind).code == code:
            return kind(message)
    return QuarryError(message)
