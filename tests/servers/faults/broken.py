"""Many documents in the middle of being changed, each at another store call, when something breaks.

Until its own call a writer goes straight to the servers, and waits there until all have come. Then
one thing is broken, and all go on by the way that leads through it. So each step of each scenario
meets the same kill, and what is slow is done once.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any

from loadtests.chaos.pages import Page
from loadtests.chaos.proxy import Proxy
from loadtests.chaos.sync import sync
from loadtests.chaos.watch import watched
from loadtests.chaos.world import GENERATION
from quarry.errors import ModelError, QuarryError, StoreUnavailable
from quarry.settings import Settings
from quarry.stores.factory import Stores, open_stores
from tests.servers.faults.bench import PATIENT_S, Bench, changed
from tests.servers.faults.scenarios import STEPS, Step, embedder_of, failing_embedder, still

ELASTICSEARCH, MILVUS = "elasticsearch", "milvus"
ADDRESS = {ELASTICSEARCH: "url", MILVUS: "uri"}


# ------------------------------------------------------------------------------- where it breaks


@dataclass(frozen=True, slots=True)
class Writer:
    """One who writes one document, and stops before a call of his."""

    name: str
    """Of the document."""
    page: Page | None
    step: Step
    call: int


def writers_of(bench: Bench, label: str, step: Step) -> list[Writer]:
    """One document for each call that its scenario makes, and who writes it."""
    lengths = {page: calls_of(bench, step, page) for page in (step.after, *step.rivals)}
    return [
        Writer(f"{label}-{call}", page, step, min(call, length - 1))
        for call in range(lengths[step.after])
        for page, length in lengths.items()
    ]


_LENGTHS: dict[tuple[Page | None, Page | None, bool], int] = {}
_REHEARSALS = count()


def calls_of(bench: Bench, step: Step, page: Page | None) -> int:
    """Store calls of a writing that nothing disturbs; as many on every index."""
    key = (step.before, page, step.embed is failing_embedder)
    if key not in _LENGTHS:
        name = f"rehearsal-{next(_REHEARSALS)}"
        calls: list[str] = []
        bench.put({name: step.before})
        stores = watched(bench.stores, lambda _, method, *__: calls.append(method))
        with suppress(ModelError):
            sync(stores, name, page, embedder_of(step))
        sync(bench.stores, name, None)
        _LENGTHS[key] = len(calls)
    return _LENGTHS[key]


def all_writers(bench: Bench, steps: Mapping[str, Step] = STEPS) -> list[Writer]:
    """All scenarios at every call, each document as it is before."""
    writers = [each for label, step in steps.items() for each in writers_of(bench, label, step)]
    bench.put({each.name: each.step.before for each in writers})
    return writers


# ------------------------------------------------------------------------------------ all at once


class Meeting:
    """When as many have come as are awaited, `act` is done; then all go on."""

    def __init__(self, awaited: int, act: Callable[[], None]) -> None:
        self._missing = awaited
        self._act = act
        self._lock = threading.Lock()
        self._gone_on = threading.Event()

    def come(self) -> None:
        with self._lock:
            self._missing -= 1
            if self._missing == 0:
                self._act()
                self._gone_on.set()

    def wait(self) -> None:
        self._gone_on.wait()


@dataclass
class Turn:
    """A writer's way: straight until his call, then, when all have come, by `after`."""

    meeting: Meeting
    call: int
    readers: threading.Barrier
    """Of the writers of one document: they have all read it before one goes on."""
    came: bool = False
    made: int = 0

    def __call__(self) -> bool:
        """Before each call; whether it goes by `after`."""
        if self.made == 1 and not self.came:
            self.readers.wait()
        if self.made == self.call:
            self.come()
            self.meeting.wait()
        self.made += 1
        return self.came

    def come(self) -> None:
        if not self.came:
            self.came = True
            self.meeting.come()


class Switch:
    """A store that is reached in one of two ways; `turn` is asked before each call."""

    def __init__(self, before: Any, after: Any, turn: Callable[[], bool]) -> None:
        self._ways = (before, after)
        self._turn = turn

    def __getattr__(self, method: str) -> Callable[..., Any]:
        def call(*args: Any, **options: Any) -> Any:
            return getattr(self._ways[self._turn()], method)(*args, **options)

        return call


def switching(before: Stores, after: Stores, turn: Callable[[], bool]) -> Stores:
    return replace(
        before,
        catalog=Switch(before.catalog, after.catalog, turn),
        text=Switch(before.text, after.text, turn),
        vectors=Switch(before.vectors, after.vectors, turn),
    )


@dataclass
class Ended:
    """How the writers ended."""

    done: dict[str, list[Writer]] = field(default_factory=dict)
    """Those that were told that their work is done, by document."""
    failed: list[tuple[Writer, QuarryError]] = field(default_factory=list)

    @property
    def gave_up(self) -> list[str]:
        """What those said who had no rival and could embed: they ended for what was broken."""
        return [
            f"{writer.name}: {error}"
            for writer, error in self.failed
            if not writer.step.rivals and writer.step.embed is None
        ]

    def allowed(self, steps: Mapping[str, Step]) -> dict[str, Step]:
        """What readers may see now: nothing but what was done, where somebody was told so."""
        return {name: self._left(name, step) for name, step in steps.items()}

    def _left(self, name: str, step: Step) -> Step:
        done = self.done.get(name, [])
        if not done or (step.rivals and done[0].call == 0):
            return step  # one may have read the document when the other was done
        assert len(done) == 1, f"{name} was committed twice from one row"
        return still(done[0].page)


def write_all(
    bench: Bench, writers: Sequence[Writer], ways: Sequence[Stores], act: Callable[[], None]
) -> Ended:
    """All writers at once; each stops before his call, where `act` breaks something for all, and
    goes on by his way.

    A writer may end with a plain sentence of ours; anything else is raised.
    """
    meeting = Meeting(len(writers), act)
    ended, lock = Ended(), threading.Lock()
    readers = {writer.name: threading.Barrier(1 + len(writer.step.rivals)) for writer in writers}

    def write(writer: Writer, way: Stores) -> None:
        turn = Turn(meeting, writer.call, readers[writer.name])
        stores = switching(bench.stores, way, turn)
        try:
            sync(stores, writer.name, writer.page, embedder_of(writer.step))
        except QuarryError as error:
            with lock:
                ended.failed.append((writer, error))
        else:
            with lock:
                ended.done.setdefault(writer.name, []).append(writer)
        finally:
            turn.come()
            turn.readers.abort()

    with ThreadPoolExecutor(len(writers)) as pool:
        list(pool.map(write, writers, ways))
    for _, error in ended.failed:
        assert "\n" not in str(error)
        assert len(str(error)) < 300
    return ended


# ----------------------------------------------------------------------------------------- ways


@dataclass(frozen=True, slots=True)
class Way:
    """A writer's own way to the stores, where one of them lies behind a proxy."""

    proxy: Proxy
    stores: Stores


@contextmanager
def ways_to(
    store: str, port: int, bench: Bench, number: int, limits: Mapping[str, float]
) -> Iterator[list[Way]]:
    """Each with a proxy and a connection of its own; when they end, nothing is on its way still."""
    proxies = [Proxy(port).start() for _ in range(number)]
    opened = [
        open_stores(_through(proxy, store, bench.settings, limits), GENERATION) for proxy in proxies
    ]
    if store == MILVUS:  # its first request is not its only one: it gets to know the server
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(_greet, opened))
    try:
        yield [
            Way(proxy, _only(store, bench.stores, stores))
            for proxy, stores in zip(proxies, opened, strict=True)
        ]
    finally:
        for proxy, stores in zip(proxies, opened, strict=True):
            proxy.stop()
            stores.close()


def _greet(stores: Stores) -> None:
    """However short its limits are: nothing is broken yet, and a busy machine may take longer."""
    deadline = time.monotonic() + PATIENT_S
    while time.monotonic() < deadline:
        with suppress(StoreUnavailable):
            stores.vectors.count()
            return
    raise StoreUnavailable("Milvus was not reached through its proxy.")


def _through(proxy: Proxy, store: str, settings: Settings, limits: Mapping[str, float]) -> Settings:
    address = {ADDRESS[store]: f"http://127.0.0.1:{proxy.port}"}
    return changed(settings, **{store: {**address, **limits}})


def _only(store: str, straight: Stores, through: Stores) -> Stores:
    if store == MILVUS:
        return replace(straight, vectors=through.vectors)
    return replace(straight, catalog=through.catalog, text=through.text)
