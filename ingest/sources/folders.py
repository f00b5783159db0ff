"""What stands in a folder: files by the names of their addresses, and metadata files gone astray.

A metadata file is astray if it is that of no file: left behind by a renaming, or called otherwise
than it must be. It may say who reads a document, so what it seems to be meant for is closed by it
unless something nearer to the text says that.
"""

from __future__ import annotations

import unicodedata
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from ingest.acl import field_name
from ingest.sources.beside import FOLDER_FILE, SIDECAR_SUFFIX, is_metadata, meant_for, tags
from quarry.errors import SourceNotFound


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
        strays=frozenset(n for n in found if n not in owned and meant_for(n) is not None),
    )


def spelled(name: str) -> str:
    """A name as addresses have it: NFC, and bytes that are no UTF-8 written out."""
    text = name.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    return unicodedata.normalize("NFC", text)


def _has_its_file(name: str, found: Mapping[str, Path]) -> bool:
    """Whether it is a metadata file, and that of its folder or of a file that is listed."""
    if not is_metadata(name) or name == FOLDER_FILE:
        return name == FOLDER_FILE
    file = found.get(name.removesuffix(SIDECAR_SUFFIX))
    return file is not None and not file.is_dir()


def _named(names: Names) -> Mapping[str, tuple[Path, ...]]:
    """What each one of a folder that is astray may be meant for, if not for the whole folder."""
    likely = _Likely(name for name in names.found if name not in names.strays)
    named: defaultdict[str, tuple[Path, ...]] = defaultdict(tuple)
    for stray in sorted(names.strays):
        for name in likely.names(meant_for(stray) or ""):
            named[name] += (names.found[stray],)
    return dict(named)


class _Likely:
    """The names of a folder by what may be left of them in that of a metadata file."""

    def __init__(self, names: Iterable[str]) -> None:
        self._by_name: defaultdict[str, list[str]] = defaultdict(list)
        self._by_stem: defaultdict[str, list[str]] = defaultdict(list)
        for name in names:
            self._by_name[field_name(name)].append(name)
            self._by_stem[PurePosixPath(field_name(name)).stem].append(name)
        self._sorted = sorted(self._by_name)

    def names(self, meant: str) -> list[str]:
        """Those of this name, else of this stem, else of the same stem, else those that begin with
        it: `pay.md` may have become `Pay.md`, `pay.pdf` or `pay-2026.md`."""
        stem = PurePosixPath(meant).stem
        exact = self._by_name.get(meant) or self._by_stem.get(meant) or self._by_stem.get(stem)
        return exact or list(self._beginning(stem))

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
