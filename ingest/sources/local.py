"""A file or a folder on disk as a source."""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import structlog

from ingest.sources.beside import FOLDER_FILE, is_metadata, load, sidecar, tags, unreadable
from quarry.errors import ParseError, SourceNotFound
from quarry.ids import digest
from quarry.records import DocState, SourceItem

_BEIR_CORPUS = "corpus.jsonl"
_BEIR_COMPANIONS = ("queries.jsonl", "qrels")
_UNSAFE_IN_URI = re.compile(r"[%#?\s\x00-\x1f\x7f\ud800-\udfff]")
_LEFT_OUT = "link"
"""Tag of a link that leads out of the source; it is listed so that its end is told, never read."""


@dataclass(frozen=True, slots=True)
class LocalSource:
    """Lists the files below `root`, or `root` itself if it is a file; safe to send to workers.

    Hidden names and metadata files are left out. Links are followed only inside the root, those of
    metadata files too. A link to a file that is listed itself has the metadata of that file, so
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
            yield self._item(self.root, _beside_tags(self.root.parent, ()))
            return
        if not self.root.is_dir():
            raise SourceNotFound(f"There is nothing at {self.root} any more; check the path.")
        yield from self._walk(self.root, ())

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
        merged: dict[str, object] = {}
        for file in (*(f / FOLDER_FILE for f in self._folders(path.parent)), sidecar(path)):
            if not os.path.lexists(file):
                continue
            if not self._inside(file):
                raise ParseError(
                    DocState.FAILED,
                    f"{file.name} beside it is a link that leads out of the source or nowhere.",
                )
            merged.update(load(file))
        return merged

    # ------------------------------------------------------------------------------ listing

    def _walk(self, folder: Path, outer: tuple[str, ...]) -> Iterator[SourceItem]:
        beside = _beside_tags(folder, outer)
        for path in _entries(folder):
            if path.is_symlink() and not self._inside(path):
                yield self._refused(path)
            elif path.is_dir():
                if not path.is_symlink():  # what a link inside the root leads to is listed anyway
                    yield from self._walk(path, beside)
            elif path.is_file():
                yield self._item(path, beside)

    def _item(self, path: Path, beside: tuple[str, ...]) -> SourceItem:
        address = self._address(path)
        try:
            status = path.stat()
            size, tag = status.st_size, f"{status.st_size}-{status.st_mtime_ns}"
        except OSError:
            size, tag = 0, "unreadable"
        home = self._home(path)
        if home != path:
            beside = ()
            for folder in self._folders(home.parent):
                beside = _beside_tags(folder, beside)
        marks = (*beside, *tags(sidecar(home)))
        tag = f"{tag}-{digest(*marks, size=8)}" if marks else tag
        return SourceItem(source=self.name, address=address, uri=_uri(address), tag=tag, size=size)

    def _refused(self, path: Path) -> SourceItem:
        address = self._address(path)
        structlog.get_logger(__name__).warning("link leaves the source", address=address)
        return SourceItem(
            source=self.name, address=address, uri=_uri(address), tag=_LEFT_OUT, size=0
        )

    def _address(self, path: Path) -> str:
        relative = path.name if path == self.root else path.relative_to(self.root).as_posix()
        return _spelled(relative)

    # ------------------------------------------------------------------------------ reading

    def _locate(self, item: SourceItem) -> Path:
        """The file of an address, which may be spelled otherwise on disk (NFD)."""
        parts = item.address.split("/")
        if item.address.startswith("/") or any(part in ("", ".", "..") for part in parts):
            raise ParseError(DocState.FAILED, "Its address leads out of the source.")
        path = self._base
        for part in parts:
            path = _child(path, part)
        if item.tag == _LEFT_OUT or not self._inside(path):
            raise ParseError(
                DocState.FAILED, "It is a link that leads out of the source or nowhere."
            )
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


def _beside_tags(folder: Path, outer: tuple[str, ...]) -> tuple[str, ...]:
    found = tags(folder / FOLDER_FILE)
    return (*outer, folder.name, *found) if found else outer


def _entries(folder: Path) -> list[Path]:
    """What to list in a folder, in the order of the addresses; of a BEIR folder only its corpus."""
    found: dict[str, Path] = {}
    for path in _children(folder):
        name = _spelled(path.name)
        if name.startswith(".") or is_metadata(name):
            continue
        if name in found:
            structlog.get_logger(__name__).warning("two files share an address", name=name)
        found.setdefault(name, path)
    if _BEIR_CORPUS in found and any(name in found for name in _BEIR_COMPANIONS):
        return [found[_BEIR_CORPUS]]
    return [found[name] for name in sorted(found)]


def _children(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir())
    except OSError as error:
        why = error.strerror or type(error).__name__
        raise SourceNotFound(
            f"The folder {folder} cannot be listed ({why}); mend that and run it again."
        ) from None


def _spelled(name: str) -> str:
    """A name as addresses have it: NFC, and bytes that are no UTF-8 written out."""
    text = name.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    return unicodedata.normalize("NFC", text)


def _child(folder: Path, name: str) -> Path:
    direct = folder / name
    if os.path.lexists(direct):
        return direct
    try:
        found = [path for path in sorted(folder.iterdir()) if _spelled(path.name) == name]
    except OSError as error:
        raise unreadable(error) from None
    if not found:
        raise ParseError(DocState.FAILED, "It is not there any more; run the ingest again.")
    return found[0]


def _uri(address: str) -> str:
    """The address with only those characters escaped that would end or break a link."""
    return _UNSAFE_IN_URI.sub(lambda match: quote(match[0], safe="", errors="replace"), address)
