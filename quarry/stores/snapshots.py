"""When a snapshot of a document's history counts as replaced: one rule for the stores that keep
them in lists."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from itertools import pairwise
from typing import TypeVar

T = TypeVar("T")


def replaced_after(
    snapshots: Sequence[T], before: datetime, *, committed_at: Callable[[T], datetime | None]
) -> list[T]:
    """Those whose next one was committed at or after `before`, or at no known time, and always the
    last one."""
    kept = [
        snapshot
        for snapshot, after in pairwise(snapshots)
        if (at := committed_at(after)) is None or at >= before
    ]
    return [*kept, *snapshots[-1:]]
