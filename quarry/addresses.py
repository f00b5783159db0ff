"""Addresses as they may be shown: in messages, logs and what `quarry doctor` says."""

from __future__ import annotations

from urllib.parse import urlsplit, urlunsplit


def shown(url: str) -> str:
    """The address without the user, password and query that may be in it."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return "that is set"
    host = parts.netloc.rpartition("@")[2]
    return urlunsplit((parts.scheme, host, parts.path, "", ""))
