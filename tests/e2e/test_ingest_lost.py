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


def run_sql(world: World, statement: str) -> None:
    path = world.root / "data" / "quarry.sqlite"
    with closing(sqlite3.connect(path)) as db, db:
        db.execute(statement)


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


def test_an_ingest_reads_what_one_source_lost_though_others_have_more(
    world: World,
) -> None:
    other = world.root / "other"
    other.mkdir()
    for number in range(5):
        (other / f"{number}.md").write_text(f"# {number}\n\nWord {number}.\n", encoding="utf-8")
    world.sync(other)
    lose(world, {"a.md"})
    assert world.sync().indexed == 1
    assert world.found("zebra") == {"a.md"}
    assert world.is_clean()


# -------------------------------------------------------------------------------- lost entries

GONE = {
    "all": "DELETE FROM entries_g1",
    "those of addresses": "DELETE FROM entries_g1 WHERE address <> '/'",
    "one": "DELETE FROM entries_g1 WHERE address = 'a.md'",
    "that of the source": "DELETE FROM entries_g1 WHERE address = '/'",
    "one file of records": "DELETE FROM entries_g1 WHERE address = 'c.jsonl'",
}


@pytest.mark.parametrize("what", GONE)
def test_what_has_no_entry_goes_with_its_file(world: World, what: str) -> None:
    run_sql(world, GONE[what])
    world.remove("a.md")
    world.remove("c.jsonl")
    summary = world.sync()
    assert (summary.exit_code, summary.deleted) == (0, 3)
    assert set(world.rows()) == {"b.md"}
    assert world.is_clean()
    assert world.sync(pipeline=None).deleted == 0


def test_documents_without_an_entry_are_named_marked_and_go_with_their_file(
    world: World,
) -> None:
    run_sql(world, GONE["all"])
    world.remove("a.md")
    wanted = {Reread(source="docs", address=each) for each in ("a.md", "b.md", "c.jsonl")}
    for repair in (False, True):
        report = verified(world, repair=repair)
        assert report.found == {Kind.DOCUMENTS_WITHOUT_ENTRY: 3}
        assert set(report.reread) == wanted
        assert not report.clean
    assert world.is_clean()
    summary = world.sync()
    assert (summary.deleted_uris, summary.embedded) == (("a.md",), 0)
    assert set(world.rows()) == ALL - {"a.md"}
    assert world.is_clean()


def test_a_lost_table_of_entries_comes_back_by_a_repair_and_an_ingest(world: World) -> None:
    run_sql(world, "DROP TABLE entries_g1")
    world.remove("a.md")
    assert Kind.DOCUMENTS_WITHOUT_ENTRY in verified(world, repair=True).found
    assert world.sync().deleted_uris == ("a.md",)
    assert set(world.rows()) == ALL - {"a.md"}
    assert world.is_clean()


def test_lost_documents_do_not_hide_those_without_an_entry(world: World) -> None:
    lose(world, {"b.md"})
    run_sql(world, GONE["one"])
    found = verified(world, repair=False).found
    assert found[Kind.LOST_DOCUMENTS] == found[Kind.DOCUMENTS_WITHOUT_ENTRY] == 1
