"""The data folder of the embedded profile."""

from __future__ import annotations

from pathlib import Path

from quarry.errors import StoreError

SERVER_FILE = "server.json"
"""Address and local token of the server of a data folder."""
SERVER_LOCK = "server.lock"
"""Held by that server as long as it lives."""


def make_data_dir(folder: Path) -> None:
    """Makes it if it is not there, for its owner only: it holds the text of every document.

    Raises StoreError.
    """
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise StoreError(f"The folder {folder} cannot be made: {reason}.") from error
