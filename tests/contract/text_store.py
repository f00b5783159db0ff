"""What every TextStore does; an implementation's test inherits this and gives `make`."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from quarry.access import EVERYTHING, Compare, Filter, Op
from quarry.errors import RowsRejected
from quarry.ids import new_token
from quarry.ports import TextStore
from quarry.records import RowRef, TextRow
from tests.contract.filter_cases import CASES, HOSTILE_FIELDS, LABELLED
from tests.contract.rows import LATER, TOKEN, chunk, labels, text_row

MakeText = Callable[[str], TextStore]


def fill(store: TextStore, *rows: TextRow) -> list[str]:
    """Upserts and publishes; gives the row ids."""
    store.upsert(rows)
    store.publish()
    return [row.chunk.row_id for row in rows]


def found(store: TextStore, question: str, limit: int = 10) -> list[str]:
    return [hit.row_id for hit in store.search(question, limit=limit, where=EVERYTHING)]


class TextStoreContract:
    @pytest.fixture
    def make(self) -> MakeText:
        """Opens the text rows of a generation; the same name twice is the same rows."""
        raise NotImplementedError

    @pytest.fixture
    def store(self, make: MakeText) -> TextStore:
        store = make("g1")
        store.ensure()
        return store

    # ------------------------------------------------------------------------------ rows

    def test_ensure_twice_keeps_what_is_there(self, store: TextStore) -> None:
        fill(store, text_row("tents are waterproof"))
        store.ensure()
        assert store.count() == 1

    def test_a_row_can_be_fetched_and_listed_at_once(self, store: TextStore) -> None:
        row = text_row("tents are waterproof")
        store.upsert([row])
        assert store.fetch([row.chunk.row_id]) == {row.chunk.row_id: row.chunk}
        assert store.row_refs(["d1"]) == [
            RowRef(row_id=row.chunk.row_id, doc_id="d1", revision=TOKEN)
        ]

    def test_every_field_of_a_chunk_comes_back(self, store: TextStore) -> None:
        full = chunk(
            "Zeile eins\nline \"two\" 'three' \\ 育児休業 🏕",
            header="Urlaub — Leave\nv4",
            ordinal=3,
            section=("Leave", "Länge"),
            anchor="länge",
            pages=(2, 3),
            span=(10, 47),
            tokens=21,
            identifiers=("HR-014", "E-1042"),
        )
        bare = chunk("plain")
        store.upsert([TextRow(chunk=c, labels=labels()) for c in (full, bare)])
        assert store.fetch([full.row_id, bare.row_id]) == {full.row_id: full, bare.row_id: bare}

    def test_unknown_row_ids_are_left_out(self, store: TextStore) -> None:
        assert store.fetch(["none." + TOKEN]) == {}
        assert store.fetch([]) == {}
        assert store.row_refs([]) == []
        assert store.row_refs(["nobody"]) == []

    def test_an_upsert_of_a_known_row_replaces_it(self, store: TextStore) -> None:
        row = text_row("tents are waterproof")
        fill(store, row)
        changed = replace(row, chunk=replace(row.chunk, text="stoves burn gas", tokens=4))
        fill(store, changed)
        assert store.fetch([row.chunk.row_id]) == {row.chunk.row_id: changed.chunk}
        assert store.count() == 1
        assert found(store, "waterproof") == []
        assert found(store, "stoves") == [row.chunk.row_id]

    def test_one_batch_may_name_a_row_twice_and_the_last_one_counts(self, store: TextStore) -> None:
        row = text_row("tents are waterproof")
        last = replace(row, chunk=replace(row.chunk, tokens=9))
        fill(store, row, last)
        assert store.fetch([row.chunk.row_id]) == {row.chunk.row_id: last.chunk}
        assert found(store, "waterproof") == [row.chunk.row_id]

    def test_row_refs_gives_every_revision_of_the_documents_asked_for(
        self, store: TextStore
    ) -> None:
        rows = [
            text_row("one", doc="d1"),
            text_row("one", doc="d1", token=LATER),
            text_row("two", doc="d2"),
            text_row("three", doc="d3"),
        ]
        store.upsert(rows)
        refs = store.row_refs(["d1", "d2", "nobody"])
        assert {(r.row_id, r.doc_id, r.revision) for r in refs} == {
            (r.chunk.row_id, r.chunk.doc_id, r.chunk.revision) for r in rows[:3]
        }
        assert len(refs) == 3

    def test_row_refs_gives_all_rows_of_a_long_document(self, store: TextStore) -> None:
        store.upsert([text_row(f"passage {n}", ordinal=n) for n in range(1200)])
        assert len({ref.row_id for ref in store.row_refs(["d1"])}) == 1200

    def test_chunks_come_by_position_and_of_one_revision(self, store: TextStore) -> None:
        rows = [text_row(f"passage {n}", ordinal=n) for n in (3, 1, 0, 2)]
        other = [text_row("another", ordinal=1, token=LATER), text_row("page", doc="d2")]
        fill(store, *rows, *other)
        got = store.chunks("d1", TOKEN, range(1, 9))
        assert [c.text for c in got] == ["passage 1", "passage 2", "passage 3"]
        assert store.chunks("d1", TOKEN, range(0)) == []
        assert store.chunks("nobody", TOKEN, range(9)) == []

    def test_known_text_is_found_by_its_hash(self, store: TextStore) -> None:
        rows = [text_row("same words", doc="d1"), text_row("same words", doc="d2")]
        fill(store, *rows)
        text_hash = rows[0].chunk.text_hash
        known = store.find_text([text_hash, "unknown"])
        assert list(known) == [text_hash]
        assert known[text_hash] in {row.chunk.row_id for row in rows}
        assert store.find_text([]) == {}

    def test_a_rare_text_is_found_beside_one_that_most_rows_hold(self, store: TextStore) -> None:
        common = [text_row("the same footer", doc=f"d{n:04d}") for n in range(1100)]
        rare = [text_row(f"rare words {n}") for n in range(3)]
        fill(store, *common, *rare)
        hashes = {row.chunk.text_hash: row.chunk.row_id for row in rare}
        found = store.find_text([common[0].chunk.text_hash, *hashes, "unknown"])
        assert found.pop(common[0].chunk.text_hash) in {row.chunk.row_id for row in common}
        assert found == hashes

    def test_deleted_rows_are_gone_everywhere(self, store: TextStore) -> None:
        gone, kept = fill(store, text_row("tents leak"), text_row("tents hold", ordinal=1))
        store.delete([gone, "never-there." + TOKEN])
        store.delete([])
        store.publish()
        assert store.fetch([gone]) == {}
        assert [ref.row_id for ref in store.row_refs(["d1"])] == [kept]
        assert found(store, "tents") == [kept]
        assert [ref.row_id for ref in store.scan()] == [kept]
        assert store.count() == 1

    def test_bad_rows_are_named_and_the_others_stored(self, store: TextStore) -> None:
        bad = replace(text_row("bad"), chunk=replace(chunk("bad"), text="half a pair: \ud83c"))
        good = [text_row("good tents", ordinal=1), text_row("better tents", ordinal=2)]
        with pytest.raises(RowsRejected) as caught:
            store.upsert([good[0], bad, good[1]])
        store.publish()
        assert list(caught.value.rows) == [bad.chunk.row_id]
        assert set(found(store, "tents")) == {row.chunk.row_id for row in good}
        assert store.count() == 2

    def test_scan_walks_all_rows_in_order(self, store: TextStore) -> None:
        ids = fill(store, *[text_row(f"passage {n}", doc=f"d{n}") for n in range(7)])
        walked: list[str] = []
        while refs := store.scan(after=walked[-1] if walked else "", limit=3):
            assert len(refs) <= 3
            walked += [ref.row_id for ref in refs]
        assert walked == sorted(ids)

    # ---------------------------------------------------------------------------- search

    def test_rows_that_say_more_of_the_question_come_first(self, store: TextStore) -> None:
        both, one, _ = fill(
            store,
            text_row("the tent is waterproof", doc="d1"),
            text_row("the tent is green and roomy", doc="d2"),
            text_row("stoves burn gas", doc="d3"),
        )
        hits = store.search("Is the tent waterproof?", limit=10, where=EVERYTHING)
        assert [hit.row_id for hit in hits] == [both, one]
        assert hits[0].score > hits[1].score
        assert (hits[0].doc_id, hits[0].revision) == ("d1", TOKEN)

    def test_rare_words_count_more_than_common_ones(self, store: TextStore) -> None:
        rare, *_ = fill(
            store,
            text_row("snow anchors", doc="d0"),
            *[text_row(f"tent number {n}", doc=f"d{n}") for n in range(1, 9)],
        )
        assert found(store, "tent anchors")[0] == rare

    def test_words_in_the_header_count(self, store: TextStore) -> None:
        row_id, _ = fill(
            store,
            text_row("Twenty weeks are paid.", header="Parental leave", doc="d1"),
            text_row("Thirty days are unpaid.", header="Travel", doc="d2"),
        )
        assert found(store, "parental") == [row_id]

    def test_inflected_words_match_and_stop_words_do_not(self, store: TextStore) -> None:
        row_id, _ = fill(
            store, text_row("refunds are returned", doc="d1"), text_row("it is the one", doc="d2")
        )
        assert found(store, "returning the refund") == [row_id]
        assert found(store, "the is it") == []

    def test_equal_scores_are_ordered_by_row_id(self, store: TextStore) -> None:
        ids = fill(store, *[text_row("identical words", doc=f"d{n}") for n in range(6)])
        assert found(store, "identical words") == sorted(ids)
        assert found(store, "identical words", limit=4) == sorted(ids)[:4]

    def test_a_limit_cuts_the_one_order_wherever_it_falls_among_equal_scores(
        self, store: TextStore
    ) -> None:
        texts = ["identical words"] * 4 + ["identical words twice, identical words"] * 3
        fill(store, *[text_row(text, doc=f"d{n}") for n, text in enumerate(texts)])
        everything = found(store, "identical words")
        assert len(everything) == 7
        for limit in range(1, 9):
            assert found(store, "identical words", limit=limit) == everything[:limit]

    def test_a_row_with_an_identifier_of_the_question_stands_first(self, store: TextStore) -> None:
        noise = [
            text_row("motor fault motor fault motor fault code", doc=f"d{n}") for n in range(5)
        ]
        exact, *_ = fill(
            store,
            text_row(
                "For E-1042 replace the belt, and see the long list of other things that a person "
                "may have to look at before the machine can be switched on again.",
                doc="x1",
            ),
            text_row("motor fault E-10421 motor fault", doc="x2"),
            text_row("motor fault E-104 motor fault", doc="x3"),
            *noise,
        )
        hits = store.search("motor fault code E-1042", limit=20, where=EVERYTHING)
        assert hits[0].row_id == exact
        assert len(hits) == 8
        assert [hit.exact for hit in hits] == [True] + [False] * 7
        others = [hit.score for hit in hits[1:]]
        assert others == sorted(others, reverse=True)
        assert all(0 < hit.score < 100 for hit in hits), "scores are BM25, without the lane"

    @pytest.mark.parametrize("code", ["E-1042", "ORD-99107", "v1.2.3", "HR-014"])
    def test_an_identifier_alone_finds_its_row(self, store: TextStore, code: str) -> None:
        row_id, _ = fill(
            store, text_row(f"See {code} for more.", doc="d1"), text_row("See more.", doc="d2")
        )
        assert found(store, code)[0] == row_id

    def test_identifiers_in_the_header_count_too(self, store: TextStore) -> None:
        row_id, _ = fill(
            store,
            text_row("Replace the belt.", header="Fault E-1042", doc="d1"),
            text_row("fault fault fault", doc="d2"),
        )
        assert found(store, "fault E-1042")[0] == row_id

    @pytest.mark.parametrize(
        "question",
        [
            '"',
            "tent*",
            "NEAR(tent green)",
            "text:tent",
            "tent AND NOT (green",
            "-tent ^tent",
            "{tent} [a TO b]",
            "tent'; DROP TABLE chunks; --",
            "\\",
            "a OR",
            "tent\x00s",
        ],
    )
    def test_no_question_is_read_as_a_query_language(self, store: TextStore, question: str) -> None:
        tent, _ = fill(store, text_row("a tent", doc="d1"), text_row("blue sky", doc="d2"))
        assert set(found(store, question)) <= {tent}
        assert store.count() == 2

    def test_a_question_without_words_finds_nothing(self, store: TextStore) -> None:
        fill(store, text_row("a tent"))
        assert found(store, "?!") == []
        assert found(store, "") == []

    def test_a_long_question_is_answered(self, store: TextStore) -> None:
        row_id, *_ = fill(store, text_row("a tent"))
        words = " ".join(f"word{n}" for n in range(1500))
        assert found(store, f"{words} tent") == [row_id]

    @pytest.mark.parametrize(("where", "names"), [c[1:] for c in CASES], ids=[c[0] for c in CASES])
    def test_search_keeps_to_the_filter(self, store: TextStore, where: Filter, names: str) -> None:
        rows = {
            name: text_row("shared words", doc=name, row_labels=row_labels)
            for name, row_labels in LABELLED.items()
        }
        fill(store, *rows.values())
        hits = store.search("shared words", limit=10, where=where)
        assert "".join(sorted(hit.doc_id for hit in hits)) == names

    @pytest.mark.parametrize("field", HOSTILE_FIELDS)
    def test_no_metadata_key_is_read_as_an_expression(self, store: TextStore, field: str) -> None:
        held = labels(metadata={field: "yes"})
        fill(
            store,
            text_row("shared words", doc="d1", row_labels=held),
            text_row("shared words", doc="d2"),
        )
        for op, value in ((Op.EQ, "yes"), (Op.GT, "a"), (Op.NE, "no")):
            where = Compare(field, op, value)
            hits = store.search("shared words", limit=10, where=where)
            assert "d1" in [hit.doc_id for hit in hits]

    def test_a_selective_filter_still_reaches_the_limit(self, store: TextStore) -> None:
        rows = [
            text_row(
                "tent tent tent" if n % 50 else "a tent among many other words",
                doc=f"d{n}",
                row_labels=labels(tenant="default" if n % 50 else "north"),
            )
            for n in range(600)
        ]
        fill(store, *rows)
        hits = store.search("tent", limit=10, where=Compare("tenant", Op.EQ, "north"))
        assert len(hits) == 10

    @pytest.mark.parametrize("question", ["tent", "tent E-1042"])
    def test_revisions_that_are_left_out_hide_no_other(
        self, store: TextStore, question: str
    ) -> None:
        old = [new_token(0) for _ in range(3000)]
        rows = [text_row(f"E-1042 tent {n}", token=t) for n, t in enumerate(old[:300])]
        kept = [text_row(f"a tent among many words {n}", token=LATER) for n in range(10)]
        fill(store, *rows, *kept)
        where = Compare("tenant", Op.EQ, "default")
        for condition in (EVERYTHING, where):
            hits = store.search(question, limit=10, where=condition, without=old)
            assert {hit.revision for hit in hits} == {LATER} and len(hits) == 10
        assert len(store.search(question, limit=400, where=where, without=old[:299])) == 11

    # ------------------------------------------------------------- generations and threads

    def test_another_client_sees_completed_writes(self, make: MakeText, store: TextStore) -> None:
        other = make("g1")
        (row_id,) = fill(store, text_row("a tent"))
        assert list(other.fetch([row_id])) == [row_id]
        assert found(other, "tent") == [row_id]

    def test_generations_are_apart_and_drop_removes_one(
        self, make: MakeText, store: TextStore
    ) -> None:
        other = make("g2")
        other.ensure()
        fill(store, text_row("a tent"))
        (kept,) = fill(other, text_row("a stove"))
        assert found(store, "stove") == []
        store.drop()
        store.ensure()
        assert store.count() == 0
        assert found(store, "tent") == []
        assert found(other, "stove") == [kept]

    def test_several_threads_may_write_read_and_search(self, store: TextStore) -> None:
        def work(worker: int) -> None:
            for n in range(10):
                row = text_row(f"tent {worker} {n}", doc=f"d{worker}", ordinal=n)
                store.upsert([row])
                assert store.fetch([row.chunk.row_id]) == {row.chunk.row_id: row.chunk}
                store.search("tent", limit=5, where=EVERYTHING)
                if n % 2:
                    store.delete([row.chunk.row_id])

        with ThreadPoolExecutor(4) as pool:
            list(pool.map(work, range(4)))
        store.publish()
        assert store.count() == 20
        assert len(found(store, "tent", limit=100)) == 20
