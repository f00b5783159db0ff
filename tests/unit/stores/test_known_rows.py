"""Rows of Elasticsearch that are kept in memory: never believed without asking."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("elasticsearch")

from quarry.stores.elasticsearch.known import KnownRows


class Rows:
    """What an index holds, as multi-get tells it; counts what was sent in full."""

    def __init__(self) -> None:
        self.stored: dict[str, tuple[int, int, str]] = {}
        self.sent: list[str] = []
        self.while_read: list[tuple[str, tuple[int, int, str]]] = []

    def mget(
        self, _index: str, docs: list[dict[str, Any]], *, source: bool
    ) -> Iterator[dict[str, Any]]:
        hits = []
        for each in docs:
            if each["_id"] not in self.stored:
                continue
            number, term, text = self.stored[each["_id"]]
            hit: dict[str, Any] = {"_id": each["_id"], "_seq_no": number, "_primary_term": term}
            if each.get("_source", source):
                self.sent.append(each["_id"])
                hit["_source"] = {"text": text}
            hits.append(hit)
        for key, row in self.while_read:
            self.stored[key] = row
        self.while_read.clear()
        return iter(hits)


@pytest.fixture
def rows() -> Rows:
    return Rows()


def known(rows: Rows, size: int = 10) -> KnownRows[str]:
    return KnownRows(rows, "index", lambda source: str(source["text"]), size=size)  # type: ignore[arg-type]


def test_an_unchanged_row_is_sent_once(rows: Rows) -> None:
    rows.stored = {"a": (1, 1, "old"), "b": (2, 1, "other")}
    reader = known(rows)
    assert reader.read(["a", "b", "a"]) == {"a": "old", "b": "other"}
    assert reader.read(["b", "a"]) == {"a": "old", "b": "other"}
    assert sorted(rows.sent) == ["a", "b"]


@pytest.mark.parametrize("stamp", [(2, 1), (1, 2)])
def test_a_row_that_another_process_wrote_is_read_again(rows: Rows, stamp: tuple[int, int]) -> None:
    rows.stored = {"a": (1, 1, "old")}
    reader = known(rows)
    reader.read(["a"])
    rows.stored["a"] = (*stamp, "new")
    assert reader.read(["a"]) == {"a": "new"}
    assert reader.read(["a"]) == {"a": "new"}


def test_a_row_that_is_gone_is_not_answered_from_memory_and_leaves_it(rows: Rows) -> None:
    rows.stored = {"a": (1, 1, "secret")}
    reader = known(rows)
    reader.read(["a"])
    del rows.stored["a"]
    assert reader.read(["a"]) == {}
    rows.stored["a"] = (1, 1, "again")
    assert reader.read(["a"]) == {"a": "again"}, "what is gone is forgotten"


def test_a_row_that_goes_or_moves_between_two_requests_of_one_read(rows: Rows) -> None:
    rows.stored = {"a": (1, 1, "first")}
    reader = known(rows)
    reader.read(["a"])
    rows.stored["a"] = (2, 1, "second")
    rows.while_read = [("a", (3, 1, "third"))]
    assert reader.read(["a"]) == {"a": "third"}


def test_at_most_so_many_rows_are_kept(rows: Rows) -> None:
    rows.stored = {name: (1, 1, name) for name in "abc"}
    reader = known(rows, size=2)
    assert reader.read("abc") == {"a": "a", "b": "b", "c": "c"}
    assert reader.read("abc") == {"a": "a", "b": "b", "c": "c"}
    assert len(rows.sent) > 3, "one did not fit"


def test_a_dropped_index_is_forgotten_since_its_numbers_begin_again(rows: Rows) -> None:
    rows.stored = {"a": (1, 1, "old")}
    reader = known(rows)
    reader.read(["a"])
    reader.forget()
    rows.stored["a"] = (1, 1, "of a new index")
    assert reader.read(["a"]) == {"a": "of a new index"}
