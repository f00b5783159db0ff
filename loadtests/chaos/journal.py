"""What writers, readers and the breakers did when: lines of JSON, one file a process and life.

Times are seconds of the machine's monotonic clock, which all processes share. A line is one write
to a file opened for appending, so that a process may be killed at any time and its file still holds
all that it did before. What was about to be committed is noted before, what stands is noted after.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

from loadtests.chaos.pages import Page
from quarry.ports import CommitResult
from quarry.records import Document


class Row(NamedTuple):
    """A catalog row, as far as readers are judged by it; no revision: nothing is served."""

    name: str
    serial: int
    revision: str
    version: str
    acl: tuple[str, ...]
    chunks: int

    @classmethod
    def of(cls, document: Document, *, serial: int | None = None) -> Row:
        return cls(
            name=document.address,
            serial=document.serial if serial is None else serial,
            revision=document.revision,
            version=document.content_hash,
            acl=document.acl,
            chunks=document.chunk_count,
        )

    @classmethod
    def from_json(cls, values: Sequence[Any]) -> Row:
        name, serial, revision, version, acl, chunks = values
        return cls(name, serial, revision, version, tuple(acl), chunks)


class Journal:
    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = os.open(path, os.O_APPEND | os.O_CREAT | os.O_WRONLY, 0o600)

    def note(self, event: str, **facts: Any) -> None:
        line = json.dumps({"event": event, "at": time.monotonic(), **facts}, separators=(",", ":"))
        os.write(self._file, line.encode() + b"\n")

    def note_page(self, page: Page) -> None:
        self.note("page", version=page.version, passages=page.passages)

    def close(self) -> None:
        os.close(self._file)


def entries(folder: Path, pattern: str = "*.jsonl") -> Iterator[dict[str, Any]]:
    """All lines of all files that match; a last one that was cut off by a kill is left out."""
    for path in sorted(folder.glob(pattern)):
        with closing(path.open(encoding="utf-8")) as lines:
            yield from (json.loads(line) for line in lines if line.endswith("\n"))


@dataclass(slots=True)
class RecordedCatalog:
    """A catalog that notes each commit before it is tried, and again when it has been made."""

    catalog: Any
    journal: Journal
    numbers: Iterator[int]

    @classmethod
    def over(cls, catalog: Any, journal: Journal) -> RecordedCatalog:
        return cls(catalog, journal, count())

    def commit(self, document: Document) -> Document:
        number = self._intend([document])
        committed: Document = self.catalog.commit(document)
        self.journal.note("kept", number=number, won=[True])
        return committed

    def commit_many(self, documents: Sequence[Document]) -> list[CommitResult]:
        number = self._intend(documents)
        results: list[CommitResult] = self.catalog.commit_many(documents)
        won = [isinstance(result, Document) for result in results]
        self.journal.note("kept", number=number, won=won)
        return results

    def _intend(self, documents: Sequence[Document]) -> str:
        number = f"{os.getpid()}-{next(self.numbers)}"
        rows = [Row.of(document, serial=document.serial + 1) for document in documents]
        self.journal.note("rows", number=number, rows=rows)
        return number

    def __getattr__(self, name: str) -> Any:
        return getattr(self.catalog, name)
