"""Metadata files beside documents: `_meta.yaml` of a folder, and the sidecar `NAME.meta.yaml`."""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Iterable
from pathlib import Path

from ingest.acl import with_acl
from ingest.metadata import MAX_YAML_CHARS, read_mapping
from ingest.sources.folders import FOLDER_FILE, SIDECAR_SUFFIX, Around, names_of
from quarry.errors import ParseError, SourceNotFound, UsageError
from quarry.records import DocState


def sidecar(path: Path) -> Path:
    """Where the metadata of a file are or would be, however its name is spelled (NFC, NFD)."""
    spellings = (path.name, *(unicodedata.normalize(form, path.name) for form in ("NFC", "NFD")))
    files = [path.with_name(name + SIDECAR_SUFFIX) for name in dict.fromkeys(spellings)]
    return next((file for file in files if os.path.lexists(file)), files[0])


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
    for folder, inner in _above(target, base):
        for file in _said_above(folder, inner):
            if may_hold_acl(file):
                raise UsageError(
                    f"{file} says who may read what is below it; ingest {folder}, or put an acl "
                    f"into {base / FOLDER_FILE}."
                )


def _above(target: Path, base: Path) -> Iterable[tuple[Path, str]]:
    """Folders above, by the way that was given and by where it leads, the nearest first; each with
    the name by which the way goes on from it."""
    given = Path(os.path.abspath(target))  # noqa: PTH100 – links must stay in it
    steps = (step for way in (base, given) for step in (way, *way.parents) if step.name)
    pairs = dict.fromkeys((step.parent, step.name) for step in steps)
    return [pair for pair in pairs if pair[0].resolve() != base]  # that applies what is in it


def _said_above(folder: Path, inner: str) -> list[Path]:
    """The metadata file of a folder, and those gone astray that may be meant for it or for what is
    called `inner` in it."""
    own = folder / FOLDER_FILE
    try:
        around = Around().within(folder, names_of(folder))
    except SourceNotFound:  # one may go through it and not list it
        return [own, sidecar(folder / inner)]
    return [own, *around.of(inner)]


def may_hold_acl(file: Path) -> bool:
    if not os.path.lexists(file):
        return False
    try:
        return "acl" in load(file)
    except ParseError:
        return True
