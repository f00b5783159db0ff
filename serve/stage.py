"""What the stages of a request share: the clock of its deadline, its records, threads for stores.

A stage is a function that returns its result and its StageRecord; `Run` collects the records of one
request and the names of the stages that it had to do without.
"""

from __future__ import annotations

import asyncio
import contextvars
import time
from collections.abc import Awaitable, Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any, ParamSpec, TypeVar

from quarry.errors import DeadlineExceeded, QuarryError
from quarry.records import Candidate, StageRecord

T = TypeVar("T")
P = ParamSpec("P")

Clock = Callable[[], float]
"""Monotonic seconds."""


@dataclass(frozen=True, slots=True)
class Drop:
    """A candidate that a stage left out. Never one that the person may not read."""

    candidate: Candidate
    reason: str
    """A word from a closed set; docs/retrieval.md lists them."""
    beside: str = ""
    """The chunk_id in whose favour it was left out, if there is one."""


class Deadline:
    """When a request's time is up, on the monotonic clock of this process."""

    def __init__(self, seconds: float, clock: Clock = time.monotonic) -> None:
        self._clock = clock
        self._start = clock()
        self._seconds = seconds

    def left(self) -> float:
        """Seconds that remain, never below 0."""
        return max(0.0, self._seconds - self.elapsed())

    def elapsed(self) -> float:
        """Seconds since the request arrived."""
        return self._clock() - self._start

    async def within(self, awaitable: Awaitable[T], share: float = 1.0) -> T:
        """The awaited value, if it comes within this share of the time that remains.

        Raises TimeoutError if it does not; what was awaited is cancelled.
        """
        left = self.left() * share
        if left <= 0:  # nothing is begun that nobody waits for
            if asyncio.iscoroutine(awaitable):
                awaitable.close()
            raise TimeoutError
        async with asyncio.timeout(left):
            return await awaitable


def late() -> DeadlineExceeded:
    return DeadlineExceeded("The time for this request is up; ask again or allow more seconds.")


def told(error: Exception) -> dict[str, str]:
    """What a log says of an error: of ours the code and the sentence, which says what to do and
    never holds a question, a document's text or a secret; of others the type alone."""
    if isinstance(error, QuarryError):
        return {"error": error.code, "message": str(error)}
    return {"error": type(error).__name__}


class Stopwatch:
    """Makes the StageRecord of a stage that began when this was made."""

    def __init__(self, stage: str) -> None:
        self._stage = stage
        self._start = time.perf_counter()

    def done(self, count: int, **detail: Any) -> StageRecord:
        ms = (time.perf_counter() - self._start) * 1000
        return StageRecord(stage=self._stage, ms=round(ms, 3), count=count, detail=detail)


class Run:
    """One request on its way: its deadline, the records so far, and what it does without."""

    def __init__(
        self,
        deadline: Deadline,
        trace: Iterable[StageRecord] = (),
        degraded: Iterable[str] = (),
        results: dict[str, Any] | None = None,
    ) -> None:
        self.deadline = deadline
        self.trace = list(trace)
        self.degraded = list(degraded)
        self.results = results
        """What each stage gave, by its name; None where nobody asked for an explanation."""

    def add(self, result: T, *records: StageRecord) -> T:
        """Keeps the records of a stage and passes its result on."""
        self.trace.extend(records)
        if self.results is not None and records:
            self.results[records[-1].stage] = result
        return result

    async def in_time(self, work: Awaitable[T]) -> T:
        """The awaited value. Raises DeadlineExceeded when the time is up before it comes."""
        try:
            return await self.deadline.within(work)
        except TimeoutError as error:
            raise late() from error

    def without(self, stage: str) -> None:
        """Notes that the answer was made without this stage."""
        if stage not in self.degraded:
            self.degraded.append(stage)


class Threads:
    """Runs blocking calls of stores and models beside the event loop."""

    def __init__(self, workers: int = 16) -> None:
        self._pool = ThreadPoolExecutor(workers, thread_name_prefix="quarry")
        self._apart = ThreadPoolExecutor(workers, thread_name_prefix="quarry-apart")

    async def __call__(self, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        return await _run(self._pool, partial(call, *args, **kwargs))

    async def apart(self, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """As a plain call, on workers of their own: for the vector store.

        A call that has hung keeps its worker until its own timeout. While the vector store hangs,
        such calls must not hold up the text store and the catalog, on which every answer depends.
        """
        return await _run(self._apart, partial(call, *args, **kwargs))

    def close(self) -> None:
        """Takes no more calls; one that hangs in a store is left to its own timeout."""
        for pool in (self._pool, self._apart):
            pool.shutdown(wait=False, cancel_futures=True)


async def _run(pool: ThreadPoolExecutor, call: Callable[[], T]) -> T:
    bound = partial(contextvars.copy_context().run, call)
    return await asyncio.get_running_loop().run_in_executor(pool, bound)
