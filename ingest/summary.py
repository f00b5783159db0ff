"""What a run did, in numbers: while it goes on, and at its end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from quarry.records import DocState


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """One document, address or source that did not end well, and why."""

    uri: str
    state: DocState
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Omission:
    """What stands among the documents of a source and is none, and why."""

    uri: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSummary:
    """The end of a run. Documents that were not read count as unchanged, whatever their state."""

    run_id: str
    source: str
    listed: int = 0
    """Documents at listed addresses."""
    unchanged: int = 0
    """Documents that were not read, or read and found equal."""
    indexed: int = 0
    """Documents that got a new revision, those of state `partial` included."""
    deleted: int = 0
    failed: int = 0
    """Documents that were read now and got no new revision."""
    by_state: Counter[DocState] = field(default_factory=Counter)
    """How all listed documents ended, in this run or an earlier one, and those deleted now."""
    embedded: int = 0
    reused: int = 0
    deleted_chunks: int = 0
    deleted_uris: tuple[str, ...] = ()
    seconds: float = 0.0
    failures: tuple[Failure, ...] = ()
    left_out: tuple[Omission, ...] = ()

    @property
    def exit_code(self) -> int:
        """0: all good; 3: at least one document is named among the failures."""
        return 3 if self.failures else 0

    def to_json(self) -> dict[str, Any]:
        return {
            "run_id": self.run_id,
            "source": self.source,
            "documents": {
                "listed": self.listed,
                "unchanged": self.unchanged,
                "indexed": self.indexed,
                "deleted": self.deleted,
                "failed": self.failed,
                "by_state": {state.value: count for state, count in sorted(self.by_state.items())},
            },
            "chunks": {
                "embedded": self.embedded,
                "reused": self.reused,
                "deleted": self.deleted_chunks,
            },
            "seconds": round(self.seconds, 3),
            "failures": [
                {"uri": failure.uri, "state": failure.state.value, "reason": failure.reason}
                for failure in self.failures
            ],
            "deleted": [{"uri": uri} for uri in self.deleted_uris],
            "left_out": [{"uri": each.uri, "reason": each.reason} for each in self.left_out],
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """Where a run stands, for whoever watches it."""

    phase: str
    """`listing`, `starting`, `indexing` or `finishing`."""
    addresses: int = 0
    """Addresses to read in this run."""
    done: int = 0
    """Addresses of which every document has ended."""
    documents: int = 0
    """Documents that have ended."""
    chunks: int = 0
    failed: int = 0
    seconds: float = 0.0
    """Since the run began."""
    documents_per_s: float = 0.0
    eta_s: float | None = None
    """By the bytes of the addresses that are done; None: not known yet."""


ProgressCallback = Callable[[Progress], None]
