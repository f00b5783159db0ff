"""The filter on a real Elasticsearch node and a real Milvus server."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import pytest
from elasticsearch import Elasticsearch

from quarry.access.compile import (
    elasticsearch_fields,
    milvus_fields,
    to_elasticsearch,
    to_milvus,
)
from quarry.access.filters import Filter
from quarry.stores.elasticsearch.mappings import LABELS
from tests.contract.filters import ROWS, FilterContract, Find, names_hostile_key, names_long_text
from tests.contract.milvus_rows import filled_collection


@pytest.fixture(scope="module")
def index(addresses: dict[str, str]) -> Iterator[tuple[Elasticsearch, str]]:
    client = Elasticsearch(addresses["elasticsearch"])
    name = f"filters-{uuid.uuid4().hex[:8]}"
    client.indices.create(index=name, mappings={"dynamic": "strict", "properties": LABELS})
    operations: list[dict[str, object]] = []
    for row, labels in ROWS.items():
        operations += [{"index": {"_id": row}}, elasticsearch_fields(labels)]
    answer = client.bulk(index=name, operations=operations, refresh=True)
    assert not answer["errors"]
    yield client, name
    client.indices.delete(index=name)
    client.close()


class TestElasticsearchFilters(FilterContract):
    def may_widen(self, filter: Filter) -> bool:
        return names_long_text(filter)

    @pytest.fixture
    def find(self, index: tuple[Elasticsearch, str]) -> Find:
        client, name = index

        def find(filter: Filter) -> set[str]:
            query = {"bool": {"filter": [to_elasticsearch(filter)]}}
            answer = client.search(index=name, query=query, size=len(ROWS), source=False)
            return {hit["_id"] for hit in answer["hits"]["hits"]}

        return find


class TestMilvusServerFilters(FilterContract):
    def may_widen(self, filter: Filter) -> bool:
        return names_long_text(filter) or names_hostile_key(filter)

    @pytest.fixture(scope="class")
    def find(self, addresses: dict[str, str]) -> Iterator[Find]:
        rows = {row: milvus_fields(labels) for row, labels in ROWS.items()}
        with filled_collection(addresses["milvus"], rows) as query:
            yield lambda filter: query(to_milvus(filter))
