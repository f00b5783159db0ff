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
        self._first: tuple[float, int, int] | None = None
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
        if phase == "indexing" and self._first is None:
            self._first = (self.seconds, ledger.seen, ledger.bytes)
        rate, left = self._pace()
        self._callback(
            Progress(
                phase=phase,
                addresses=self._addresses,
                done=ledger.addresses,
                documents=ledger.seen,
                chunks=ledger.embedded + ledger.reused,
                failed=ledger.failed,
                seconds=self.seconds,
                documents_per_s=rate,
                eta_s=left,
            )
        )

    def _pace(self) -> tuple[float, float | None]:
        """Documents a second and seconds left, since the first ones came out of the pipeline.

        What is left is told by bytes: files differ more in size than in the time of a byte.
        """
        if self._first is None:
            return 0.0, None
        since, documents, size = self._first
        spent = self.seconds - since
        if spent <= 0:
            return 0.0, None
        rate = (self._ledger.seen - documents) / spent
        done = self._ledger.bytes - size
        left = spent * (self._bytes - self._ledger.bytes) / done if done else None
        return rate, left
