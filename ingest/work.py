"""What travels through the pipeline: one row is one document, or the end of one address.

A row is a pickled object in one binary column, because the data plane's own types would flatten
chunks and vectors. Rows stay on the workers; the driver sees `Done` and `End` alone.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from quarry.records import Chunk, DocState, Document, SourceItem, Vector

SERVED = frozenset({DocState.INDEXED, DocState.PARTIAL})
"""States of a document that has chunks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One address to read."""

    number: int
    source: int
    """Which of the run's sources lists it."""
    item: SourceItem
    several: bool = False
    """It gave other than one document before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """One document that has to be written: with chunks, or with a state that says why not."""

    task: int
    base: Document | None
    document: Document
    chunks: tuple[Chunk, ...] = ()
    vectors: Mapping[str, Vector] = field(default_factory=dict)
    """By text hash."""
    embedded: int = 0
    """Chunks whose vectors were computed; those of the others were known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """How one document ended."""

    task: int
    uri: str
    state: DocState
    reason: str = ""
    unchanged: bool = False
    conflict: bool = False
    """Another writer was faster: nothing was written, and the address must be read again."""
    away: bool = False
    """A person deleted it, and it stays so: its address does not hold it."""
    embedded: int = 0
    reused: int = 0
    deleted: int = 0
    """Chunks of the revision before that are gone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class End:
    """The end of one address: all its documents have been sent on their way before."""

    task: int
    documents: int
    """Rows sent for it, each of which must come to its own end."""
    gone: tuple[str, ...] = ()
    """Ids of documents that the address held before and holds no more."""
    before: int = 0
    """Documents that the address held before, those gone included."""
    state: DocState = DocState.INDEXED
    """Other than indexed if the address as a whole could not be read to its end."""
    reason: str = ""


Row: TypeAlias = Task | Work | Done | End


def pack(row: Row) -> bytes:
    return pickle.dumps(row, protocol=pickle.HIGHEST_PROTOCOL)


def unpack(data: bytes) -> Any:
    """A row that `pack` of this run made."""
    return pickle.loads(data)  # noqa: S301


def unpack_all(column: Iterable[bytes]) -> list[Row]:
    return [unpack(data) for data in column]
