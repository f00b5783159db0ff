"""One chaos run: start, fill, break while others write and read, heal, last sync, judge."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from multiprocessing.context import ForkServerContext
from pathlib import Path

from loadtests.chaos import reader, writer
from loadtests.chaos.breakers import Breaker, WriterKeeper
from loadtests.chaos.journal import Journal, RecordedCatalog
from loadtests.chaos.pages import ACLS, SHORT, Author
from loadtests.chaos.proxy import Proxy
from loadtests.chaos.report import Report, report_of
from loadtests.chaos.schedule import server_faults, writer_kills
from loadtests.chaos.servers import (
    SHORT_SESSION_S,
    Elasticsearch,
    Milvus,
    Server,
    install_tools,
)
from loadtests.chaos.sync import sync_batch
from loadtests.chaos.world import World, fork_context, prepare, settings_of
from quarry.errors import QuarryError
from quarry.stores.factory import Stores
from quarry.verify import verify

SAY_S = 15.0
"""Seconds between two lines of progress."""

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    folder: Path
    seconds: float
    seed: int
    documents: int = 40
    writers: int = 2
    readers: int = 4
    timeout_s: float = 2.0
    """Of one request to a store; a call with its retries may take 2.5 times as long."""


def run(plan: Plan, say: Say) -> Report:
    """Raises QuarryError if the servers cannot be started, or the folder was used before."""
    if (plan.folder / "journals").exists():
        raise QuarryError("The folder holds another run; name one that is new.")
    started = time.monotonic()
    install_tools()
    with ExitStack() as opened:
        servers = opened.enter_context(_servers(plan.folder))
        proxies = {name: Proxy(server.port).start() for name, server in servers.items()}
        for proxy in proxies.values():
            opened.callback(proxy.stop)
        world = _world(plan, proxies)
        with _recorded(world, "writer-first") as (stores, journal):
            prepare(stores)
            _fill(stores, journal, world)
        say(f"{plan.documents} documents are in; now things break")
        context = fork_context(["loadtests.chaos.writer", "loadtests.chaos.reader"])
        with _reading(context, world, plan.readers):
            with _writing(context, world, plan) as keepers:
                with _breaking(world, servers, proxies) as breakers:
                    _wait(plan.seconds, breakers, keepers, say)
                say("all is healed")
            made = _made(breakers, keepers)
            say("one more sync of everything")
            with _recorded(world, "writer-last") as (stores, journal):
                _last_sync(stores, journal, world)
                stores.vectors.flush()
                checked = verify(stores, repair=False)
            say("a last look by everybody at everything")
        say("judging")
        return report_of(world.journals, facts=_facts(plan, started), made=made, verified=checked)


def _facts(plan: Plan, started: float) -> dict[str, float]:
    return {
        "seed": plan.seed,
        "minutes": round(plan.seconds / 60, 2),
        "seconds": round(time.monotonic() - started, 1),
        "documents": plan.documents,
        "writers": plan.writers,
        "readers": plan.readers,
    }


def _world(plan: Plan, proxies: dict[str, Proxy]) -> World:
    settings = settings_of(
        plan.folder,
        elasticsearch=f"http://127.0.0.1:{proxies['elasticsearch'].port}",
        milvus=f"http://127.0.0.1:{proxies['milvus'].port}",
        timeout_s=plan.timeout_s,
        total_s=2.5 * plan.timeout_s,
    )
    return World(folder=plan.folder, settings=settings, seed=plan.seed, documents=plan.documents)


@contextmanager
def _servers(folder: Path) -> Iterator[dict[str, Server]]:
    """A pair that is this run's own; both are gone at the end."""
    search = Elasticsearch(folder / "elasticsearch")
    vectors = Milvus(folder / "milvus", session_s=SHORT_SESSION_S)
    with ExitStack() as running:
        for server in (search, vectors):
            running.callback(server.kill)
            server.start()
        yield {"elasticsearch": search, "milvus": vectors}


@contextmanager
def _recorded(world: World, name: str) -> Iterator[tuple[Stores, Journal]]:
    """Stores of this process, with long time limits, whose commits are noted."""
    opened, journal = world.patient.stores(), Journal(world.journals / f"{name}.jsonl")
    yield replace(opened, catalog=RecordedCatalog.over(opened.catalog, journal)), journal
    opened.close()
    journal.close()


# ------------------------------------------------------------------------------------- the parts


def _fill(stores: Stores, journal: Journal, world: World) -> None:
    author = Author("first", random.Random(world.seed))  # noqa: S311
    pages = {
        name: author.page(SHORT * (1 + number % 6), ACLS[number % len(ACLS)])
        for number, name in enumerate(world.names)
    }
    for page in pages.values():
        journal.note_page(page)
    for name, outcome in sync_batch(stores, pages).items():
        if outcome.document is None:
            raise QuarryError(f"The first writing of {name} failed: {outcome.error}")


@contextmanager
def _reading(context: ForkServerContext, world: World, readers: int) -> Iterator[None]:
    """Readers in a process of their own; at the end each asks once more for everything."""
    process = context.Process(target=reader.read, args=(world, readers), daemon=True)
    process.start()
    try:
        yield
        world.tell(reader.STOP)
        process.join()
    finally:
        process.kill()
    if process.exitcode:
        raise QuarryError(f"The readers ended with exit code {process.exitcode}; see above.")


@contextmanager
def _writing(
    context: ForkServerContext, world: World, plan: Plan
) -> Iterator[Sequence[WriterKeeper]]:
    """Writers that are killed and started again; at the end each finishes its step."""
    keepers = [
        WriterKeeper(context, world, number, writer_kills(plan.seed, number))
        for number in range(plan.writers)
    ]
    for keeper in keepers:
        keeper.start()
    try:
        yield keepers
    finally:
        world.tell(writer.STOP)
        for keeper in keepers:
            keeper.end()


@contextmanager
def _breaking(
    world: World, servers: dict[str, Server], proxies: dict[str, Proxy]
) -> Iterator[Sequence[Breaker]]:
    """Everything breaks; at the end all servers run and can be reached."""
    journal = Journal(world.journals / "breakers.jsonl")
    breakers = [
        Breaker(name, servers[name], proxies[name], server_faults(world.seed, name), journal)
        for name in servers
    ]
    for breaker in breakers:
        breaker.start()
    try:
        yield breakers
    finally:
        for breaker in breakers:
            breaker.end()
        journal.close()
    for breaker in breakers:
        if breaker.error:
            raise breaker.error


def _wait(
    seconds: float, breakers: Sequence[Breaker], keepers: Sequence[WriterKeeper], say: Say
) -> None:
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        if any(breaker.error for breaker in breakers):
            return
        time.sleep(min(SAY_S, left))
        made = _made(breakers, keepers)
        counted = ", ".join(f"{name} {made[name]}" for name in sorted(made))
        say(f"{max(0.0, end - time.monotonic()):.0f} s left; {counted}")


def _made(breakers: Sequence[Breaker], keepers: Sequence[WriterKeeper]) -> Counter[str]:
    made: Counter[str] = Counter()
    for breaker in breakers:
        for kind, count in breaker.made.items():
            made[f"{kind} {breaker.label}"] += count
    made["kill writer"] = sum(keeper.kills for keeper in keepers)
    made["died writer"] = sum(keeper.deaths for keeper in keepers)
    return made


def _last_sync(stores: Stores, journal: Journal, world: World) -> None:
    """One more sync of everything: most as it is, some edited, some deleted."""
    chance = random.Random(f"{world.seed}-last")  # noqa: S311
    last = writer.Writer(stores, journal, chance, Author("last", chance))
    for name in world.names:
        last.write_one(name, chance.choice(("settle", "settle", "settle", "edit", "delete")))
