"""The registry in Elasticsearch: looking creates nothing, and only Elasticsearch says "nothing"."""

from __future__ import annotations

import pytest

pytest.importorskip("elasticsearch")

from quarry.errors import StoreError
from quarry.records import Generation
from quarry.stores.elasticsearch.registry import ElasticsearchRegistry
from tests.contract.rows import at
from tests.unit.stores.elasticsearch_node import (
    PATIENT,
    Answer,
    Answering,
    Request,
    cluster_of,
    page,
    refusal,
)

GENERATION = Generation(name="g1", fingerprint={}, created_at=at(0))


def registry_of(answering: Answering, monkeypatch: pytest.MonkeyPatch) -> ElasticsearchRegistry:
    cluster_of(answering, monkeypatch)
    return ElasticsearchRegistry(PATIENT)


@pytest.mark.parametrize(
    "nothing", [refusal(404, "index_not_found_exception"), Answer({"found": False}, 404)]
)
def test_looking_only_reads(nothing: Answer, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Request] = []

    def answering(request: Request) -> Answer:
        asked.append(request)
        return nothing

    registry = registry_of(answering, monkeypatch)
    assert registry.live() is None
    assert registry.generations() == []
    registry.remove("never there")
    assert {request.method for request in asked} == {"GET"}


def test_the_index_is_made_before_the_first_generation_is_written(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    written: list[str] = []

    def answering(request: Request) -> Answer:
        if request.method == "GET" and "_doc" in request.path:
            return refusal(404, "index_not_found_exception")
        if request.method == "HEAD":
            return Answer("", 404)
        if request.method != "GET":
            written.append(request.path)
        return Answer({"_id": "registry", "result": "created"})

    registry_of(answering, monkeypatch).create(GENERATION)
    assert written[0] == "/quarry-registry"
    assert written[1].startswith("/quarry-registry/_doc/registry")
    assert len(written) == 2


def test_a_page_of_a_proxy_is_not_taken_for_an_empty_registry(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with pytest.raises(StoreError, match="status 404"):
        registry_of(lambda _: page(404), monkeypatch).live()
