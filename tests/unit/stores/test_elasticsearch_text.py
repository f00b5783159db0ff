"""Text rows in Elasticsearch: how much is asked for."""

from __future__ import annotations

import pytest

pytest.importorskip("elasticsearch")

from quarry.errors import StoreError, StoreUnavailable
from quarry.settings_stores import ElasticsearchSettings
from quarry.stores.elasticsearch.text import ElasticsearchText
from tests.unit.stores.elasticsearch_node import (
    PATIENT,
    SETTINGS,
    Answer,
    Request,
    cluster_of,
)


class Holders:
    """Rows by the hash of their text; answers a search as far as `find_text` asks."""

    def __init__(self, **rows: int) -> None:
        self.rows = rows
        self.requests = 0
        self.failing: list[int] = []

    def __call__(self, request: Request) -> Answer:
        self.requests += 1
        if "_msearch" in request.path:
            return Answer({"responses": [self._one(body) for body in request.lines[1::2]]})
        asked = request.json
        hits = self._hits(asked["query"]["terms"]["text_hash"], asked["size"])
        cursor = asked.get("search_after", [""])[0]
        return Answer({"hits": {"hits": [hit for hit in hits if hit["_id"] > cursor]}})

    def _one(self, body: dict) -> dict:  # type: ignore[type-arg]
        if self.failing:
            status = self.failing.pop()
            return {"error": {"type": "x_exception", "reason": "SECRET"}, "status": status}
        (term,) = body["query"]["bool"]["filter"]
        return {"hits": {"hits": self._hits([term["term"]["text_hash"]], body["size"])}}

    def _hits(self, wanted: list[str], size: int) -> list[dict]:  # type: ignore[type-arg]
        hits = []
        for text_hash in sorted(set(wanted) & self.rows.keys()):
            for n in range(min(size, self.rows[text_hash])):
                key = f"{text_hash}-{n:06d}"
                hits.append({"_id": key, "_source": {"text_hash": text_hash}, "sort": [key]})
        return hits[:size]


def text_of(
    holders: Holders,
    monkeypatch: pytest.MonkeyPatch,
    settings: ElasticsearchSettings = PATIENT,
) -> ElasticsearchText:
    return ElasticsearchText(cluster_of(holders, monkeypatch, settings), "g1")


def test_a_text_that_many_rows_hold_costs_no_more_requests(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    holders = Holders(a=100_000)
    assert text_of(holders, monkeypatch).find_text(["a"]) == {"a": "a-000000"}
    assert holders.requests == 1


def test_rare_texts_are_found_beside_common_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    holders = Holders(a=100_000, b=50_000, c=1)
    found = text_of(holders, monkeypatch).find_text(["a", "b", "c", "unknown"])
    assert {key: row[0] for key, row in found.items()} == {"a": "a", "b": "b", "c": "c"}
    assert holders.requests == 2


def test_a_search_that_fails_for_now_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    holders = Holders(a=1000, b=1)
    holders.failing = [503]
    assert sorted(text_of(holders, monkeypatch).find_text(["a", "b"])) == ["a", "b"]


@pytest.mark.parametrize(("status", "kind"), [(503, StoreUnavailable), (400, StoreError)])
def test_a_search_that_keeps_failing_is_an_error_and_no_unknown_text(
    status: int, kind: type[StoreError], monkeypatch: pytest.MonkeyPatch
) -> None:
    holders = Holders(a=1000, b=1)
    holders.failing = [status] * 1000
    with pytest.raises(kind) as caught:
        text_of(holders, monkeypatch, SETTINGS).find_text(["a", "b"])
    assert "SECRET" not in str(caught.value)
