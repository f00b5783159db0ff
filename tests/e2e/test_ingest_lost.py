"""A catalog that lost documents though their entries are there: an empty or older copy of it."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest

from quarry.verify import verify
from quarry.verify_report import Kind, Reread, VerifyReport
from tests.e2e.ingest_world import InlinePipeline, World

RECORDS = '{"_id": "1", "text": "One is said."}\n{"_id": "2", "text": "Two is said."}\n'
ALL = {"a.md", "b.md", "c.jsonl#1", "c.jsonl#2"}


@pytest.fixture(autouse=True)
def filled(world: World) -> None:
    world.write("a.md", "# A\n\nThe word is zebra.\n")
    world.write("b.md", "# B\n\nThe word is okapi.\n")
    world.write("c.jsonl", RECORDS)
    world.sync()


def lose(world: World, uris: set[str]) -> None:
    path = world.root / "data" / "quarry.sqlite"
    with closing(sqlite3.connect(path)) as db, db:
        for doc_id in [row.doc_id for uri, row in world.rows().items() if uri in uris]:
            for table in ("documents_g1", "history_g1"):
                db.execute(f"DELETE FROM {table} WHERE doc_id = ?", (doc_id,))


def verified(world: World, *, repair: bool) -> VerifyReport:
    with world.stores() as stores:
        return verify(stores, repair=repair)


@pytest.mark.parametrize(
    ("lost", "addresses"),
    [(ALL, ["a.md", "b.md", "c.jsonl"]), ({"b.md"}, ["b.md"]), ({"c.jsonl#2"}, ["c.jsonl"])],
)
def test_lost_documents_are_named_marked_and_read_again(
    world: World, lost: set[str], addresses: list[str]
) -> None:
    lose(world, lost)
    wanted = tuple(Reread(source="docs", address=address) for address in addresses)
    for repair in (False, True):
        report = verified(world, repair=repair)
        assert report.found[Kind.LOST_DOCUMENTS] == len(addresses)
        assert set(report.reread) == set(wanted)
        assert not report.clean
    pipeline = InlinePipeline()
    summary = world.sync(pipeline=pipeline)
    assert set(pipeline.read) == set(addresses)
    assert summary.embedded == 0, "the rows of lost documents were kept for their vectors"
    assert set(world.rows()) == ALL
    assert world.found("zebra") == {"a.md"}
    assert verified(world, repair=True).clean and world.is_clean()


def test_rows_of_lost_documents_go_once_their_addresses_are_marked(world: World) -> None:
    lose(world, ALL)
    assert verified(world, repair=True).repaired == {}
    assert verified(world, repair=True).repaired == {Kind.ROWS_OF_NO_DOCUMENT: 4}
    assert world.sync().indexed == 4


def test_an_ingest_reads_what_the_catalog_lost_without_being_told(world: World) -> None:
    lose(world, {"a.md", "c.jsonl#1"})
    pipeline = InlinePipeline()
    assert world.sync(pipeline=pipeline).indexed == 2
    assert pipeline.read == ["a.md", "c.jsonl"]
    assert set(world.rows()) == ALL
    assert world.is_clean()


def test_what_was_deleted_is_not_lost(world: World) -> None:
    world.delete("b.md", "c.jsonl#1")
    world.remove("a.md")
    world.sync()
    assert world.is_clean()
