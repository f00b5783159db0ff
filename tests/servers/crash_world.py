"""The scenarios of the commit protocol on real servers: what is done, what readers may see then.

Every broken step has a document of its own, so that many are broken at once and checked together.
Readers are those that serve people: the engine's search, with its catalog check.
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
import threading
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from loadtests.chaos import reader
from loadtests.chaos.journal import Row
from loadtests.chaos.pages import PEOPLE, WORD, Author, Page, allows
from loadtests.chaos.reader import engine_over
from loadtests.chaos.sync import Embed, sync, sync_batch
from loadtests.chaos.watch import Pending, watched
from loadtests.chaos.world import DIMENSION, GENERATION, fork_context, settings_of
from quarry import attempts, revisions
from quarry.errors import Conflict, QuarryError, StoreError
from quarry.records import Principal, SearchRequest, SearchResult
from quarry.settings import Settings
from quarry.stores.factory import Stores, open_stores
from quarry.verify import verify
from serve.stage import Threads

COUNTS: Counter[str] = Counter()
"""Of the whole session: `crashes`, `kills`, `cuts`, `violations`."""

WRITES = frozenset({"upsert", "delete", "commit_many"})
BATCH_ROWS = 16
"""Rows of one store call here, so that a document of 30 chunks takes two."""
MOST_TEXTS = 2000
CROWD = 4
"""Processes that are crashed at once."""


@dataclass(frozen=True, slots=True)
class Step:
    """What a document was and what it shall be; None: it is not there."""

    before: Page | None
    after: Page | None


def _steps() -> dict[str, Step]:
    author = Author("p", random.Random(7))
    public, hr = ("public",), ("hr",)
    long, short = author.page(30, public), author.page(4, public)

    def edited(page: Page, kept: int, size: int) -> Page:
        new = author.page(size, page.acl)
        return replace(new, passages=page.passages[:kept] + new.passages[kept:])

    return {
        "create": Step(None, author.page(4, public)),
        "update": Step(short, edited(short, 2, 4)),
        "shrink": Step(long, edited(long, 3, 5)),
        "delete": Step(short, None),
        "narrow": Step(replace(short, acl=("public", "hr")), replace(short, acl=hr)),
        "widen": Step(replace(short, acl=hr), replace(short, acl=("hr", "eng"))),
    }


STEPS = _steps()


def count_line() -> str:
    """Empty if nothing was broken in this session."""
    if not COUNTS:
        return ""
    return (
        f"chaos: steps crashed at {COUNTS['crashes']}, server kills {COUNTS['kills']}, "
        f"cuts {COUNTS['cuts']}, violations {COUNTS['violations']}"
    )


class Violated(AssertionError):
    """A reader saw what nobody may see, or a sync did not repair."""

    def __init__(self, what: str) -> None:
        super().__init__(what)
        COUNTS["violations"] += 1


# ------------------------------------------------------------------------------------- the bench


@dataclass
class Bench:
    """One index on a pair of servers; `settings` may lead to it through proxies."""

    settings: Settings
    stores: Stores = field(init=False)

    def __post_init__(self) -> None:
        self.stores = open_stores(self.settings, GENERATION)
        self.stores.ensure(DIMENSION)
        self._threads = Threads(16)
        self._engine = engine_over(self.stores, self.settings, self._threads)

    def close(self) -> None:
        for store in (self.stores.catalog, self.stores.text, self.stores.vectors):
            store.drop()
        self.stores.close()
        self._threads.close()

    # ------------------------------------------------------------------------------- writing

    def put(self, pages: Mapping[str, Page | None]) -> None:
        """Writes pages of documents that are new."""
        written = {name: page for name, page in pages.items() if page}
        for name, outcome in sync_batch(self.stores, written).items() if written else ():
            assert outcome.document, f"{name}: {outcome.error}"

    def repair(self, steps: Mapping[str, Step]) -> None:
        """One more sync of each document; then all of them are new and nothing is left over."""
        with ThreadPoolExecutor(6) as pool:
            list(pool.map(lambda name: sync(self.stores, name, steps[name].after), steps))
        self.check({name: Step(step.after, step.after) for name, step in steps.items()})
        report = verify(self.stores, repair=False)
        if report.found or report.busy:
            raise Violated(f"one more sync left {dict(report.found)}")

    # ------------------------------------------------------------------------------- reading

    def search(self, names: Iterable[str], person: Principal) -> SearchResult:
        """All texts of these documents that this person finds. Raises StoreUnavailable."""
        listed = ", ".join(f'"{name}"' for name in names)
        request = SearchRequest(
            question=WORD,
            principal=person,
            top_k=MOST_TEXTS,
            filter=f"page in ({listed})",
            deadline_s=120.0,
        )
        return asyncio.run(self._engine.search(request))

    def check(self, steps: Mapping[str, Step]) -> None:
        """Everybody sees all of each old page or all of the new one, and nothing forbidden."""
        if wrong := self.wrong(steps):
            raise Violated(wrong)

    def wrong(self, steps: Mapping[str, Step]) -> str:
        """What somebody sees that they must not see, or does not see; empty: all is well."""
        commits: dict[str, Row] = {}
        with ThreadPoolExecutor(len(PEOPLE)) as pool:
            results = list(pool.map(lambda person: self.search(steps, person), PEOPLE))
        for person, result in zip(PEOPLE, results, strict=True):
            shown: dict[str, list[tuple[Row, list[str]]]] = {name: [] for name in steps}
            for row, texts in reader.seen(result.candidates):
                shown[row.name].append((row, texts))
            for name, seen in shown.items():
                if fault := _fault(steps[name], person, seen):
                    return f"{name}: {person} {fault}"
                if seen and commits.setdefault(name, seen[0][0]) != seen[0][0]:
                    return f"{name}: {person} sees another commit than others"
        return ""


def _fault(step: Step, person: Principal, seen: Sequence[tuple[Row, list[str]]]) -> str:
    pages = [page for page in (step.before, step.after) if page]
    mine = [page for page in pages if allows(page.acl, person)]
    if not seen:
        return "lost sight of it" if len(mine) == 2 else ""
    if len(seen) > 1:
        return "sees two revisions of it"
    ((row, texts),) = seen
    if not allows(row.acl, person):
        return "sees what is forbidden"
    if not any(_is(page, row, texts) for page in mine):
        return f"sees a mixed, partial or forbidden page: {texts}"
    return ""


def _is(page: Page, row: Row, texts: Sequence[str]) -> bool:
    return row.version == page.version and sorted(texts) == sorted(page.passages)


def bench_settings(
    folder: Path, addresses: Mapping[str, str], *, timeout_s: float = 20.0, total_s: float = 60.0
) -> Settings:
    """A fresh index on the servers at these addresses, with exact search: it takes one call."""
    settings = settings_of(folder, **addresses, timeout_s=timeout_s, total_s=total_s)
    prefix = f"t{uuid.uuid4().hex[:8]}"
    stores = settings.stores
    stores = stores.model_copy(
        update={
            "elasticsearch": stores.elasticsearch.model_copy(update={"index_prefix": prefix}),
            "milvus": stores.milvus.model_copy(
                update={"collection_prefix": prefix, "index": "FLAT"}
            ),
        }
    )
    return settings.model_copy(update={"stores": stores})


# ------------------------------------------------------------------------------- crashed writers


@dataclass
class Calls:
    """A hook that lists the calls of a step."""

    made: list[tuple[str, str]] = field(default_factory=list)

    def __call__(self, store: str, method: str, _: Pending, __: tuple[Any, ...]) -> None:
        self.made.append((store, method))


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


def _die(settings: Settings, name: str, page: Page | None, call: int, torn: bool) -> None:
    small_batches()
    sync(watched(open_stores(settings, GENERATION), DieAt(call, torn)), name, page)


def small_batches() -> None:
    attempts.BATCH_ROWS = BATCH_ROWS
    revisions.BATCH_ROWS = BATCH_ROWS  # type: ignore[attr-defined]


def crash_everywhere(bench: Bench, label: str, step: Step) -> dict[str, Step]:
    """Kills a writer before each call of the step, and in the middle of each write; one document a
    kill. Gives the documents."""
    calls = Calls()
    bench.put({f"{label}-whole": step.before})
    sync(watched(bench.stores, calls), f"{label}-whole", step.after)
    points = [(call, False) for call in range(len(calls.made))]
    points += [(call, True) for call, (_, method) in enumerate(calls.made) if method in WRITES]
    steps = {f"{label}-{call}{'-torn' if torn else ''}": step for call, torn in points}
    bench.put(dict.fromkeys(steps, step.before))
    context = fork_context(["pytest", __name__])
    for start in range(0, len(points), CROWD):
        crowd = [
            context.Process(target=_die, args=(bench.settings, name, step.after, call, torn))
            for name, (call, torn) in list(zip(steps, points, strict=True))[start : start + CROWD]
        ]
        for process in crowd:
            process.start()
        for process in crowd:
            process.join()
            assert process.exitcode == -signal.SIGKILL, "it should have died at its call"
            COUNTS["crashes"] += 1
    return {**steps, f"{label}-whole": Step(step.after, step.after)}


# --------------------------------------------------------------------------- broken servers


class Rendezvous:
    """Writers stop before their call number `call`; when all have come, `act` is done."""

    def __init__(self, writers: int, call: int, act: Callable[[], None]) -> None:
        self.call = call
        self._missing = writers
        self._act = act
        self._lock = threading.Lock()
        self._gone_on = threading.Event()

    def hook(self) -> Stop:
        """For one writer, which must `come` by itself if it ends before that call."""
        return Stop(self)

    def come(self) -> None:
        with self._lock:
            self._missing -= 1
            if self._missing == 0:
                self._act()
                self._gone_on.set()

    def wait(self) -> None:
        self._gone_on.wait()


@dataclass
class Stop:
    meeting: Rendezvous
    came: bool = False
    made: int = 0

    def __call__(self, _: str, __: str, ___: Pending, ____: tuple[Any, ...]) -> None:
        if self.made == self.meeting.call:
            self.came = True
            self.meeting.come()
            self.meeting.wait()
        self.made += 1


@dataclass
class Ended:
    """How the writers of some steps ended."""

    broken: int = 0
    """Writers that came to the call at which something was broken."""
    said: list[str] = field(default_factory=list)
    """The sentences of those that gave up."""


def write_through(
    bench: Bench, steps: Mapping[str, Step], call: int, act: Callable[[], None]
) -> Ended:
    """All steps at once, each stopped before its call number `call`, where `act` breaks something.

    A writer may end with a plain sentence of ours; anything else is raised.
    """
    meeting = Rendezvous(len(steps), call, act)
    ended = Ended()

    def write(name: str) -> None:
        stop = meeting.hook()
        try:
            sync(watched(bench.stores, stop), name, steps[name].after)
        except StoreError as error:
            ended.said.append(str(error))
        finally:
            if not stop.came:
                meeting.come()
            ended.broken += stop.came

    with ThreadPoolExecutor(len(steps)) as pool:
        list(pool.map(write, steps))
    for sentence in ended.said:
        assert "\n" not in sentence
        assert len(sentence) < 300
    return ended


def fresh_steps(bench: Bench, label: str) -> dict[str, Step]:
    """One document a scenario, as it is before."""
    steps = {f"{label}-{name}": step for name, step in STEPS.items()}
    bench.put({name: step.before for name, step in steps.items()})
    return steps


def together(*works: Callable[[], None]) -> list[QuarryError]:
    """Runs them at the same time; gives our own errors that they ended with."""
    errors: list[QuarryError] = []

    def run(work: Callable[[], None]) -> None:
        try:
            work()
        except QuarryError as error:
            errors.append(error)

    with ThreadPoolExecutor(len(works)) as pool:
        list(pool.map(run, works))
    return errors


def try_sync(stores: Stores, name: str, page: Page | None, embed: Embed | None = None) -> None:
    """A sync that gives up when another writer was faster."""
    with suppress(Conflict):
        sync(stores, name, page, embed)
