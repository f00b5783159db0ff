"""The certificates that a store's server is held against.

Both clients take a file that is not there, or is no certificate, for a server that is not there. So
it is looked into first.
"""

from __future__ import annotations

import ssl
from pathlib import Path

from quarry.errors import ConfigError


def ca_file(path: Path | None, key: str) -> str:
    """The file as the clients take it, "" for none; `key` is the setting that names it.

    Raises ConfigError.
    """
    return str(path) if trusted(path, key) else ""


def trusted(path: Path | None, key: str) -> ssl.SSLContext | None:
    """Trust in the file's certificates alone. Raises ConfigError."""
    if path is None:
        return None
    try:
        return ssl.create_default_context(cafile=path)
    except OSError as error:  # ssl.SSLError is one
        raise ConfigError(f"{path} cannot be read as PEM certificates; check {key}.") from error
