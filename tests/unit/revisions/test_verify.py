"""Verify names every way in which catalog and stores can differ, and mends what can be mended."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, replace
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from quarry import retention, revisions
from quarry.access import EVERYTHING
from quarry.errors import Conflict
from quarry.ids import digest, new_token, row_id
from quarry.records import DocState, Document
from quarry.stores.factory import Stores
from quarry.stores.sqlite import open_database
from quarry.verify import PAGE_DOCUMENTS, verify
from quarry.verify_report import Kind, Progress, Reread
from tests.contract.catalog import entry
from tests.contract.rows import at, document, vector
from tests.unit.revisions.verify_world import (
    assert_mended,
    chunks,
    ingest,
    kinds,
    memory,
    plant,
    rows_of,
    served,
    sqlite,
)


@pytest.fixture(params=["memory", "sqlite"])
def stores(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Stores]:
    made = memory() if request.param == "memory" else sqlite(tmp_path)
    yield made
    made.close()


def test_what_the_protocol_leaves_is_clean(stores: Stores) -> None:
    ingest(stores, "a", ["one", "two"])
    ingest(stores, "a", ["one", "three"])
    gone = ingest(stores, "b", ["x"])
    revisions.delete(stores, gone)
    revisions.record_failure(stores, None, document("c", state=DocState.CORRUPT, revision=""))
    report = verify(stores, repair=False)
    assert report.clean and not report.differences and not report.reread
    assert (report.documents, report.text_rows, report.vector_rows) == (3, 2, 2)


def test_an_empty_index_is_clean(stores: Stores) -> None:
    assert verify(stores, repair=True).clean


@pytest.mark.parametrize("where", ["both", "text", "vectors"])
def test_rows_of_a_replaced_revision_are_swept(stores: Stores, where: str) -> None:
    ingest(stores, "a", ["one"])
    row = ingest(stores, "a", ["two"])
    plant(stores, row, new_token(0), where=where)
    assert kinds(verify(stores, repair=False)) == {Kind.REPLACED_ROWS: 1}
    report = verify(stores, repair=True)
    assert report.clean and report.repaired == {Kind.REPLACED_ROWS: 1}
    assert stores.catalog.get(["a"])["a"] == row, "nothing was committed to sweep what is dead"
    assert_mended(stores, {"a": ["two"]})


def test_rows_of_a_deleted_document_are_swept(stores: Stores) -> None:
    row = ingest(stores, "a", ["one"])
    tombstone = revisions.delete(stores, row).document
    assert tombstone is not None
    plant(stores, tombstone, row.revision)
    assert kinds(verify(stores, repair=False)) == {Kind.ROWS_OF_DELETED: 1}
    assert verify(stores, repair=True).clean
    assert rows_of(stores, "a") == set()
    assert stores.catalog.get(["a"])["a"].state is DocState.DELETED


def test_a_crashed_attempt_is_ended_by_a_commit_and_then_swept(stores: Stores) -> None:
    row = ingest(stores, "a", ["one"])
    plant(stores, row, new_token(row.serial), where="text")
    assert kinds(verify(stores, repair=False)) == {Kind.UNFINISHED_ROWS: 1}
    assert verify(stores, repair=True).clean
    now = stores.catalog.get(["a"])["a"]
    assert now.serial == row.serial + 1 and now.revision == row.revision
    with pytest.raises(Conflict):  # the attempt comes back to life and loses
        stores.catalog.commit(replace(row, revision=new_token(row.serial)))
    assert_mended(stores, {"a": ["one"]})


def test_rows_from_after_the_catalog_are_removed(stores: Stores) -> None:
    row = ingest(stores, "a", ["one"])
    plant(stores, row, new_token(row.serial + 7))
    assert kinds(verify(stores, repair=False)) == {Kind.ROWS_AHEAD: 1}
    assert verify(stores, repair=True).clean
    assert_mended(stores, {"a": ["one"]})


@pytest.mark.parametrize("where", ["both", "text", "vectors"])
@pytest.mark.parametrize("serial", [0, 3])
def test_rows_of_no_document_go_under_a_tombstone(stores: Stores, where: str, serial: int) -> None:
    plant(stores, document("ghost"), new_token(serial), where=where, count=3)
    report = verify(stores, repair=False)
    assert kinds(report) == {Kind.ROWS_OF_NO_DOCUMENT: 1}
    (found,) = report.differences
    counts = (3 * (where != "vectors"), 3 * (where != "text"))
    assert (found.doc_id, found.uri) == ("ghost", "")
    assert (found.text_rows, found.vector_rows) == counts
    assert verify(stores, repair=True).clean
    assert rows_of(stores, "ghost") == set()
    with pytest.raises(Conflict):
        stores.catalog.commit(document("ghost", serial=0))
    assert_mended(stores, {})
    ingest(stores, "ghost", ["now it is here"])
    assert_mended(stores, {"ghost": ["now it is here"]})


@pytest.mark.parametrize(
    ("lost", "found"),
    [
        ("text", {Kind.MISSING_TEXT: 1}),
        ("vectors", {Kind.MISSING_VECTORS: 1}),
        ("both", {Kind.MISSING_TEXT: 1, Kind.MISSING_VECTORS: 1}),
    ],
)
def test_lost_rows_are_marked_to_be_read_again(
    stores: Stores, lost: str, found: dict[str, int]
) -> None:
    row = ingest(stores, "a", ["one", "two"])
    ingest(stores, "b", ["whole"])
    target = row_id(digest("a", "two"), row.revision)
    if lost in ("text", "both"):
        stores.text.delete([target])
    if lost in ("vectors", "both"):
        stores.vectors.delete([target])
    looked = verify(stores, repair=False)
    assert kinds(looked) == found
    report = verify(stores, repair=True)
    assert looked.reread == report.reread
    assert not report.clean and report.repaired == {}
    assert report.reread == (Reread(source="handbook", address="a.md"),)
    entries = {entry.address: entry for entry in stores.catalog.entries("handbook")}
    assert (entries["a.md"].tag, entries["a.md"].state) == ("", DocState.FAILED)
    assert entries["b.md"].tag == "t"
    now = stores.catalog.get(["a"])["a"]
    assert now.recipe == "unread" and now.revision == row.revision, "what is left stays served"
    serial = now.serial
    verify(stores, repair=True)
    assert stores.catalog.get(["a"])["a"].serial == serial, "a mark is made once"
    ingest(stores, "a", ["one", "two"])
    assert_mended(stores, {"a": ["one", "two"], "b": ["whole"]})


def test_an_address_of_many_documents_is_marked_with_their_number(stores: Stores) -> None:
    for name in "abc":
        row = ingest(stores, name, [name], address="faq.jsonl")
    revisions.delete(stores, ingest(stores, "d", ["d"], address="faq.jsonl"))
    stores.vectors.delete([ref.row_id for ref in stores.vectors.row_refs(["a", "b"])])
    report = verify(stores, repair=True)
    assert report.reread == (Reread(source=row.source, address="faq.jsonl"),)
    (entry,) = stores.catalog.entries("handbook")
    assert (entry.documents, entry.state) == (3, DocState.FAILED)


def test_a_wrong_chunk_count_is_corrected_from_the_rows(stores: Stores) -> None:
    row = ingest(stores, "a", ["one", "two", "three"])
    stores.catalog.commit(replace(row, chunk_count=2))
    assert kinds(verify(stores, repair=False)) == {Kind.CHUNK_COUNT: 1}
    assert verify(stores, repair=True).clean
    assert_mended(stores, {"a": ["one", "two", "three"]})


def test_a_served_document_without_chunks_is_read_again(stores: Stores) -> None:
    row = ingest(stores, "a", ["one"])
    stores.catalog.commit(replace(row, chunk_count=0))
    for store in (stores.text, stores.vectors):
        store.delete([ref.row_id for ref in store.row_refs(["a"])])
    report = verify(stores, repair=True)
    assert kinds(report) == {Kind.CHUNK_COUNT: 1}
    assert report.reread == (Reread(source="handbook", address="a.md"),)


def test_rows_that_carry_wider_labels_get_those_of_the_catalog(stores: Stores) -> None:
    row = ingest(stores, "a", ["one"], acl=("hr", "public"))
    revisions.narrow(stores, row, replace(row, acl=("hr",)))
    assert kinds(verify(stores, repair=False)) == {Kind.OLD_LABELS: 1}
    assert verify(stores, repair=True).clean
    now = stores.catalog.get(["a"])["a"]
    assert now.acl == ("hr",) and now.revision != row.revision
    assert now.meta_hash not in ("", row.meta_hash), "the next ingest still compares the labels"
    assert_mended(stores, {"a": ["one"]})


def test_a_document_without_a_mark_of_its_metadata_is_no_difference(stores: Stores) -> None:
    ingest(stores, "a", ["one"], meta_hash="")
    assert verify(stores, repair=False).clean


def test_revisions_within_the_retention_are_kept() -> None:
    stores = memory(timedelta(hours=1))
    retention.advance(stores)
    old = ingest(stores, "a", ["one"])
    new = ingest(stores, "a", ["two"])
    assert rows_of(stores, "a") == {old.revision, new.revision}
    assert not verify(stores, repair=True).found
    assert rows_of(stores, "a") == {old.revision, new.revision}
    later = replace(stores, clock=lambda: at(8))
    assert kinds(verify(later, repair=False)) == {Kind.REPLACED_ROWS: 1}
    assert kinds(verify(later, repair=True)) == {Kind.REPLACED_ROWS: 1}
    assert rows_of(stores, "a") == {new.revision}
    assert stores.catalog.history("a") == [new]


def test_several_differences_of_one_document_are_all_named_and_mended(stores: Stores) -> None:
    ingest(stores, "a", ["zero"])
    row = ingest(stores, "a", ["one"], acl=("public", "hr"))
    row = revisions.narrow(stores, row, replace(row, acl=("hr",)))
    for serial in (0, row.serial, row.serial + 1):
        plant(stores, row, new_token(serial))
    found = kinds(verify(stores, repair=False))
    assert found == dict.fromkeys(
        [Kind.REPLACED_ROWS, Kind.UNFINISHED_ROWS, Kind.ROWS_AHEAD, Kind.OLD_LABELS], 1
    )
    report = verify(stores, repair=True)
    assert report.clean and report.repaired == found
    assert_mended(stores, {"a": ["one"]})


@pytest.mark.parametrize("table", ["fts", "labels", "codes"])
def test_rows_that_no_search_finds_are_named_and_written_anew(table: str, tmp_path: Path) -> None:
    stores = sqlite(tmp_path)
    coded = replace(chunks("a", ["zebra E-1042"])[0], identifiers=("E-1042",))
    made = document("a", revision="", serial=0, chunk_count=0)
    vectors = {coded.text_hash: vector(1.0)}
    revisions.commit_revision(stores, base=None, document=made, chunks=[coded], vectors=vectors)
    stores.catalog.put_entry(entry(made.address))
    ingest(stores, "b", ["okapi"], chunk_count=0)
    with open_database(tmp_path).write() as db:
        assert db.execute(f"DELETE FROM {table}_g1").rowcount
    assert Kind.UNSEARCHABLE_TEXT in verify(stores, repair=False).found
    assert verify(stores, repair=True).clean
    assert_mended(stores, {"a": ["zebra E-1042"], "b": ["okapi"]})
    (hit,) = stores.text.search("zebra E-1042", limit=9, where=EVERYTHING)
    assert hit.doc_id == "a" and hit.exact
    stores.close()


# ------------------------------------------------------------------------------------- report


def test_the_report_is_json() -> None:
    stores = memory()
    row = ingest(stores, "a", ["one"])
    plant(stores, row, new_token(row.serial))
    told = json.loads(json.dumps(asdict(verify(stores, repair=True))))
    assert told["found"] == told["repaired"] == {"unfinished_rows": 1}
    assert told["differences"] == [
        {
            "kind": "unfinished_rows",
            "doc_id": "a",
            "uri": "file:///handbook/a.md",
            "text_rows": 1,
            "vector_rows": 1,
            "repaired": True,
        }
    ]


def test_progress_is_told_for_each_stage_to_its_end() -> None:
    stores = memory()
    for number in range(PAGE_DOCUMENTS + 1):
        ingest(stores, f"d{number:04d}", ["text"])
    told: list[Progress] = []
    verify(stores, repair=False, progress=told.append)
    last = {each.stage: (each.done, each.total) for each in told}
    total = PAGE_DOCUMENTS + 1
    assert last == dict.fromkeys(["documents", "text", "vectors"], (total, total))


# ------------------------------------------------------------------------------------ at random

_damage = st.lists(
    st.tuples(
        st.sampled_from("abc"),
        st.sampled_from(
            ["old", "current", "ahead", "text", "vectors", "count", "narrow", "delete"]
        ),
    ),
    max_size=6,
)


@settings(max_examples=300, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(_damage)
def test_any_damage_is_mended_or_named_and_one_reading_later_all_is_clean(
    damage: list[tuple[str, str]],
) -> None:
    for name in "abc":  # if all three agree on a wrong count, nobody can tell
        assume(len({(name, what) for what in ("text", "vectors", "count")} & set(damage)) < 3)
    stores = memory()
    for name in "abc":
        ingest(stores, name, ["zero"])
        ingest(stores, name, [f"{name} one", "two"], acl=("public", "hr"))
    for name, what in damage:
        _break(stores, stores.catalog.get([name])[name], what)
    before = verify(stores, repair=False)
    report = verify(stores, repair=True)
    assert report.found == before.found
    wanted = {each.address.removesuffix(".md") for each in report.reread}
    for name in wanted:
        ingest(stores, name, [f"{name} one", "two"])
    assert verify(stores, repair=True).clean
    assert verify(stores, repair=False).clean
    for name in "abc":
        if stores.catalog.get([name])[name].revision:
            assert served(stores, name) == [f"{name} one", "two"]


def _break(stores: Stores, row: Document, what: str) -> None:
    if what in ("old", "current", "ahead"):
        plant(stores, row, new_token({"old": 0, "current": row.serial, "ahead": 99}[what]))
    elif what in ("text", "vectors"):
        store = stores.text if what == "text" else stores.vectors
        store.delete([ref.row_id for ref in store.row_refs([row.doc_id])][:1])
    elif what == "delete":
        tombstone = replace(row, revision="", state=DocState.DELETED, chunk_count=0)
        stores.catalog.commit(tombstone)
    elif row.revision and what == "count":
        stores.catalog.commit(replace(row, chunk_count=1))
    elif row.revision:
        revisions.narrow(stores, row, replace(row, acl=("hr",)))
