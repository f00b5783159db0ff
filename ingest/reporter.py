"""Tells whoever watches a run where it stands: counts, rate, what is left."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from ingest.ledger import Ledger
from ingest.summary import Progress, ProgressCallback
from ingest.work import Task


class Reporter:
    def __init__(
        self,
        ledger: Ledger,
        callback: ProgressCallback | None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._ledger = ledger
        self._callback = callback
        self._clock = clock
        self._started = clock()
        self._working = 0.0
        self._addresses = 0
        self._bytes = 0

    @property
    def seconds(self) -> float:
        return self._clock() - self._started

    def expect(self, tasks: Sequence[Task]) -> None:
        self._addresses = len(tasks)
        self._bytes = sum(task.item.size for task in tasks)

    def __call__(self, phase: str) -> None:
        if self._callback is None:
            return
        ledger = self._ledger
        if phase == "indexing" and not self._working:
            self._working = self.seconds
        spent = self.seconds - self._working if self._working else 0.0
        self._callback(
            Progress(
                phase=phase,
                addresses=self._addresses,
                done=ledger.addresses,
                documents=ledger.seen,
                chunks=ledger.embedded + ledger.reused,
                failed=ledger.failed,
                seconds=self.seconds,
                documents_per_s=ledger.seen / spent if spent > 0 else 0.0,
                eta_s=self._left(spent),
            )
        )

    def _left(self, spent: float) -> float | None:
        """By bytes, since files differ more in size than in the speed of a byte."""
        if not self._ledger.bytes or spent <= 0:
            return None
        return spent * (self._bytes - self._ledger.bytes) / self._ledger.bytes
