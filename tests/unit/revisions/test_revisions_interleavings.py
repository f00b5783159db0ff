"""Writers and readers of one document at once, scheduled at every store call.

Each actor is a greenlet that stops before every store call; a schedule says who goes on. Small
cases are explored exhaustively, or up to a number of preemptions (Musuvathi and Qadeer 2007: few
are enough to find most races), larger ones with seeded random schedules in which actors also
crash. After every single call, whatever the catalog serves must be whole in both stores.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import pairwise

import pytest
from greenlet import GreenletExit, getcurrent, greenlet

from loadtests.chaos.watch import Hook, watched
from quarry import revisions
from quarry.errors import Conflict
from quarry.ids import token_serial
from quarry.records import Principal
from quarry.stores.factory import Stores
from tests.unit.revisions.revision_world import (
    DOC,
    Page,
    document_of,
    garbage,
    incomplete,
    is_whole,
    may_see,
    memory_stores,
    read,
    shows,
    sync,
)

Actor = Callable[[Stores], None]
Choose = Callable[[Sequence[str], str], str]
"""From the actors that can go on, and the one that went last, who goes next."""

OLD = Page(("one", "two"), acl=("hr", "ops"))
NEW = Page(("one", "three"), acl=("hr", "ops"))
NEWER = Page(("four",), acl=("hr", "ops"))
NARROW = Page(("one", "two"), acl=("ops",))
WIDE = Page(("one", "two"), acl=("hr", "ops", "eng"))
BROKEN = Page(("?",), acl=("hr", "ops"), broken=True)
PAGES = {document_of(page).content_hash: page for page in (OLD, NEW, NEWER)}

HR = Principal(user="x", groups=("hr",))
OPS = Principal(user="x", groups=("ops",))


# ------------------------------------------------------------------------------------- actors


def writer(page: Page | None) -> Actor:
    """One sync; it gives up when another writer was faster, as an ingest does."""

    def act(stores: Stores) -> None:
        with suppress(Conflict):
            sync(stores, page)

    return act


def settler(stores: Stores) -> None:
    document = stores.catalog.get([DOC]).get(DOC)
    if document:
        with suppress(Conflict):
            revisions.settle(stores, document)


def reader(person: Principal, raw: Stores, *, always: bool) -> Actor:
    """Looks once. `always`: this person may read every page, and none of the actors deletes."""

    def act(stores: Stores) -> None:
        at_start = raw.catalog.get([DOC]).get(DOC)
        seen = read(stores, person).get(DOC)
        if at_start is None or not at_start.revision:
            return  # it is being created: any part of the new page may be found already
        if seen is None:
            assert not always, "a document disappeared while it was changed"
            return
        assert is_whole(seen, PAGES[seen.document.content_hash]), "a mixed or partial page"
        assert set(person.groups) & set(seen.document.acl), "a forbidden page"

    return act


# ---------------------------------------------------------------------------------- schedules


@dataclass
class Prefix:
    """Chooses by `path` as far as it goes, then lets each actor run on; notes its options."""

    path: Sequence[int]
    preemptions: int
    taken: list[int] = field(default_factory=list)
    options: list[int] = field(default_factory=list)
    spent: int = 0

    def __call__(self, ready: Sequence[str], last: str) -> str:
        going_on = last in ready
        order = [last, *(name for name in ready if name != last)] if going_on else list(ready)
        if going_on and self.spent >= self.preemptions:
            order = order[:1]
        depth = len(self.taken)
        choice = self.path[depth] if depth < len(self.path) else 0
        self.spent += going_on and choice > 0
        self.taken.append(choice)
        self.options.append(len(order))
        return order[choice]


def all_schedules(preemptions: int) -> Iterator[Prefix]:
    """Every schedule with at most so many preemptions; run each before asking for the next."""
    path: list[int] | None = []
    while path is not None:
        schedule = Prefix(path, preemptions)
        yield schedule
        path = None
        for depth in reversed(range(len(schedule.taken))):
            if schedule.taken[depth] + 1 < schedule.options[depth]:
                path = [*schedule.taken[:depth], schedule.taken[depth] + 1]
                break


@dataclass
class RandomChoice:
    chance: random.Random

    def __call__(self, ready: Sequence[str], last: str) -> str:
        return self.chance.choice(ready)


def run(
    raw: Stores, actors: Mapping[str, Actor], choose: Choose, crashes: Mapping[str, int]
) -> int:
    """Runs all actors to their end, but those in `crashes` only up to that call of theirs.

    Gives the number of calls.
    """
    main = getcurrent()
    calls = dict.fromkeys(actors, 0)

    def hook_of(name: str) -> Hook:
        def hook(*_: object) -> None:
            main.switch()
            if crashes.get(name) == calls[name]:
                raise GreenletExit
            calls[name] += 1

        return hook

    ready: dict[str, greenlet] = {}
    for name, actor in actors.items():
        stores = watched(raw, hook_of(name))
        ready[name] = greenlet(lambda act=actor, seen=stores: act(seen))
    last = ""
    while ready:
        last = choose(list(ready), last)
        ready[last].switch()
        if ready[last].dead:
            del ready[last]
        assert incomplete(raw) == [], "the catalog serves what a store lacks"
    return sum(calls.values())


def check_end(stores: Stores, final: Page) -> None:
    """What was committed in which order is sound, and one more sync converges and cleans up."""
    for row in stores.catalog.history(DOC):
        assert not row.revision or token_serial(row.revision) < row.serial
    for before, after in pairwise(stores.catalog.history(DOC)):
        if after.revision not in ("", before.revision):
            assert token_serial(after.revision) == before.serial, "it was decided on an old row"
    sync(stores, final)
    assert shows(stores, final)
    assert garbage(stores) == []


# ----------------------------------------------------------------------------------- the proof


@pytest.fixture(scope="module")
def counts() -> dict[str, int]:
    """Interleavings tried, by case; the last test of the file prints and adds them."""
    return {}


ALL = 1000
"""More preemptions than any schedule has: every interleaving there is."""
Case = tuple[Page | None, dict[str, Page | None], int]
CASES: dict[str, Case] = {
    "two creators": (None, {"a": NEW, "b": NEWER}, 3),
    "two updaters": (OLD, {"a": NEW, "b": NEWER}, 3),
    "an updater and a deleter": (OLD, {"a": NEW, "b": None}, 3),
    "a creator and a deleter": (None, {"a": NEW, "b": None}, ALL),
    "two deleters": (OLD, {"a": None, "b": None}, ALL),
    "a narrower ACL and an update": (OLD, {"a": NARROW, "b": NEWER}, 2),
    "a wider ACL and a narrower one": (OLD, {"a": WIDE, "b": NARROW}, 2),
    "a wider ACL and a deleter": (OLD, {"a": WIDE, "b": None}, 3),
    "an updater and a failure": (OLD, {"a": NEW, "b": BROKEN}, ALL),
    "two updaters and a deleter": (OLD, {"a": NEW, "b": NEWER, "c": None}, 1),
}


@pytest.mark.parametrize("name", CASES)
def test_writers_leave_a_whole_page_in_every_schedule(name: str, counts: dict[str, int]) -> None:
    before, pages, preemptions = CASES[name]
    count = 0
    for schedule in all_schedules(preemptions):
        stores = memory_stores()
        if before:
            sync(stores, before)
        actors = {actor: writer(page) for actor, page in pages.items()}
        run(stores, actors, schedule, {})
        check_end(stores, NEWER)
        count += 1
    counts[name] = count


READING: dict[str, tuple[Page | None, Page | None, Principal, int]] = {
    "an update": (OLD, NEW, HR, 3),
    "a creation": (None, NEW, HR, ALL),
    "a deletion": (OLD, None, HR, ALL),
    "a narrower ACL, by who keeps it": (OLD, NARROW, OPS, 3),
    "a narrower ACL, by who loses it": (OLD, NARROW, HR, 3),
    "a wider ACL": (OLD, WIDE, HR, 3),
}


@pytest.mark.parametrize("name", READING)
def test_a_reader_sees_one_whole_page_in_every_schedule(name: str, counts: dict[str, int]) -> None:
    before, after, person, preemptions = READING[name]
    always = may_see(person, after) is not None
    count = 0
    for schedule in all_schedules(preemptions):
        stores = memory_stores()
        if before:
            sync(stores, before)
        actors = {"w": writer(after), "r": reader(person, stores, always=always)}
        run(stores, actors, schedule, {})
        count += 1
    counts[f"reading during {name}"] = count


def test_what_was_forbidden_or_deleted_is_not_seen_by_any_later_reader(
    counts: dict[str, int],
) -> None:
    count = 0
    for after in (NARROW, None):
        for schedule in all_schedules(preemptions=1):
            stores = memory_stores()
            sync(stores, OLD)

            def late(seen: Stores, raw: Stores = stores) -> None:
                row = raw.catalog.get([DOC])[DOC]
                allowed = bool(row.revision) and "hr" in row.acl
                assert allowed or not read(seen, HR)

            run(stores, {"w": writer(after), "u": writer(NARROW), "r": late}, schedule, {})
            count += 1
    counts["late readers"] = count


SEEDS = 2500


def test_random_crowds_with_crashes(counts: dict[str, int]) -> None:
    count = 0
    for seed in range(SEEDS):
        chance = random.Random(seed)
        stores = memory_stores()
        if chance.random() < 0.8:
            sync(stores, OLD)
        pages = chance.sample([OLD, NEW, NEWER, WIDE, BROKEN, None], k=3)
        actors = {f"w{n}": writer(page) for n, page in enumerate(pages)}
        actors |= {"r": reader(HR, stores, always=None not in pages), "s": settler}
        crashes = {f"w{n}": chance.randrange(16) for n in range(2) if chance.random() < 0.3}
        run(stores, actors, RandomChoice(chance), crashes)
        check_end(stores, NEWER)
        count += 1
    counts["random crowds"] = count


def test_at_least_ten_thousand_interleavings_were_tried(
    counts: dict[str, int], capsys: pytest.CaptureFixture[str]
) -> None:
    if len(counts) < len(CASES) + len(READING) + 2:
        pytest.skip("only part of this file was run")
    lines = [f"{name}: {count} interleavings, 0 violations" for name, count in counts.items()]
    total = sum(counts.values())
    with capsys.disabled():
        sys.stdout.write("\n".join(["", *lines, f"in all: {total} interleavings, 0 violations\n"]))
    assert total >= 10_000
