"""What every Catalog does; an implementation's test inherits this and gives `make`."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from quarry.errors import Conflict, RowsRejected
from quarry.ports import Catalog
from quarry.records import DocState, Document, Kept, SourceEntry
from tests.contract.rows import LATER, TOKEN, at, document, full_document

MakeCatalog = Callable[[str], Catalog]


def entry(address: str = "a.md", **changes: str) -> SourceEntry:
    defaults = SourceEntry(
        source="handbook",
        address=address,
        tag="120-1",
        recipe="r0",
        state=DocState.INDEXED,
        documents=1,
    )
    return replace(defaults, **changes)  # type: ignore[arg-type]


class CatalogContract:
    @pytest.fixture
    def make(self) -> MakeCatalog:
        """Opens the catalog of a generation; the same name twice is the same rows."""
        raise NotImplementedError

    @pytest.fixture
    def make_forgetful(self) -> MakeCatalog:
        """Opens one without a retention."""
        raise NotImplementedError

    @pytest.fixture
    def catalog(self, make: MakeCatalog) -> Catalog:
        catalog = make("g1")
        catalog.ensure()
        return catalog

    # --------------------------------------------------------------------- compare and set

    def test_the_first_commit_starts_from_serial_0(self, catalog: Catalog) -> None:
        stored = catalog.commit(document())
        assert stored == replace(document(), serial=1)
        assert catalog.get(["d1"]) == {"d1": stored}

    def test_every_field_comes_back(self, catalog: Catalog) -> None:
        stored = catalog.commit(full_document())
        assert stored == replace(full_document(), serial=1)
        assert catalog.get(["d1"]) == {"d1": stored}
        assert catalog.history("d1") == [stored]

    def test_each_commit_raises_the_serial_by_one(self, catalog: Catalog) -> None:
        first = catalog.commit(document())
        second = catalog.commit(replace(first, revision=LATER))
        assert second.serial == 2
        assert catalog.get(["d1"])["d1"].revision == LATER

    @pytest.mark.parametrize("serial", [0, 1, 3])
    def test_a_serial_that_moved_is_a_conflict_and_changes_nothing(
        self, catalog: Catalog, serial: int
    ) -> None:
        current = catalog.commit(catalog.commit(document()))
        with pytest.raises(Conflict):
            catalog.commit(document(serial=serial, title="lost"))
        assert catalog.get(["d1"]) == {"d1": current}
        assert [row.serial for row in catalog.history("d1")] == [1, 2]

    def test_a_row_that_is_not_there_has_only_serial_0(self, catalog: Catalog) -> None:
        with pytest.raises(Conflict):
            catalog.commit(document(serial=1))
        assert catalog.get(["d1"]) == {}
        assert catalog.history("d1") == []

    def test_many_commits_succeed_and_fail_each_on_its_own(self, catalog: Catalog) -> None:
        taken = catalog.commit(document("d2"))
        results = catalog.commit_many([document("d1"), document("d2"), document("d3")])
        assert [r.serial if isinstance(r, Document) else "lost" for r in results] == [1, "lost", 1]
        assert catalog.get(["d1", "d2", "d3"]) == {
            "d1": replace(document("d1"), serial=1),
            "d2": taken,
            "d3": replace(document("d3"), serial=1),
        }
        assert [len(catalog.history(d)) for d in ("d1", "d2", "d3")] == [1, 1, 1]
        assert catalog.commit_many([]) == []

    def test_a_row_that_cannot_be_stored_is_rejected_alone(self, catalog: Catalog) -> None:
        bad = document("d2", series="x\ud800y")
        first, rejected, third = catalog.commit_many([document("d1"), bad, document("d3")])
        assert isinstance(first, Document) and isinstance(third, Document)
        assert isinstance(rejected, RowsRejected)
        assert "Unicode" in rejected.rows["d2"]
        with pytest.raises(RowsRejected):
            catalog.commit(bad)
        assert set(catalog.get(["d1", "d2", "d3"])) == {"d1", "d3"}

    def test_many_commits_are_taken_in_order(self, catalog: Catalog) -> None:
        first, lost, second = catalog.commit_many(
            [document(), document(title="late"), document(serial=1, title="next")]
        )
        assert isinstance(lost, Conflict)
        assert isinstance(first, Document)
        assert catalog.get(["d1"]) == {"d1": second}
        assert catalog.history("d1") == [first, second]

    def test_of_several_writers_exactly_one_wins_each_serial(self, catalog: Catalog) -> None:
        def work(worker: int) -> list[int]:
            won = []
            for n in range(12):
                current = catalog.get(["d1"]).get("d1", document())
                try:
                    stored = catalog.commit(replace(current, title=f"{worker}-{n}"))
                except Conflict:
                    continue
                won.append(stored.serial)
                assert catalog.get(["d1"])["d1"].serial >= stored.serial
            return won

        with ThreadPoolExecutor(4) as pool:
            won = sorted(serial for wins in pool.map(work, range(4)) for serial in wins)
        assert won == list(range(1, len(won) + 1))
        assert catalog.get(["d1"])["d1"].serial == len(won)
        assert [row.serial for row in catalog.history("d1")] == won

    # ------------------------------------------------------------------------------ reading

    def test_tombstones_are_read_and_unknown_ids_left_out(self, catalog: Catalog) -> None:
        live = catalog.commit(document())
        gone = catalog.commit(replace(live, revision="", state=DocState.DELETED))
        assert catalog.get(["d1", "nobody"]) == {"d1": gone}
        assert catalog.get([]) == {}

    def test_many_rows_are_read_at_once(self, catalog: Catalog) -> None:
        catalog.commit_many([document(f"d{n:04d}") for n in range(1200)])
        assert len(catalog.get([f"d{n:04d}" for n in range(1300)])) == 1200

    def test_series_gives_live_documents_by_series(self, catalog: Catalog) -> None:
        four, five, travel, *_ = catalog.commit_many(
            [
                document("d1", series="HR-014", version="4"),
                document("d2", series="HR-014", version="5"),
                document("d3", series="TR-001"),
                document("d4", series="HR-014", version="6", revision=""),
                document("d5"),
            ]
        )
        got = catalog.series(["HR-014", "TR-001", "XX-000"])
        assert {name: sorted(d.doc_id for d in docs) for name, docs in got.items() if docs} == {
            "HR-014": ["d1", "d2"],
            "TR-001": ["d3"],
        }
        assert {d.doc_id: d for docs in got.values() for d in docs} == {
            "d1": four,
            "d2": five,
            "d3": travel,
        }
        assert catalog.series([]) == {}

    def test_a_document_that_left_its_series_is_not_in_it(self, catalog: Catalog) -> None:
        row = catalog.commit(document(series="HR-014"))
        catalog.commit(replace(row, series="HR-015"))
        assert catalog.series(["HR-014"]).get("HR-014", []) == []

    def test_scan_walks_all_rows_in_order(self, catalog: Catalog) -> None:
        catalog.commit_many([document(f"d{n}") for n in (3, 1, 4, 0, 2, 6, 5)])
        walked: list[str] = []
        while rows := catalog.scan(after=walked[-1] if walked else "", limit=3):
            assert len(rows) <= 3
            walked += [row.doc_id for row in rows]
        assert walked == [f"d{n}" for n in range(7)]

    def test_scan_keeps_to_source_address_and_state(self, catalog: Catalog) -> None:
        odd = "a/'b\" %_*ü.md"
        catalog.commit_many(
            [
                document("d1", address=odd),
                document("d2", address=odd, source="wiki"),
                document("d3", state=DocState.FAILED),
                document("d4", address=odd, state=DocState.DELETED, revision=""),
            ]
        )

        def ids(**where: object) -> str:
            rows = catalog.scan(**where)  # type: ignore[arg-type]
            return " ".join(row.doc_id for row in rows)

        assert ids() == "d1 d2 d3 d4"
        assert ids(source="handbook") == "d1 d3 d4"
        assert ids(source="handbook", address=odd) == "d1 d4"
        assert ids(state=DocState.FAILED) == "d3"
        assert ids(source="handbook", address=odd, state=DocState.INDEXED) == "d1"
        assert ids(source="handbook", address=odd, state=DocState.INDEXED, after="d1") == ""

    def test_counts_are_by_state(self, catalog: Catalog) -> None:
        assert catalog.counts() == {}
        catalog.commit_many([document("d1"), document("d2"), document("d3", state=DocState.EMPTY)])
        assert catalog.counts() == {DocState.INDEXED: 2, DocState.EMPTY: 1}

    def test_counts_are_of_one_source_if_asked(self, catalog: Catalog) -> None:
        catalog.commit_many(
            [document("d1"), document("d2", source="other"), document("d3", state=DocState.EMPTY)]
        )
        assert catalog.counts(source="handbook") == {DocState.INDEXED: 1, DocState.EMPTY: 1}
        assert catalog.counts(source="other") == {DocState.INDEXED: 1}
        assert catalog.counts(source="hand") == {}

    # ------------------------------------------------------------------------------ history

    def test_history_is_every_commit_oldest_first(self, catalog: Catalog) -> None:
        first = catalog.commit(document())
        second = catalog.commit(replace(first, revision=LATER))
        third = catalog.commit(replace(second, revision="", state=DocState.DELETED))
        assert catalog.history("d1") == [first, second, third]
        assert catalog.history("nobody") == []

    def test_trimming_forgets_what_was_replaced_before(self, catalog: Catalog) -> None:
        row = document(committed_at=at(0))
        for hours in range(4):
            row = catalog.commit(replace(row, committed_at=at(hours)))
        catalog.commit(document("d2", committed_at=at(0)))
        both = ["d1", "d2"]
        assert catalog.trim_history(both, before=at(0.5)) == 0
        assert catalog.trim_history(["d2"], before=at(2.5)) == 0
        assert catalog.trim_history(both, before=at(2.5)) == 2
        assert [r.committed_at for r in catalog.history("d1")] == [at(2), at(3)]
        assert catalog.trim_history(both, before=at(100)) == 1
        assert catalog.history("d1") == [row]
        assert len(catalog.history("d2")) == 1
        assert catalog.trim_history(["nobody"], before=at(100)) == 0
        assert catalog.trim_history([], before=at(100)) == 0

    def test_trimming_changes_nothing_else(self, catalog: Catalog) -> None:
        row = catalog.commit(full_document())
        row = catalog.commit(replace(row, committed_at=at(1)))
        catalog.trim_history(["d1"], before=at(2))
        assert catalog.get(["d1"]) == {"d1": row}
        assert catalog.commit(row).serial == 3

    def test_histories_of_many_documents_are_read_at_once(self, catalog: Catalog) -> None:
        first = catalog.commit(full_document())
        second = catalog.commit(replace(first, revision=LATER))
        other = catalog.commit(document("d2"))
        assert catalog.histories(["d1", "d2", "nobody"]) == {"d1": [first, second], "d2": [other]}
        assert catalog.histories([]) == {}
        assert catalog.histories(["d1"])["d1"][-1] == catalog.get(["d1"])["d1"]

    def test_who_has_something_to_forget_is_listed_in_order(self, catalog: Catalog) -> None:
        for name in ("d3", "d1", "d2", "d4"):
            row = catalog.commit(document(name, committed_at=at(0)))
            if name != "d4":
                catalog.commit(replace(row, committed_at=at(2)))
        assert catalog.expired(at(1)) == []
        assert catalog.expired(at(3)) == ["d1", "d2", "d3"]
        assert catalog.expired(at(3), limit=2) == ["d1", "d2"]
        assert catalog.expired(at(3), after="d1") == ["d2", "d3"]
        catalog.trim_history(["d2"], before=at(3))
        assert catalog.expired(at(3)) == ["d1", "d3"]

    def test_a_later_commit_does_not_hide_what_there_is_to_forget(self, catalog: Catalog) -> None:
        row = document(committed_at=at(0))
        for hours in (0, 1, 5, 9):
            row = catalog.commit(replace(row, committed_at=at(hours)))
        assert catalog.expired(at(2)) == ["d1"]
        assert catalog.trim_history(["d1"], before=at(2)) == 1
        assert catalog.expired(at(2)) == []
        assert catalog.expired(at(6)) == ["d1"]

    def test_without_a_retention_a_commit_forgets_what_it_replaces(
        self, make_forgetful: MakeCatalog
    ) -> None:
        catalog = make_forgetful("g1")
        catalog.ensure()
        first = catalog.commit(document(series="HR-014", committed_at=at(0)))
        assert catalog.history("d1") == [first]
        (last,) = catalog.commit_many([replace(first, series="HR-015", committed_at=at(1))])
        assert catalog.history("d1") == [last]
        assert catalog.histories(["d1"]) == {"d1": [last]}
        assert catalog.members(["HR-014", "HR-015"]) == catalog.members(["HR-015"]) == {"d1"}
        assert catalog.members(["HR-014"]) == set()
        assert catalog.expired(at(9)) == []
        assert catalog.trim_history(["d1"], before=at(9)) == 0

    def test_members_of_a_series_are_all_that_ever_were(self, catalog: Catalog) -> None:
        left = catalog.commit(document("d1", series="HR-014", committed_at=at(0)))
        catalog.commit(replace(left, series="HR-015", committed_at=at(1)))
        gone = catalog.commit(document("d2", series="HR-014"))
        catalog.commit(replace(gone, revision="", state=DocState.DELETED))
        catalog.commit(document("d3"))
        assert catalog.members(["HR-014"]) == {"d1", "d2"}
        assert catalog.members(["HR-015", "XX-000"]) == {"d1"}
        assert catalog.members([]) == catalog.members([""]) == set()
        catalog.trim_history(["d1"], before=at(2))
        assert catalog.members(["HR-014"]) == {"d2"}

    def test_how_far_back_the_past_is_kept_is_remembered(
        self, make: MakeCatalog, catalog: Catalog
    ) -> None:
        assert catalog.kept() == Kept()
        catalog.put_entry(entry())
        for kept in (Kept(since=at(1)), Kept(since=at(2), deleted_since=at(1.5)), Kept()):
            catalog.keep(kept)
            assert catalog.kept() == make("g1").kept() == kept
        assert list(catalog.entries("handbook")) == [entry()]

    # ------------------------------------------------------------------------------ entries

    def test_entries_are_kept_by_source_and_address(self, catalog: Catalog) -> None:
        catalog.put_entry(entry("a.md"))
        catalog.put_entry(entry("ü 'b'.md"))
        catalog.put_entry(entry("a.md", source="wiki"))
        catalog.put_entry(entry("a.md", tag="200-2", reason="page 3"))
        assert sorted(catalog.entries("handbook"), key=lambda e: e.address) == [
            entry("a.md", tag="200-2", reason="page 3"),
            entry("ü 'b'.md"),
        ]
        assert catalog.entry("handbook", "a.md") == entry("a.md", tag="200-2", reason="page 3")
        assert catalog.entry("wiki", "ü 'b'.md") is None
        catalog.delete_entry("handbook", "a.md")
        catalog.delete_entry("handbook", "never there")
        assert catalog.entry("handbook", "a.md") is None
        assert list(catalog.entries("handbook")) == [entry("ü 'b'.md")]
        assert list(catalog.entries("wiki")) == [entry("a.md", source="wiki")]
        assert list(catalog.entries("nowhere")) == []

    def test_sources_are_those_that_have_entries(self, catalog: Catalog) -> None:
        assert catalog.sources() == []
        catalog.keep(Kept(since=at(1)))
        for name, address in [("wiki", "a.md"), ("handbook", "a.md"), ("wiki", "b.md")]:
            catalog.put_entry(entry(address, source=name))
        assert catalog.sources() == ["handbook", "wiki"]
        catalog.delete_entry("handbook", "a.md")
        assert catalog.sources() == ["wiki"]

    def test_all_sources_of_many_are_listed(self, catalog: Catalog) -> None:
        names = [f"s{number:04}" for number in range(1100)]
        for name in names:
            catalog.put_entry(entry("a.md", source=name))
        assert catalog.sources() == names

    def test_all_entries_of_a_large_source_are_listed(self, catalog: Catalog) -> None:
        for n in range(1200):
            catalog.put_entry(entry(f"{n}.md"))
        assert len({e.address for e in catalog.entries("handbook")}) == 1200

    def test_entries_can_be_changed_while_they_are_listed(self, catalog: Catalog) -> None:
        for name in ("a", "b", "c"):
            catalog.put_entry(entry(name))
        for listed in catalog.entries("handbook"):
            catalog.delete_entry("handbook", listed.address)
        assert list(catalog.entries("handbook")) == []

    # -------------------------------------------------------------------------- generations

    def test_another_client_sees_completed_commits(
        self, make: MakeCatalog, catalog: Catalog
    ) -> None:
        other = make("g1")
        stored = catalog.commit(document())
        assert other.get(["d1"]) == {"d1": stored}
        with pytest.raises(Conflict):
            other.commit(document())

    def test_generations_are_apart_and_drop_removes_one(
        self, make: MakeCatalog, catalog: Catalog
    ) -> None:
        other = make("g2")
        other.ensure()
        catalog.commit(document(revision=TOKEN))
        catalog.put_entry(entry())
        catalog.keep(Kept(since=at(1)))
        kept = other.commit(document())
        catalog.drop()
        catalog.ensure()
        assert catalog.get(["d1"]) == {}
        assert catalog.history("d1") == []
        assert catalog.kept() == Kept()
        assert list(catalog.entries("handbook")) == []
        assert other.get(["d1"]) == {"d1": kept}

    def test_ensure_twice_keeps_what_is_there(self, catalog: Catalog) -> None:
        stored = catalog.commit(document())
        catalog.ensure()
        assert catalog.get(["d1"]) == {"d1": stored}
