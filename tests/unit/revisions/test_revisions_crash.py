"""A writer may die at any store call, or in the middle of one: readers see all old or all new.

Afterwards one more sync converges and leaves no garbage, be it to the new state of the source or,
if the source was changed back, to the old one.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from itertools import count
from pathlib import Path

import pytest

from loadtests.chaos.watch import watched
from quarry import attempts, revisions
from quarry.records import Principal
from quarry.settings import Settings
from quarry.settings_stores import MilvusSettings
from quarry.stores.factory import Stores
from quarry.stores.memory import MemoryVectorStore
from quarry.stores.milvus import MilvusVectorStore
from quarry.stores.milvus_lite import server_address, vector_server
from quarry.stores.sqlite import Database
from quarry.stores.sqlite_catalog import SqliteCatalog
from quarry.stores.sqlite_text import SqliteTextStore
from tests.unit.revisions.revision_world import (
    DIMENSION,
    DOC,
    PEOPLE,
    Crash,
    CrashAt,
    Page,
    garbage,
    incomplete,
    is_whole,
    may_see,
    memory_stores,
    read,
    region,
    shows,
    sync,
)

OpenStores = Callable[[], Stores]
Told = Callable[[str, int], None]


def page(count: int, word: str = "old", **more: object) -> Page:
    return Page(tuple(f"{word} passage {n}" for n in range(count)), **more)  # type: ignore[arg-type]


@dataclass(frozen=True)
class Step:
    before: Page | None
    after: Page | None


STEPS = {
    "create": Step(None, page(4)),
    "update": Step(page(4), Page(("old passage 0", "old passage 1", "new one", "new two"))),
    "shrink from 30 to 5": Step(page(30), page(5)),
    "grow from 5 to 30": Step(page(5), page(30)),
    "replace everything": Step(page(4), page(3, "new")),
    "delete": Step(page(4), None),
    "narrow the ACL": Step(page(4, acl=("public", "hr")), page(4, acl=("hr",))),
    "widen the ACL": Step(page(4, acl=("hr",)), page(4, acl=("hr", "eng"))),
    "exchange the ACL": Step(page(4, acl=("hr", "ops")), page(4, acl=("eng", "ops"))),
    "change metadata": Step(page(4, metadata={"region": "EU"}), page(4, metadata={"region": "US"})),
    "narrow the ACL of copied rows": Step(
        page(4, acl=("public", "hr")), page(4, acl=("hr",), copied=True)
    ),
    "exchange the ACL of copied rows": Step(
        page(4, acl=("hr", "ops")), page(4, acl=("eng", "ops"), copied=True)
    ),
    "change all at once": Step(
        page(4, acl=("hr", "ops"), metadata={"region": "EU"}),
        page(6, "new", acl=("ops", "eng"), metadata={"region": "US"}),
    ),
}


def check_readers(stores: Stores, step: Step) -> None:
    """Each person sees the old page, the new one, or, if one of them is not theirs, nothing."""
    assert incomplete(stores) == []
    for person in PEOPLE:
        old, new = may_see(person, step.before), may_see(person, step.after)
        seen = read(stores, person).get(DOC)
        if seen is None:
            assert not (old and new), f"{person.groups} lost sight of it"
        elif seen.document.acl and not (new and is_whole(seen, new)):
            assert old, f"{person.groups} sees what is forbidden"
            assert is_whole(seen, old), "a mixed or partial page"
        if old and new:
            check_filters(stores, person, step)


def check_filters(stores: Stores, person: Principal, step: Step) -> None:
    """A page is found by its region, old or new, never by neither."""
    pages = [p for p in (step.before, step.after) if p and "region" in p.metadata]
    found = [
        is_whole(seen, p)
        for p in pages
        if (seen := read(stores, person, region(str(p.metadata["region"]))).get(DOC))
    ]
    assert found == ([True] if pages else [])


def crashes(open_stores: OpenStores, step: Step) -> Iterator[Stores]:
    """The stores as a crash leaves them, for every call of the step, whole and torn."""
    for torn in (False, True):
        for call in range(1000):
            stores = open_stores()
            if step.before:
                sync(stores, step.before)
            hook = CrashAt(call, torn)
            try:
                sync(watched(stores, hook), step.after)
            except Crash:
                yield stores
            else:
                break
        else:
            raise AssertionError("the step does not end")


@pytest.fixture
def told(capsys: pytest.CaptureFixture[str]) -> Told:
    """Prints how many crash points a proof went through."""

    def tell(what: str, points: int) -> None:
        with capsys.disabled():
            sys.stdout.write(f"{what}: {points} crash points, 0 violations\n")
        assert points >= 8

    return tell


@pytest.fixture(autouse=True)
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that a document of 30 chunks takes several store calls a step."""
    monkeypatch.setattr(attempts, "BATCH_ROWS", 8)
    monkeypatch.setattr(revisions, "BATCH_ROWS", 8)


@pytest.fixture
def open_sqlite(tmp_path: Path) -> Iterator[OpenStores]:
    numbers = count()
    with ExitStack() as opened:

        def open_stores() -> Stores:
            database = Database(tmp_path / f"{next(numbers)}.sqlite")
            opened.callback(database.close)
            retention = timedelta(0)
            stores = Stores(
                SqliteCatalog(database, "g1", retention=retention),
                SqliteTextStore(database, "g1"),
                MemoryVectorStore(),
            )
            stores.ensure(DIMENSION)
            return stores

        yield open_stores


@pytest.fixture(scope="module")
def open_lite(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OpenStores]:
    """Vectors in Milvus Lite, everything else in memory."""
    settings = Settings(data_dir=tmp_path_factory.mktemp("data"))
    numbers = count(1)
    opened: list[MilvusVectorStore] = []

    def open_stores() -> Stores:
        address = partial(server_address, settings)
        opened.append(MilvusVectorStore(MilvusSettings(), f"g{next(numbers)}", address=address))
        stores = replace(memory_stores(), vectors=opened[-1])
        stores.ensure(DIMENSION)
        return stores

    with vector_server(settings):
        yield open_stores
        for store in opened:
            store.close()


def prove(open_stores: OpenStores, step: Step) -> int:
    points = 0
    for stores in crashes(open_stores, step):
        points += 1
        check_readers(stores, step)
        sync(stores, step.after)
        assert shows(stores, step.after)
        assert garbage(stores) == []
    return points


def prove_change_of_mind(open_stores: OpenStores, step: Step) -> int:
    points = 0
    for stores in crashes(open_stores, step):
        points += 1
        sync(stores, step.before)
        assert shows(stores, step.before)
        if step.before or stores.catalog.get([DOC]):
            assert garbage(stores) == []
    return points


@pytest.mark.parametrize("name", STEPS)
def test_in_memory_every_crash_is_all_old_or_all_new(name: str, told: Told) -> None:
    told(f"memory, {name}", prove(memory_stores, STEPS[name]))


@pytest.mark.parametrize("name", STEPS)
def test_in_memory_a_change_of_mind_after_a_crash_converges(name: str, told: Told) -> None:
    told(f"memory, {name} taken back", prove_change_of_mind(memory_stores, STEPS[name]))


@pytest.mark.parametrize("name", STEPS)
def test_in_sqlite_every_crash_is_all_old_or_all_new(
    name: str, open_sqlite: OpenStores, told: Told
) -> None:
    told(f"SQLite, {name}", prove(open_sqlite, STEPS[name]))


@pytest.mark.parametrize("name", ["update", "delete", "exchange the ACL"])
def test_in_milvus_lite_every_crash_is_all_old_or_all_new(
    name: str, open_lite: OpenStores, told: Told
) -> None:
    told(f"Milvus Lite, {name}", prove(open_lite, STEPS[name]))
