"""Where documents come from: a file or a folder on a disk that this machine can read."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import unquote, urlsplit

from ingest.sources.beside import check_above
from ingest.sources.local import LeftOut, LocalSource
from quarry.errors import SourceNotFound, UsageError
from quarry.ids import slug
from quarry.ports import Source

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")


def open_source(target: str, *, name: str | None = None) -> Source:
    """The source at a path or a `file://` address, called `name` or by the slug of its last part.

    Raises SourceNotFound if nothing is there, UsageError for an address of another kind, a name
    that has no letter or digit, and a folder above that says who may read what is below it.
    """
    path = _path(target)
    if not path.exists():
        raise SourceNotFound(f"There is nothing at {target}; check the path.")
    root = path.resolve()
    label = slug(name if name is not None else root.stem if root.is_file() else root.name)
    if not label:
        raise UsageError(
            "A source needs a name with a letter or a digit in it; pass --source NAME."
        )
    check_above(path, root)
    return LocalSource(label, root)


def _path(target: str) -> Path:
    if not target.strip():
        raise UsageError("Name a file or a folder to read.")
    if not _SCHEME.match(target):
        return Path(target).expanduser()
    parts = urlsplit(target)
    if parts.scheme.lower() != "file" or parts.netloc not in ("", "localhost"):
        raise UsageError(
            f"Addresses of the kind {parts.scheme}:// are not read; give a path or a file:// one."
        )
    return Path(unquote(parts.path))


__all__ = ["LeftOut", "LocalSource", "open_source"]
