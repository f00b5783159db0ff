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

from ingest.metadata import MAX_YAML_CHARS, read_mapping
from quarry.errors import ParseError, SourceNotFound
from quarry.ids import digest
from quarry.records import DocState, SourceItem

FOLDER_FILE = "_meta.yaml"
SIDECAR_SUFFIX = ".meta.yaml"
_BEIR_CORPUS = "corpus.jsonl"
_BEIR_COMPANIONS = ("queries.jsonl", "qrels")
_UNSAFE_IN_URI = re.compile(r"[%#?\s\x00-\x1f\x7f\ud800-\udfff]")
_LEFT_OUT = "link"
"""Tag of a link that leads out of the source; it is listed so that its end is told, never read."""


@dataclass(frozen=True, slots=True)
class LocalSource:
    """Lists the files below `root`, or `root` itself if it is a file; safe to send to workers.

    Hidden names and metadata files are left out. Links are followed only to files inside the root.
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
            yield self._item(self.root, self._beside_tags(self.root.parent, ()))
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
            raise _unreadable(error) from None

    def metadata(self, item: SourceItem) -> Mapping[str, object]:
        """Folder files from the root inwards, then the sidecar; the later wins, key by key.

        Raises ParseError if one of them cannot be used: what it says might be an ACL.
        """
        path = self._locate(item)
        merged: dict[str, object] = {}
        for file in (*self._folder_files(path.parent), _sidecar(path)):
            if file.is_file():
                merged.update(_load(file))
        return merged

    # ------------------------------------------------------------------------------ listing

    def _walk(self, folder: Path, outer: tuple[str, ...]) -> Iterator[SourceItem]:
        beside = self._beside_tags(folder, outer)
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
        tags = (*beside, *_tags(_sidecar(path)))
        tag = f"{tag}-{digest(*tags, size=8)}" if tags else tag
        return SourceItem(source=self.name, address=address, uri=_uri(address), tag=tag, size=size)

    def _refused(self, path: Path) -> SourceItem:
        address = self._address(path)
        structlog.get_logger(__name__).warning("link leaves the source", address=address)
        return SourceItem(
            source=self.name, address=address, uri=_uri(address), tag=_LEFT_OUT, size=0
        )

    def _beside_tags(self, folder: Path, outer: tuple[str, ...]) -> tuple[str, ...]:
        tags = _tags(folder / FOLDER_FILE)
        return (*outer, folder.name, *tags) if tags else outer

    def _address(self, path: Path) -> str:
        relative = path.name if path == self.root else path.relative_to(self.root).as_posix()
        return _spelled(relative)

    # ------------------------------------------------------------------------------ reading

    def _locate(self, item: SourceItem) -> Path:
        """The file of an address, which may be spelled otherwise on disk (NFD)."""
        parts = item.address.split("/")
        if item.address.startswith("/") or any(part in ("", ".", "..") for part in parts):
            raise ParseError(DocState.FAILED, "Its address leads out of the source.")
        path = self.root.parent if self.root.is_file() else self.root
        for part in parts:
            path = _child(path, part)
        if item.tag == _LEFT_OUT or not self._inside(path):
            raise ParseError(
                DocState.FAILED, "It is a link that leads out of the source or nowhere."
            )
        return path

    def _inside(self, path: Path) -> bool:
        base = self.root.parent if self.root.is_file() else self.root
        try:
            return path.resolve(strict=True).is_relative_to(base)
        except (OSError, RuntimeError):
            return not path.is_symlink()

    def _folder_files(self, folder: Path) -> Iterator[Path]:
        base = self.root.parent if self.root.is_file() else self.root
        steps = folder.relative_to(base).parts
        for depth in range(len(steps) + 1):
            yield base.joinpath(*steps[:depth]) / FOLDER_FILE


def _entries(folder: Path) -> list[Path]:
    """What to list in a folder, in the order of the addresses; of a BEIR folder only its corpus."""
    found: dict[str, Path] = {}
    for path in _children(folder):
        name = _spelled(path.name)
        if name.startswith(".") or _is_metadata(name):
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


def _is_metadata(name: str) -> bool:
    return name == FOLDER_FILE or name.endswith(SIDECAR_SUFFIX)


def _sidecar(path: Path) -> Path:
    return path.with_name(path.name + SIDECAR_SUFFIX)


def _tags(file: Path) -> tuple[str, ...]:
    try:
        status = file.stat()
    except OSError:
        return ()
    return (file.name, f"{status.st_size}-{status.st_mtime_ns}")


def _child(folder: Path, name: str) -> Path:
    direct = folder / name
    if os.path.lexists(direct):
        return direct
    try:
        found = [path for path in sorted(folder.iterdir()) if _spelled(path.name) == name]
    except OSError as error:
        raise _unreadable(error) from None
    if not found:
        raise ParseError(DocState.FAILED, "It is not there any more; run the ingest again.")
    return found[0]


def _load(file: Path) -> dict[str, object]:
    try:
        if file.stat().st_size > 4 * MAX_YAML_CHARS:
            raise ValueError(f"is longer than {MAX_YAML_CHARS} characters.")
        return read_mapping(file.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise _unreadable(error, file.name) from None
    except UnicodeDecodeError:
        raise ParseError(DocState.FAILED, f"{file.name} beside it is not UTF-8 text.") from None
    except ValueError as error:
        raise ParseError(DocState.FAILED, f"{file.name} beside it {error}") from None


def _unreadable(error: OSError, name: str = "It") -> ParseError:
    why = error.strerror or type(error).__name__
    return ParseError(DocState.FAILED, f"{name} cannot be read: {why}.")


def _uri(address: str) -> str:
    """The address with only those characters escaped that would end or break a link."""
    return _UNSAFE_IN_URI.sub(lambda match: quote(match[0], safe="", errors="replace"), address)
