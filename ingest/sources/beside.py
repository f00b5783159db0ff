"""Metadata files beside documents: `_meta.yaml` of a folder, and the sidecar `NAME.meta.yaml`."""

from __future__ import annotations

import os
from pathlib import Path

from ingest.metadata import MAX_YAML_CHARS, read_mapping
from quarry.errors import ParseError
from quarry.records import DocState

FOLDER_FILE = "_meta.yaml"
SIDECAR_SUFFIX = ".meta.yaml"


def is_metadata(name: str) -> bool:
    return name == FOLDER_FILE or name.endswith(SIDECAR_SUFFIX)


def sidecar(path: Path) -> Path:
    return path.with_name(path.name + SIDECAR_SUFFIX)


def tags(file: Path) -> tuple[str, ...]:
    """What changes when the file does; nothing if it is not there."""
    try:
        status = file.stat()
    except OSError:
        return (file.name, "unreadable") if os.path.lexists(file) else ()
    return (file.name, f"{status.st_size}-{status.st_mtime_ns}")


def load(file: Path) -> dict[str, object]:
    """What a metadata file says. Raises ParseError (failed): it might be an ACL."""
    try:
        if not file.is_file():  # reading a pipe would wait for ever
            raise ValueError("is not a file.")
        if file.stat().st_size > 4 * MAX_YAML_CHARS:
            raise ValueError(f"is longer than {MAX_YAML_CHARS} characters.")
        return read_mapping(file.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise unreadable(error, file.name) from None
    except UnicodeDecodeError:
        raise ParseError(DocState.FAILED, f"{file.name} beside it is not UTF-8 text.") from None
    except ValueError as error:
        raise ParseError(DocState.FAILED, f"{file.name} beside it {error}") from None


def unreadable(error: OSError, name: str = "It") -> ParseError:
    why = error.strerror or type(error).__name__
    return ParseError(DocState.FAILED, f"{name} cannot be read: {why}.")
