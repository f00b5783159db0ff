"""Writers that die by kill -9 at a store call, or in the middle of one.

Every broken step has a document of its own, so that many are broken and then checked together.
"""

from __future__ import annotations

import os
import signal
from dataclasses import dataclass
from typing import Any

from loadtests.chaos.pages import Page
from loadtests.chaos.sync import sync
from loadtests.chaos.watch import Pending, watched
from loadtests.chaos.world import GENERATION, fork_context
from quarry import attempts, revisions
from quarry.settings import Settings
from quarry.stores.factory import open_stores
from tests.servers.faults.bench import COUNTS, Bench
from tests.servers.faults.scenarios import Step, still

WRITES = frozenset({"upsert", "delete", "commit_many"})
CROWD = 4
"""Processes that are crashed at once."""


@dataclass
class DieAt:
    """Ends this process by kill -9 before its call number `call`, or after half of its work."""

    call: int
    torn: bool
    made: int = 0

    def __call__(self, _: str, method: str, target: Pending, args: tuple[Any, ...]) -> None:
        if self.made == self.call:
            if self.torn and method in WRITES:
                items = sorted(args[0]) if isinstance(args[0], set) else list(args[0])
                target(items[: len(items) // 2])
            os.kill(os.getpid(), signal.SIGKILL)
        self.made += 1


def _die(settings: Settings, name: str, page: Page | None, death: DieAt, rows: int) -> None:
    """In a process of its own, with batches as small as those of the test."""
    attempts.BATCH_ROWS = rows
    revisions.BATCH_ROWS = rows  # type: ignore[attr-defined]
    sync(watched(open_stores(settings, GENERATION), death), name, page)


def crash_everywhere(bench: Bench, label: str, step: Step) -> dict[str, Step]:
    """Kills a writer before each call of the step, and in the middle of each write; one document a
    kill. Gives the documents."""
    methods: list[str] = []
    bench.put({f"{label}-whole": step.before})
    stores = watched(bench.stores, lambda _, method, *__: methods.append(method))
    sync(stores, f"{label}-whole", step.after)
    points = [(call, False) for call in range(len(methods))]
    points += [(call, True) for call, method in enumerate(methods) if method in WRITES]
    steps = {f"{label}-{call}{'-torn' if torn else ''}": step for call, torn in points}
    bench.put(dict.fromkeys(steps, step.before))
    context = fork_context(["pytest", __name__])
    for start in range(0, len(points), CROWD):
        crowd = [
            context.Process(
                target=_die,
                args=(bench.settings, name, step.after, DieAt(*point), attempts.BATCH_ROWS),
            )
            for name, point in list(zip(steps, points, strict=True))[start : start + CROWD]
        ]
        for process in crowd:
            process.start()
        for process in crowd:
            process.join()
            assert process.exitcode == -signal.SIGKILL, "it should have died at its call"
            COUNTS["crashes"] += 1
    return {**steps, f"{label}-whole": still(step.after)}
