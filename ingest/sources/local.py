"""A file or a folder on disk as a source."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from ingest.acl import Closed
from ingest.sources.beside import load, may_hold_acl, sidecar, unreadable
from ingest.sources.folders import FOLDER_FILE, Around, closed, names_of, spelled, tags
from quarry.errors import ParseError, SourceNotFound
from quarry.ids import digest
from quarry.records import DocState, SourceItem

_BEIR_CORPUS = "corpus.jsonl"
_BEIR_COMPANIONS = frozenset({"queries.jsonl", "qrels"})
_REFUSED = {
    "link": (DocState.FAILED, "It is a link that leads out of the source or nowhere."),
    "twin": (DocState.FAILED, "Another one has the same name in another spelling; rename one."),
    "hidden": (DocState.UNSUPPORTED, "It is a link to a hidden folder, which is not read."),
    "special": (DocState.UNSUPPORTED, "It is neither a file nor a folder."),
    "astray": (
        DocState.FAILED,
        "It is the metadata of no file; call it NAME.meta.yaml after a file beside it, or "
        "_meta.yaml for its folder, or remove it.",
    ),
}
"""Tags of what is listed so that its end is told, and never read; with that end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOut(SourceItem):
    """Listed so that it can be told, but no document: it is never read and has no state."""

    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused(SourceItem):
    """Never read, whatever becomes of its content: once it may be read its change mark differs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Doubtful(SourceItem):
    """A file that metadata files gone astray may be meant for."""

    strays: tuple[Path, ...]
    """From the outside in."""


@dataclass(frozen=True, slots=True)
class LocalSource:
    """Lists the files below `root`, or `root` itself if it is a file; safe to send to workers.

    Hidden names and metadata files are not listed. Links are followed only inside the root, those
    of metadata files too. A link to a file that is listed itself has the metadata of that file, so
    that nobody opens a document by linking to it.
    """

    name: str
    root: Path
    """Absolute and resolved."""

    def list(self) -> Iterator[SourceItem]:
        """All files, sorted by name folder by folder, without reading them.

        Raises SourceNotFound if a folder is gone or closed: a listing that lacks it would look as
        if its documents had been deleted.
        """
        if self.root.is_file():
            yield self._item(self.root, self._around_alone(), {})
            return
        if not self.root.is_dir():
            raise SourceNotFound(f"There is nothing at {self.root} any more; check the path.")
        yield from self._walk(self.root, Around(), {})

    def read(self, item: SourceItem) -> bytes:
        """The content of one listed file. Raises ParseError if it cannot or must not be read."""
        path = self._locate(item)
        try:
            return path.read_bytes()
        except OSError as error:
            raise unreadable(error) from None

    def metadata(self, item: SourceItem) -> Mapping[str, object]:
        """Folder files from the root inwards, then the sidecar; the later wins, key by key.

        Raises ParseError if one of them cannot be used: what it says might be an ACL.
        """
        path = self._home(self._locate(item))
        strays = item.strays if isinstance(item, _Doubtful) else ()
        merged: dict[str, object] = {}
        for folder in self._folders(path.parent):
            merged.update(self._said(folder / FOLDER_FILE))
            for stray in strays:
                if stray.parent == folder and (not self._inside(stray) or may_hold_acl(stray)):
                    merged["acl"] = Closed(
                        f"{stray.name} may be meant for it and is the metadata of no file; rename "
                        "or remove that."
                    )
        merged.update(self._said(sidecar(path)))
        return merged

    def _said(self, file: Path) -> Mapping[str, object]:
        if not os.path.lexists(file):
            return {}
        if not self._inside(file):
            raise ParseError(
                DocState.FAILED,
                f"{file.name} beside it is a link that leads out of the source or nowhere.",
            )
        return load(file)

    # ------------------------------------------------------------------------------ listing

    def _walk(self, folder: Path, outer: Around, seen: dict[Path, Around]) -> Iterator[SourceItem]:
        names = names_of(folder)
        around = seen[folder] = outer.within(folder, names)
        companions = _BEIR_COMPANIONS if _BEIR_CORPUS in names.found else frozenset()
        for name, path in sorted(names.found.items()):
            kind = "astray" if name in names.strays else self._kind(path)
            if kind in _REFUSED:
                yield self._refused(path, kind)
            elif name in companions:
                yield self._left_out(path)
            elif kind == "folder":
                yield from self._walk(path, around, seen)
            elif kind == "file":
                yield self._item(path, around, seen)
        for path in names.twins:
            yield self._refused(path, "twin")

    def _around_alone(self) -> Around:
        """Around a file that is the target itself, in a folder that need not be listed."""
        try:
            names = names_of(self._base)
        except SourceNotFound:
            names = None
        return Around().within(self._base, names)

    def _around(self, folder: Path, seen: dict[Path, Around]) -> Around:
        """Around the files of a folder that may not have been reached yet."""
        around = Around()
        for step in self._folders(folder):
            if step not in seen:
                seen[step] = around.within(step, names_of(step))
            around = seen[step]
        return around

    def _kind(self, path: Path) -> str:
        """`file`, `folder`, why it is refused, or nothing if it is listed elsewhere or gone."""
        try:
            is_link = path.is_symlink()
            if is_link and not self._inside(path):
                return "link"
            mode = path.stat().st_mode
        except FileNotFoundError:
            return ""
        except OSError as error:
            raise closed(path.parent, error) from None
        if stat.S_ISREG(mode):
            return "file"
        if not stat.S_ISDIR(mode):
            return "special"
        if is_link:
            return "hidden" if self._is_hidden(path.resolve()) else ""
        return "folder"

    def _item(self, path: Path, around: Around, seen: dict[Path, Around]) -> SourceItem:
        address = self._address(path)
        try:
            status = path.stat()
            size, tag = status.st_size, f"{status.st_size}-{status.st_mtime_ns}"
        except OSError:
            size, tag = 0, "unreadable"
        home = self._home(path)
        if home != path:
            around = self._around(home.parent, seen)
        strays = around.of(home.name)
        marks = (*around.tags, *chain.from_iterable(map(tags, (sidecar(home), *strays))))
        tag = f"{tag}-{digest(*marks, size=8)}" if marks else tag
        if strays:
            return _Doubtful(
                source=self.name, address=address, uri=address, tag=tag, size=size, strays=strays
            )
        return SourceItem(source=self.name, address=address, uri=address, tag=tag, size=size)

    def _refused(self, path: Path, why: str) -> Refused:
        address = self._address(path)
        if why == "twin":
            folder, slash, _ = address.rpartition("/")
            address = f"{folder}{slash}{_written_out(path.name)}"
        return Refused(source=self.name, address=address, uri=address, tag=why, size=0)

    def _left_out(self, path: Path) -> LeftOut:
        address = self._address(path)
        return LeftOut(
            source=self.name,
            address=address,
            uri=address,
            tag="",
            size=0,
            reason=f"It belongs to the questions about {_BEIR_CORPUS} beside it.",
        )

    def _address(self, path: Path) -> str:
        relative = path.name if path == self.root else path.relative_to(self.root).as_posix()
        return spelled(relative)

    # ------------------------------------------------------------------------------ reading

    def _locate(self, item: SourceItem) -> Path:
        """The file of an address, which may be spelled otherwise on disk (NFD)."""
        if item.tag in _REFUSED:
            raise ParseError(*_REFUSED[item.tag])
        parts = item.address.split("/")
        if item.address.startswith("/") or any(part in ("", ".", "..") for part in parts):
            raise ParseError(DocState.FAILED, "Its address leads out of the source.")
        path = self._base
        for part in parts:
            path = _child(path, part)
        if not self._inside(path):
            raise ParseError(*_REFUSED["link"])
        return path

    @property
    def _base(self) -> Path:
        return self.root.parent if self.root.is_file() else self.root

    def _inside(self, path: Path) -> bool:
        try:
            return path.resolve(strict=True).is_relative_to(self._base)
        except (OSError, RuntimeError):
            return not path.is_symlink()

    def _home(self, path: Path) -> Path:
        """Where the metadata of a file are: what is hidden is only stored where it is."""
        if not path.is_symlink() or not self._inside(path):
            return path
        real = path.resolve()
        return path if self._is_hidden(real) else real

    def _is_hidden(self, real: Path) -> bool:
        return any(part.startswith(".") for part in real.relative_to(self._base).parts)

    def _folders(self, folder: Path) -> Iterator[Path]:
        """From the root to a folder in it."""
        steps = folder.relative_to(self._base).parts
        for depth in range(len(steps) + 1):
            yield self._base.joinpath(*steps[:depth])


def _written_out(name: str) -> str:
    """A name with all that is not ASCII in numbers, so that no two spellings are the same."""
    return name.encode("ascii", "backslashreplace").decode("ascii")


def _child(folder: Path, name: str) -> Path:
    direct = folder / name
    if os.path.lexists(direct):
        return direct
    try:
        found = [path for path in sorted(folder.iterdir()) if spelled(path.name) == name]
    except OSError as error:
        raise unreadable(error) from None
    if not found:
        raise ParseError(DocState.FAILED, "It is not there any more; run the ingest again.")
    return found[0]
