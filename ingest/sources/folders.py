"""What stands in a folder: files by the names of their addresses, and metadata files gone astray.

A metadata file is astray if it is that of no file: left behind by a renaming, or called otherwise
than it must be. It may say who reads a document, so what it seems to be meant for is closed by it
unless something nearer to the text says that.
"""

from __future__ import annotations

import os
import re
import stat
import unicodedata
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from ingest.acl import field_name
from quarry.errors import SourceNotFound

FOLDER_FILE = "_meta.yaml"
SIDECAR_SUFFIX = ".meta.yaml"
_ALMOST_METADATA = re.compile(r"(?:_meta|(?P<file>.+)\.meta)\.ya?ml(?:\.txt)?", re.S)
"""Names by which metadata files are meant, as `_folded` spells them."""
_EXTENSION = re.compile(r"\.[^\W\d]\w*")
"""What ends the name of a file; the `.2` of `v1.2` and the `. Smith` of `Dr. Smith` do not."""


@dataclass(frozen=True, slots=True)
class Names:
    """What a folder holds, but for hidden names and the metadata of its files."""

    found: Mapping[str, Path]
    """By the names that addresses have."""
    twins: tuple[Path, ...]
    """Those whose name another one has already."""
    strays: frozenset[str]
    """Names among those found that are metadata files gone astray."""


@dataclass(frozen=True, slots=True)
class Around:
    """What is said around the files of a folder, from the outside in."""

    tags: tuple[str, ...] = ()
    """Change marks of the folder files that count there."""
    strays: tuple[Path, ...] = ()
    """Metadata files gone astray that may be meant for all that is in it."""
    named: Mapping[str, tuple[Path, ...]] = field(default_factory=dict)
    """Others, by the names of the files and folders in it that they may be meant for."""

    def within(self, folder: Path, names: Names | None) -> Around:
        """Around the files of a folder in this one; `names` is None if it cannot be listed."""
        marks = tags(folder / FOLDER_FILE)
        marks = (*self.tags, folder.name, *marks) if marks else self.tags
        outer = (*self.strays, *self.named.get(spelled(folder.name), ()))
        if names is None or not names.strays:
            return Around(marks, outer)
        whole = (names.found[name] for name in sorted(names.strays) if meant_for(name) == "")
        return Around(marks, (*outer, *whole), _named(names))

    def of(self, name: str) -> tuple[Path, ...]:
        """Those gone astray that may be meant for a file of this name."""
        return (*self.strays, *self.named.get(spelled(name), ()))


def meant_for(name: str) -> str | None:
    """The name of the file of which this one seems to be the metadata, as `_folded` spells it;
    empty: of its folder; None: it is no metadata file by any spelling."""
    match = _ALMOST_METADATA.fullmatch(_folded(name))
    return (match["file"] or "").strip() if match else None


def tags(file: Path) -> tuple[str, ...]:
    """What changes when the file does; nothing if it is not there."""
    try:
        status = file.stat()
    except OSError:
        return (file.name, "unreadable") if os.path.lexists(file) else ()
    return (file.name, f"{status.st_size}-{status.st_mtime_ns}")


def names_of(folder: Path) -> Names:
    """Raises SourceNotFound if it cannot be listed."""
    found: dict[str, Path] = {}
    twins: list[Path] = []
    for path in _children(folder):
        name = spelled(path.name)
        if name.startswith("."):
            continue
        other = found.setdefault(name, path)
        if other is not path and path.name == name:  # by this one the address is found
            found[name] = path
            twins.append(other)
        elif other is not path:
            twins.append(path)
    owned = {name for name in found if _has_its_file(name, found)}
    return Names(
        found={name: path for name, path in found.items() if name not in owned},
        twins=tuple(path for path in twins if spelled(path.name) not in owned),
        strays=frozenset(n for n in found if n not in owned and _is_astray(n, found)),
    )


def spelled(name: str) -> str:
    """A name as addresses have it: NFC, and bytes that are no UTF-8 written out."""
    text = name.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    return unicodedata.normalize("NFC", text)


def _folded(name: str) -> str:
    """A name for comparing: one of other capitals, or with `ss` for `ß`, is the same."""
    name = unicodedata.normalize("NFD", field_name(name)).casefold()
    return unicodedata.normalize("NFC", name)


def _has_its_file(name: str, found: Mapping[str, Path]) -> bool:
    """Whether it is a metadata file, and that of its folder or of a file that is listed."""
    if not name.endswith(SIDECAR_SUFFIX) and name != FOLDER_FILE:
        return False
    if _is(found[name], stat.S_ISDIR):  # what is in it would be hidden with it
        return False
    file = found.get(name.removesuffix(SIDECAR_SUFFIX))
    return name == FOLDER_FILE or (file is not None and _is(file, stat.S_ISREG))


def _is_astray(name: str, found: Mapping[str, Path]) -> bool:
    """Of one that has no file. A folder says nothing about others, whatever it is called."""
    return meant_for(name) is not None and not _is(found[name], stat.S_ISDIR)


def _is(path: Path, kind: Callable[[int], bool]) -> bool:
    """Of what it leads to; never if it leads nowhere or cannot be looked at."""
    try:
        return kind(path.stat().st_mode)
    except OSError:
        return False


def _named(names: Names) -> Mapping[str, tuple[Path, ...]]:
    """What each one of a folder that is astray may be meant for, if not for the whole folder."""
    likely = _Likely({n: path for n, path in names.found.items() if n not in names.strays})
    named: defaultdict[str, tuple[Path, ...]] = defaultdict(tuple)
    for stray in sorted(names.strays):
        for name in likely.names(meant_for(stray) or ""):
            named[name] += (names.found[stray],)
    return dict(named)


class _Likely:
    """What is in a folder, by what may be left of its names in that of a metadata file."""

    def __init__(self, found: Mapping[str, Path]) -> None:
        self._found = found
        self._by_name: defaultdict[str, list[str]] = defaultdict(list)
        for name in found:
            self._by_name[_folded(name)].append(name)
        self._sorted = sorted(self._by_name)

    def names(self, meant: str) -> list[str]:
        """The file of this very name, else all that is called so or begins so: what was `pay.md`
        may be `pay.pdf` or `pay-2026.md` now, whether or not a `pay.md.bak` was left behind.

        A name without an extension is that of a folder as well as that of a file that has one.
        """
        extension = _EXTENSION.fullmatch(PurePosixPath(meant).suffix)
        exact = self._by_name.get(meant, [])
        if extension and any(_is(self._found[name], stat.S_ISREG) for name in exact):
            return exact
        return list(self._beginning(meant.removesuffix(extension[0]) if extension else meant))

    def _beginning(self, stem: str) -> Iterator[str]:
        for place in range(bisect_left(self._sorted, stem), len(self._sorted)):
            name = self._sorted[place]
            if not stem or not name.startswith(stem):
                return
            if not name[len(stem) :][:1].isalnum():
                yield from self._by_name[name]


def _children(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir())
    except OSError as error:
        raise closed(folder, error) from None


def closed(folder: Path, error: OSError) -> SourceNotFound:
    why = error.strerror or type(error).__name__
    return SourceNotFound(
        f"The folder {folder} cannot be listed ({why}); mend that and run it again."
    )
