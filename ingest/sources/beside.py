"""Metadata files beside documents: `_meta.yaml` of a folder, and the sidecar `NAME.meta.yaml`."""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Iterable
from pathlib import Path

from ingest.acl import field_name, with_acl
from ingest.metadata import MAX_YAML_CHARS, read_mapping
from quarry.errors import ParseError, UsageError
from quarry.records import DocState

FOLDER_FILE = "_meta.yaml"
SIDECAR_SUFFIX = ".meta.yaml"
_ALMOST_METADATA = re.compile(r"(?:_meta|(?P<file>.+)\.meta)\.ya?ml(?:\.txt)?", re.S)
"""Names by which metadata files are meant, as `field_name` spells them."""


def is_metadata(name: str) -> bool:
    return name == FOLDER_FILE or name.endswith(SIDECAR_SUFFIX)


def meant_for(name: str) -> str | None:
    """The name of the file of which this one seems to be the metadata, in lower case; empty: of its
    folder; None: it is no metadata file by any spelling."""
    match = _ALMOST_METADATA.fullmatch(field_name(name))
    return (match["file"] or "") if match else None


def sidecar(path: Path) -> Path:
    """Where the metadata of a file are or would be, however its name is spelled (NFC, NFD)."""
    spellings = (path.name, *(unicodedata.normalize(form, path.name) for form in ("NFC", "NFD")))
    files = [path.with_name(name + SIDECAR_SUFFIX) for name in dict.fromkeys(spellings)]
    return next((file for file in files if os.path.lexists(file)), files[0])


def tags(file: Path) -> tuple[str, ...]:
    """What changes when the file does; nothing if it is not there."""
    try:
        status = file.stat()
    except OSError:
        return (file.name, "unreadable") if os.path.lexists(file) else ()
    return (file.name, f"{status.st_size}-{status.st_mtime_ns}")


def load(file: Path) -> dict[str, object]:
    """What a metadata file says; one whose `acl` has another name says that it is closed.

    Raises ParseError (failed): it might be an ACL.
    """
    try:
        if not file.is_file():  # reading a pipe would wait for ever
            raise ValueError("is not a file.")
        if file.stat().st_size > 4 * MAX_YAML_CHARS:
            raise ValueError(f"is longer than {MAX_YAML_CHARS} characters.")
        return with_acl(read_mapping(file.read_text(encoding="utf-8-sig")))
    except OSError as error:
        raise unreadable(error, file.name) from None
    except UnicodeDecodeError:
        raise ParseError(DocState.FAILED, f"{file.name} beside it is not UTF-8 text.") from None
    except ValueError as error:
        raise ParseError(DocState.FAILED, f"{file.name} beside it {error}") from None


def unreadable(error: OSError, name: str = "It") -> ParseError:
    why = error.strerror or type(error).__name__
    return ParseError(DocState.FAILED, f"{name} cannot be read: {why}.")


def check_above(target: Path, root: Path) -> None:
    """Nothing above what is ingested is applied to it, so it must not say who may read it.

    `root` is where `target` leads; a `_meta.yaml` or sidecar of its own with an ACL would win over
    any above. Raises UsageError naming the file above that holds an ACL or cannot be read.
    """
    base = root.parent if root.is_file() else root
    own = [base / FOLDER_FILE, sidecar(root)] if root.is_file() else [base / FOLDER_FILE]
    if any(may_hold_acl(file) for file in own):
        return
    for folder in _above(target, base):
        for file in _folder_files(folder):
            if may_hold_acl(file):
                raise UsageError(
                    f"{file} says who may read what is below it; ingest {folder}, or put an acl "
                    f"into {base / FOLDER_FILE}."
                )


def _above(target: Path, base: Path) -> Iterable[Path]:
    """Folders above, by the way that was given and by where it leads, the nearest first."""
    given = Path(os.path.abspath(target)).parents  # noqa: PTH100 – links must stay in it
    return dict.fromkeys(folder for folder in (*base.parents, *given) if folder != base)


def _folder_files(folder: Path) -> list[Path]:
    """The metadata file of a folder, and those that are meant as such and called otherwise."""
    try:
        names = {name for name in os.listdir(folder) if meant_for(name) == ""}  # noqa: PTH208 – names
    except OSError:  # one may go through it and not list it
        names = set()
    return [folder / name for name in sorted({*names, FOLDER_FILE})]


def may_hold_acl(file: Path) -> bool:
    if not os.path.lexists(file):
        return False
    try:
        return "acl" in load(file)
    except ParseError:
        return True
