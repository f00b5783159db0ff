"""A Milvus server keeps the contract of a vector store with a partition for some tenants each, and
a search of a tenant reads its partition only."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

import pytest
from pymilvus import MilvusClient

from quarry.access import EVERYTHING
from quarry.access.check import scope_filter
from quarry.access.filters import Filter
from quarry.records import Principal, VectorRow
from quarry.settings_stores import MilvusSettings
from quarry.stores import milvus
from quarry.stores.milvus import MilvusVectorStore
from tests.contract.rows import DIMENSION, labels, vector, vector_row
from tests.servers.contract.milvus_server import MilvusServerContract

PARTITIONS = 4
TENANTS = ("north", "south")
ROWS = 20


class TestTenants(MilvusServerContract):
    index: ClassVar = {"tenant_partitions": PARTITIONS}


@pytest.fixture
def settings(milvus_settings: MilvusSettings) -> MilvusSettings:
    return milvus_settings.model_copy(update={"tenant_partitions": PARTITIONS})


@pytest.fixture
def store(settings: MilvusSettings) -> Iterator[MilvusVectorStore]:
    store = MilvusVectorStore(settings, "g1")
    store.ensure(DIMENSION)
    yield store
    store.drop()
    store.close()


@pytest.fixture
def client(settings: MilvusSettings) -> Iterator[MilvusClient]:
    client = MilvusClient(uri=settings.uri)
    yield client
    client.close()


def rows_of(tenant: str) -> list[VectorRow]:
    own = labels(tenant=tenant)
    return [vector_row(f"{tenant}{n:02d}", vector(1.0), row_labels=own) for n in range(ROWS)]


def found(store: MilvusVectorStore, where: Filter) -> set[str]:
    return {hit.row_id for hit in store.search(vector(1.0), limit=4 * ROWS, where=where)}


def scope(tenant: str) -> Filter:
    return scope_filter(Principal(tenant=tenant))


def test_the_scope_of_a_tenant_finds_its_rows_and_none_of_another(
    store: MilvusVectorStore,
) -> None:
    for tenant in TENANTS:
        store.upsert(rows_of(tenant))
    store.flush()
    for tenant in TENANTS:
        assert found(store, scope(tenant)) == {row.row_id for row in rows_of(tenant)}
    assert found(store, scope("nobody's")) == set()
    assert len(found(store, EVERYTHING)) == len(TENANTS) * ROWS


def test_all_rows_of_a_tenant_are_in_one_partition(
    store: MilvusVectorStore, settings: MilvusSettings, client: MilvusClient
) -> None:
    name = f"{settings.collection_prefix}_g1"
    fields = {field["name"]: field for field in client.describe_collection(name)["fields"]}
    assert [each for each in fields if fields[each].get("is_partition_key")] == ["tenant"]
    store.upsert(rows_of("north"))
    store.flush()
    partitions = client.list_partitions(name)
    counts = [client.get_partition_stats(name, each)["row_count"] for each in partitions]
    assert sorted(map(int, counts)) == [0] * (PARTITIONS - 1) + [ROWS]


def test_a_search_of_a_tenant_reads_its_partition_only(
    store: MilvusVectorStore,
    settings: MilvusSettings,
    client: MilvusClient,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Milvus 2.3 upserts into partitions by primary key: rows that lie elsewhere are not found."""

    def upsert(self: MilvusVectorStore, rows: list[dict[str, Any]], client: MilvusClient) -> None:
        client.upsert(f"{settings.collection_prefix}_g1", rows)

    monkeypatch.setattr(milvus.MilvusVectorStore, "_upsert", upsert)
    store.upsert(rows_of("north"))
    store.flush()
    assert len(found(store, EVERYTHING)) == ROWS
    assert 0 < len(found(store, scope("north"))) < ROWS
