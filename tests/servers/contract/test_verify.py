"""Verify on the stores of a cluster: real scans, real row lists, real commits."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta

import pytest

from quarry import revisions
from quarry.ids import new_token
from quarry.settings_stores import ElasticsearchSettings, MilvusSettings
from quarry.stores.elasticsearch.catalog import ElasticsearchCatalog
from quarry.stores.elasticsearch.client import Cluster
from quarry.stores.elasticsearch.text import ElasticsearchText
from quarry.stores.factory import Stores
from quarry.stores.milvus import MilvusVectorStore
from quarry.verify import verify
from quarry.verify_report import Kind
from tests.contract.rows import DIMENSION, at, document
from tests.unit.revisions.verify_world import assert_mended, ingest, plant


@pytest.fixture
def stores(
    elasticsearch_settings: ElasticsearchSettings, milvus_settings: MilvusSettings
) -> Iterator[Stores]:
    cluster = Cluster(elasticsearch_settings)
    made = Stores(
        ElasticsearchCatalog(cluster, "g1", retention=timedelta(0)),
        ElasticsearchText(cluster, "g1"),
        MilvusVectorStore(milvus_settings, "g1"),
        clock=lambda: at(5),
    )
    made.ensure(DIMENSION)
    yield made
    for store in (made.catalog, made.text, made.vectors):
        store.drop()
    made.close()


def test_every_kind_of_difference_is_named_and_mended(stores: Stores) -> None:
    ingest(stores, "a", ["zero"])
    row = ingest(stores, "a", ["one"], acl=("public", "hr"))
    row = revisions.narrow(stores, row, replace(row, acl=("hr",)))
    for serial in (0, row.serial, row.serial + 1):
        plant(stores, row, new_token(serial))
    plant(stores, document("ghost"), new_token(0), count=3)
    counted = ingest(stores, "b", ["one", "two", "three"])
    stores.catalog.commit(replace(counted, chunk_count=2))
    lost = ingest(stores, "c", ["one", "two"])
    stores.text.delete([stores.text.row_refs(["c"])[0].row_id])
    gone = ingest(stores, "d", ["one"])
    revisions.delete(stores, gone)
    plant(stores, gone, gone.revision, where="vectors")
    unlisted = ingest(stores, "e", ["one"])
    for without in (gone, unlisted):
        stores.catalog.delete_entry(without.source, without.address)

    report = verify(stores, repair=True)
    # Elasticsearch has no rows that it cannot search; with lost documents nothing is cleared away.
    others = {Kind.MISSING_VECTORS, Kind.UNSEARCHABLE_TEXT, Kind.LOST_DOCUMENTS}
    assert report.found == dict.fromkeys(set(Kind) - others, 1)
    assert {each.address for each in report.reread} == {lost.address, unlisted.address}
    ingest(stores, "c", ["one", "two"])
    ingest(stores, "e", ["one"])
    texts = {"a": ["one"], "b": ["one", "two", "three"], "c": ["one", "two"], "e": ["one"]}
    assert_mended(stores, texts)
