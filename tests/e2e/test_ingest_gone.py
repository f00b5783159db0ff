"""Stores that are gone as a whole: nobody passes over it, and verify and ingest bring them back."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing

import pytest

from quarry.access import EVERYTHING
from quarry.errors import StoreLost
from quarry.verify import verify
from quarry.verify_report import Kind, VerifyReport
from tests.e2e.ingest_world import World

WAY_BACK = "gone; run: quarry verify --repair, then quarry ingest\\.$"


@pytest.fixture(autouse=True)
def filled(world: World) -> None:
    world.write("a.md", "# A\n\nThe word is zebra.\n")
    world.write("c.jsonl", '{"_id": "1", "text": "One is said."}\n{"_id": "2", "text": "Two."}\n')
    world.sync()


def vectors(world: World) -> None:
    with world.stores() as stores:
        stores.vectors.drop()


def text(world: World) -> None:
    with world.stores() as stores:
        stores.text.drop()


def chunks(world: World) -> None:
    with closing(sqlite3.connect(world.root / "data" / "quarry.sqlite")) as db, db:
        db.execute("DROP TABLE chunks_g1")


def both(world: World) -> None:
    text(world)
    vectors(world)


LOSSES = {
    vectors: {Kind.MISSING_VECTORS},
    text: {Kind.MISSING_TEXT},
    chunks: {Kind.MISSING_TEXT},
    both: {Kind.MISSING_TEXT, Kind.MISSING_VECTORS},
}


def verified(world: World, *, repair: bool) -> VerifyReport:
    with world.stores() as stores:
        return verify(stores, repair=repair)


@pytest.mark.parametrize("lose", LOSSES)
def test_a_lost_store_comes_back_by_a_repair_and_an_ingest(
    world: World, lose: Callable[[World], None]
) -> None:
    lose(world)
    found = verified(world, repair=False).found
    assert {Kind(kind) for kind in found} >= LOSSES[lose]
    assert set(verified(world, repair=True).found) == set(found)
    assert world.sync().indexed == 3
    assert world.is_clean()
    assert world.found("zebra") == {"a.md"}
    with world.stores() as stores:
        assert stores.vectors.count() == 3


@pytest.mark.parametrize("lose", LOSSES)
def test_who_reads_or_writes_is_told_of_a_lost_store_until_it_is_repaired(
    world: World, lose: Callable[[World], None]
) -> None:
    lose(world)
    world.write("new.md", "# New\n\nNothing of the rest would be found.\n")
    for act in (world.sync, lambda: world.delete("a.md"), lambda: search(world)):
        verified(world, repair=False)  # which makes nothing
        with pytest.raises(StoreLost, match=WAY_BACK):
            act()
    verified(world, repair=True)
    assert world.sync().indexed == 4
    assert world.is_clean()


def search(world: World) -> None:
    with world.stores() as stores:
        stores.text.search("zebra", limit=1, where=EVERYTHING)
        stores.vectors.search([1.0] * 64, limit=1, where=EVERYTHING)  # type: ignore[arg-type]
