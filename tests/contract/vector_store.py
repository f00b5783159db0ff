"""What every VectorStore does; an implementation's test inherits this and gives `make`."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest

from quarry.access import EVERYTHING, Compare, Op
from quarry.errors import RowsRejected
from quarry.ids import new_token
from quarry.ports import VectorStore
from quarry.records import RowRef, Vector, VectorRow
from tests.contract.filter_cases import CASES, HOSTILE_FIELDS, LABELLED
from tests.contract.rows import DIMENSION, LATER, TOKEN, labels, vector, vector_row

MakeVectors = Callable[[str], VectorStore]

QUESTION = vector(1.0)


def fill(store: VectorStore, *rows: VectorRow) -> list[str]:
    """Upserts and flushes; gives the row ids."""
    store.upsert(rows)
    store.flush()
    return [row.row_id for row in rows]


def found(store: VectorStore, question: Vector = QUESTION, limit: int = 10) -> list[str]:
    return [hit.row_id for hit in store.search(question, limit=limit, where=EVERYTHING)]


def unit(seed: int) -> Vector:
    values = np.random.default_rng(seed).normal(size=DIMENSION)
    return (values / np.linalg.norm(values)).astype(np.float32)


class VectorStoreContract:
    @pytest.fixture
    def make(self) -> MakeVectors:
        """Opens the vectors of a generation; the same name twice is the same rows."""
        raise NotImplementedError

    @pytest.fixture
    def store(self, make: MakeVectors) -> VectorStore:
        store = make("g1")
        store.ensure(DIMENSION)
        return store

    # ------------------------------------------------------------------------------ rows

    def test_ensure_twice_keeps_what_is_there(self, store: VectorStore) -> None:
        fill(store, vector_row("a", QUESTION))
        store.ensure(DIMENSION)
        assert store.count() == 1

    def test_a_row_can_be_fetched_and_listed_at_once(self, store: VectorStore) -> None:
        values = unit(1)
        row = vector_row("a", values)
        store.upsert([row])
        (got,) = store.fetch([row.row_id]).values()
        assert got.dtype == np.float32
        assert got.tolist() == values.tolist()
        assert store.present([row.row_id, "none." + TOKEN]) == {row.row_id}
        assert store.row_refs(["d1"]) == [RowRef(row_id=row.row_id, doc_id="d1", revision=TOKEN)]

    def test_unknown_row_ids_are_left_out(self, store: VectorStore) -> None:
        assert store.fetch(["none." + TOKEN]) == {}
        assert store.fetch([]) == {}
        assert store.present(["none." + TOKEN]) == set()
        assert store.present([]) == set()
        assert store.row_refs([]) == []
        assert store.row_refs(["nobody"]) == []
        assert found(store) == []

    def test_an_upsert_of_a_known_row_replaces_it(self, store: VectorStore) -> None:
        fill(store, vector_row("a", vector(1.0), row_labels=labels(tenant="north")))
        (row_id,) = fill(store, vector_row("a", vector(0.0, 1.0)))
        assert store.fetch([row_id])[row_id].tolist() == vector(0.0, 1.0).tolist()
        assert store.count() == 1
        (hit,) = store.search(vector(0.0, 1.0), limit=10, where=EVERYTHING)
        assert hit.score == pytest.approx(1.0)
        assert store.search(QUESTION, limit=10, where=Compare("tenant", Op.EQ, "north")) == []

    def test_one_batch_may_name_a_row_twice_and_the_last_one_counts(
        self, store: VectorStore
    ) -> None:
        row_id, _ = fill(store, vector_row("a", vector(1.0)), vector_row("a", vector(0.0, 1.0)))
        assert store.fetch([row_id])[row_id].tolist() == vector(0.0, 1.0).tolist()
        assert store.count() == 1

    def test_row_refs_gives_every_revision_of_the_documents_asked_for(
        self, store: VectorStore
    ) -> None:
        rows = [
            vector_row("a", unit(1), doc="d1"),
            vector_row("a", unit(1), doc="d1", token=LATER),
            vector_row("b", unit(2), doc="d2"),
            vector_row("c", unit(3), doc="d3"),
        ]
        store.upsert(rows)
        refs = store.row_refs(["d1", "d2", "nobody"])
        assert {(r.row_id, r.doc_id, r.revision) for r in refs} == {
            (r.row_id, r.doc_id, r.revision) for r in rows[:3]
        }
        assert len(refs) == 3

    def test_row_refs_and_fetch_give_all_rows_of_a_long_document(self, store: VectorStore) -> None:
        rows = [vector_row(f"c{n:04d}", unit(n)) for n in range(1200)]
        store.upsert(rows)
        assert len({ref.row_id for ref in store.row_refs(["d1"])}) == 1200
        assert len(store.fetch([row.row_id for row in rows])) == 1200
        assert len(store.present([row.row_id for row in rows])) == 1200

    def test_deleted_rows_are_gone_everywhere(self, store: VectorStore) -> None:
        gone, kept = fill(store, vector_row("a", QUESTION), vector_row("b", QUESTION))
        store.delete([gone, "never-there." + TOKEN])
        store.delete([])
        assert store.fetch([gone]) == {}
        assert store.present([gone, kept]) == {kept}
        assert [ref.row_id for ref in store.row_refs(["d1"])] == [kept]
        assert [ref.row_id for ref in store.scan()] == [kept]
        assert store.count() == 1
        store.flush()
        assert found(store) == [kept]

    def test_a_deleted_row_can_be_written_again(self, store: VectorStore) -> None:
        (row_id,) = fill(store, vector_row("a", QUESTION))
        store.delete([row_id])
        fill(store, vector_row("a", QUESTION))
        assert found(store) == [row_id]

    @pytest.mark.parametrize(
        "values",
        [
            np.zeros(DIMENSION + 1, dtype=np.float32),
            vector(float("nan")),
            vector(float("inf")),
        ],
        ids=["another dimension", "not a number", "infinite"],
    )
    def test_bad_rows_are_named_and_the_others_stored(
        self, store: VectorStore, values: Vector
    ) -> None:
        bad = vector_row("bad", values)
        good = [vector_row("a", unit(1)), vector_row("b", unit(2))]
        with pytest.raises(RowsRejected) as caught:
            store.upsert([good[0], bad, good[1]])
        store.flush()
        assert list(caught.value.rows) == [bad.row_id]
        assert set(found(store)) == {row.row_id for row in good}

    def test_a_label_that_is_not_unicode_is_rejected_alone(self, store: VectorStore) -> None:
        bad = vector_row("bad", unit(1), row_labels=labels(series="\ud83c"))
        with pytest.raises(RowsRejected) as caught:
            store.upsert([bad, vector_row("a", unit(2))])
        assert list(caught.value.rows) == [bad.row_id]
        assert store.count() == 1

    def test_labels_of_any_length_are_stored(self, store: VectorStore) -> None:
        long = "ü" * 40_000
        row = vector_row("a", unit(1), row_labels=labels(series=long, acl=(long,), source=long))
        assert found(store) == []
        assert fill(store, row) == found(store)

    def test_scan_walks_all_rows_in_order(self, store: VectorStore) -> None:
        ids = fill(store, *[vector_row(f"c{n}", unit(n), doc=f"d{n}") for n in range(7)])
        walked: list[str] = []
        while refs := store.scan(after=walked[-1] if walked else "", limit=3):
            assert len(refs) <= 3
            walked += [ref.row_id for ref in refs]
        assert walked == sorted(ids)

    def test_scan_sees_rows_of_every_age(self, store: VectorStore) -> None:
        names = [f"c{n * 7 % 900:03d}" for n in range(900)]
        rows = [vector_row(name, unit(1), doc=name) for name in names]
        fill(store, *rows[:300])
        fill(store, *rows[300:600])
        store.upsert(rows[600:])
        walked: list[str] = []
        while refs := store.scan(after=walked[-1] if walked else "", limit=250):
            walked += [ref.row_id for ref in refs]
        assert walked == sorted(row.row_id for row in rows)

    # ---------------------------------------------------------------------------- search

    def test_the_nearest_by_inner_product_come_first(self, store: VectorStore) -> None:
        near, far, opposite = fill(
            store,
            vector_row("c", vector(0.9, 0.1)),
            vector_row("b", vector(0.4, 0.6), doc="d2"),
            vector_row("a", vector(-1.0)),
        )
        hits = store.search(QUESTION, limit=10, where=EVERYTHING)
        assert [hit.row_id for hit in hits] == [near, far, opposite]
        assert [hit.score for hit in hits] == pytest.approx([0.9, 0.4, -1.0])
        assert (hits[1].doc_id, hits[1].revision) == ("d2", TOKEN)

    def test_a_longer_vector_is_not_shortened(self, store: VectorStore) -> None:
        fill(store, vector_row("a", vector(3.0)))
        (hit,) = store.search(QUESTION, limit=1, where=EVERYTHING)
        assert hit.score == pytest.approx(3.0)

    def test_equal_scores_are_ordered_by_row_id(self, store: VectorStore) -> None:
        ids = fill(store, *[vector_row(name, QUESTION) for name in "dacb"])
        assert found(store) == sorted(ids)

    def test_limit_is_kept_and_reached(self, store: VectorStore) -> None:
        fill(store, *[vector_row(f"c{n}", unit(n)) for n in range(40)])
        assert len(found(store, limit=7)) == 7
        assert len(found(store, limit=1000)) == 40

    def test_search_keeps_to_each_filter(self, store: VectorStore) -> None:
        fill(
            store,
            *[
                vector_row(name, unit(1), doc=name, row_labels=row_labels)
                for name, row_labels in LABELLED.items()
            ],
        )
        shown = {}
        for case, where, _ in CASES:
            hits = store.search(unit(1), limit=10, where=where)
            shown[case] = "".join(sorted(hit.doc_id for hit in hits))
        assert shown == {case: names for case, _, names in CASES}

    @pytest.mark.parametrize("field", HOSTILE_FIELDS)
    def test_no_metadata_key_is_read_as_an_expression(self, store: VectorStore, field: str) -> None:
        held = labels(metadata={field: "yes"})
        fill(
            store,
            vector_row("a", unit(1), doc="d1", row_labels=held),
            vector_row("b", unit(1), doc="d2"),
        )
        for op, value in ((Op.EQ, "yes"), (Op.GT, "a"), (Op.NE, "no")):
            where = Compare(field, op, value)
            hits = store.search(unit(1), limit=10, where=where)
            assert "d1" in [hit.doc_id for hit in hits]

    def test_a_selective_filter_still_reaches_the_limit(self, store: VectorStore) -> None:
        rows = [
            vector_row(f"c{n:03d}", unit(n), row_labels=labels(tenant="default"))
            for n in range(600)
        ]
        rows[::50] = [replace(row, labels=labels(tenant="north")) for row in rows[::50]]
        fill(store, *rows)
        hits = store.search(unit(1), limit=10, where=Compare("tenant", Op.EQ, "north"))
        assert len(hits) == 10

    def test_revisions_that_are_left_out_hide_no_other(self, store: VectorStore) -> None:
        old = [new_token(0) for _ in range(3000)]
        rows = [vector_row(f"o{n:04d}", QUESTION, token=t) for n, t in enumerate(old[:300])]
        kept = [vector_row(f"k{n}", unit(n), token=LATER) for n in range(10)]
        fill(store, *rows, *kept)
        where = Compare("tenant", Op.EQ, "default")
        for condition in (EVERYTHING, where):
            hits = store.search(QUESTION, limit=10, where=condition, without=old)
            assert {hit.row_id for hit in hits} == {row.row_id for row in kept}
        assert len(store.search(QUESTION, limit=400, where=where, without=old[:299])) == 11

    def test_search_finds_what_is_not_flushed_yet(self, store: VectorStore) -> None:
        row = vector_row("a", QUESTION)
        store.upsert([row])
        store.row_refs(["d1"])
        assert found(store) == [row.row_id]

    # ------------------------------------------------------------- generations and threads

    def test_another_client_sees_completed_writes(
        self, make: MakeVectors, store: VectorStore
    ) -> None:
        other = make("g1")
        other.ensure(DIMENSION)
        (row_id,) = fill(store, vector_row("a", QUESTION))
        assert list(other.fetch([row_id])) == [row_id]
        assert found(other) == [row_id]

    def test_generations_are_apart_and_drop_removes_one(
        self, make: MakeVectors, store: VectorStore
    ) -> None:
        other = make("g2")
        other.ensure(DIMENSION)
        fill(store, vector_row("a", QUESTION))
        (kept,) = fill(other, vector_row("b", QUESTION))
        store.drop()
        store.ensure(DIMENSION)
        assert store.count() == 0
        assert found(store) == []
        assert found(other) == [kept]

    def test_several_threads_may_write_read_and_search(self, store: VectorStore) -> None:
        def work(worker: int) -> None:
            for n in range(10):
                row = vector_row(f"c{worker}-{n}", unit(n), doc=f"d{worker}")
                store.upsert([row])
                assert list(store.fetch([row.row_id])) == [row.row_id]
                found(store)
                if n % 2:
                    store.delete([row.row_id])

        with ThreadPoolExecutor(4) as pool:
            list(pool.map(work, range(4)))
        store.flush()
        assert store.count() == 20
        assert len(found(store, limit=100)) == 20
