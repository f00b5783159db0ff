"""Calls of Elasticsearch: tried again within a total, bulk requests row by row."""

from __future__ import annotations

import time
from typing import Any

import pytest

pytest.importorskip("elasticsearch")

from quarry.errors import StoreError, StoreUnavailable
from tests.unit.stores.elasticsearch_node import (
    PATIENT,
    Answer,
    Request,
    cluster_of,
    page,
    refusal,
)

BUSY = 429
LEEWAY_S = 5.0
"""A total ends with the attempt under way, on a machine that does other things too."""


class Bulk:
    """Keeps what bulk requests bring; `turned_away` gives the status of a row, if not 201."""

    def __init__(self) -> None:
        self.stored: dict[str, Any] = {}
        self.asked: list[list[str]] = []
        self.refused = 0
        self.statuses: dict[str, list[int]] = {}
        self.most_bytes = 1 << 40

    def __call__(self, request: Request) -> Answer:
        if len(request.body) > self.most_bytes:
            self.refused += 1
            return page(413)
        items, lines = [], iter(request.lines)
        self.asked.append([])
        for action in lines:
            ((verb, about),) = action.items()
            key = about["_id"]
            self.asked[-1].append(key)
            source = None if verb == "delete" else next(lines)
            left = self.statuses.get(key, [])
            status = left.pop(0) if len(left) > 1 else (left or [201])[0]
            result = {"_id": key, "status": status}
            if status < 400:
                self.stored[key] = source
            else:
                result["error"] = {"type": f"error_{status}", "reason": "SECRET"}  # type: ignore[assignment]
            items.append({verb: result})
        return Answer({"errors": False, "items": items})


@pytest.fixture
def bulk() -> Bulk:
    return Bulk()


def rows(*keys: str, size: int = 10) -> list[tuple[dict[str, Any], Any]]:
    return [({"index": {"_id": key}}, {"text": "x" * size}) for key in keys]


# ------------------------------------------------------------------------------------- ensure


class Indices:
    """Answers of `ensure`: no index is there, and creating one gives `created`, then success."""

    def __init__(self, *created: Answer, for_good: bool = False) -> None:
        self._created = list(created)
        self._for_good = for_good
        self.creating = 0
        self.healths = 0

    def __call__(self, request: Request) -> Answer:
        if request.method == "HEAD":
            return Answer("", 404)
        if request.path.startswith("/_cluster/health"):
            self.healths += 1
            return Answer({"status": "yellow"})
        self.creating += 1
        if not self._created:
            return Answer({"acknowledged": True})
        return self._created[0] if self._for_good else self._created.pop(0)


def test_creating_an_index_is_given_up_when_the_total_time_is_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    indices = Indices(refusal(503, "process_cluster_event_timeout_exception"), for_good=True)
    began = time.monotonic()
    with pytest.raises(StoreUnavailable):
        cluster_of(indices, monkeypatch).ensure("i", {})
    assert time.monotonic() - began < LEEWAY_S
    assert 1 < indices.creating < 30, "it waits between two attempts"


def test_creating_an_index_is_tried_again_until_it_is_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    indices = Indices(page(503), refusal(429, "circuit_breaking_exception"))
    cluster_of(indices, monkeypatch, PATIENT).ensure("i", {})
    assert (indices.creating, indices.healths) == (3, 1)


def test_an_index_that_another_one_creates_at_this_moment_is_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    indices = Indices(refusal(400, "resource_already_exists_exception"))
    cluster_of(indices, monkeypatch, PATIENT).ensure("i", {})
    assert (indices.creating, indices.healths) == (1, 1)


def test_an_index_that_cannot_be_created_is_tried_once(monkeypatch: pytest.MonkeyPatch) -> None:
    indices = Indices(refusal(400, "validation_exception"))
    with pytest.raises(StoreError, match="validation_exception"):
        cluster_of(indices, monkeypatch, PATIENT).ensure("i", {})
    assert indices.creating == 1


# --------------------------------------------------------------------------------------- bulk


def test_only_rows_that_were_turned_away_are_sent_again(
    bulk: Bulk, monkeypatch: pytest.MonkeyPatch
) -> None:
    bulk.statuses = {"b": [BUSY, 503, 201], "d": [BUSY, 201]}
    cluster = cluster_of(bulk, monkeypatch, PATIENT)
    assert cluster.bulk("i", rows("a", "b", "c", "d")) == {}
    assert bulk.asked == [["a", "b", "c", "d"], ["b", "d"], ["b"]]
    assert sorted(bulk.stored) == ["a", "b", "c", "d"]


def test_rows_that_are_refused_for_good_are_named_and_not_sent_again(
    bulk: Bulk, monkeypatch: pytest.MonkeyPatch
) -> None:
    bulk.statuses = {"b": [400], "c": [BUSY, 409], "gone": [404]}
    cluster = cluster_of(bulk, monkeypatch, PATIENT)
    rejected = cluster.bulk("i", [*rows("a", "b", "c"), ({"delete": {"_id": "gone"}}, None)])
    assert rejected == {"b": "error_400", "c": "error_409"}
    assert bulk.asked == [["a", "b", "c", "gone"], ["c"]]


def test_rows_that_stay_turned_away_end_with_the_total_time(
    bulk: Bulk, monkeypatch: pytest.MonkeyPatch
) -> None:
    bulk.statuses = {"b": [BUSY]}
    began = time.monotonic()
    with pytest.raises(StoreUnavailable, match="turned rows away"):
        cluster_of(bulk, monkeypatch).bulk("i", rows("a", "b"))
    assert time.monotonic() - began < LEEWAY_S
    assert bulk.asked[0] == ["a", "b"]
    assert {tuple(keys) for keys in bulk.asked[1:]} == {("b",)}


def test_a_request_that_is_refused_for_its_size_is_sent_in_parts_and_the_next_ones_too(
    bulk: Bulk, monkeypatch: pytest.MonkeyPatch
) -> None:
    bulk.most_bytes = 3000
    keys = [f"r{n:03d}" for n in range(100)]
    cluster = cluster_of(bulk, monkeypatch, PATIENT)
    bulk.statuses = {"r050": [BUSY, 201], "r060": [400]}
    assert cluster.bulk("i", rows(*keys, size=100)) == {"r060": "error_400"}
    assert sorted(bulk.stored) == [key for key in keys if key != "r060"]
    assert len([key for keys in bulk.asked for key in keys]) == len(keys) + 1

    bulk.refused = 0
    assert cluster.bulk("i", rows(*keys, size=100)) == {"r060": "error_400"}
    assert not bulk.refused, "what is taken is known now"


def test_a_row_that_is_too_large_by_itself_is_rejected_alone(
    bulk: Bulk, monkeypatch: pytest.MonkeyPatch
) -> None:
    bulk.most_bytes = 3000
    huge = ({"index": {"_id": "huge"}}, {"text": "x" * 5000})
    cluster = cluster_of(bulk, monkeypatch, PATIENT)
    rejected = cluster.bulk("i", [*rows("a", "b"), huge, *rows("c")])
    assert list(rejected) == ["huge"]
    assert "client_max_body_size" in rejected["huge"]
    assert sorted(bulk.stored) == ["a", "b", "c"]
