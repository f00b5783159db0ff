"""The past on the stores of a cluster."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import pytest

from quarry.settings_stores import ElasticsearchSettings, MilvusSettings
from quarry.stores.elasticsearch.catalog import ElasticsearchCatalog
from quarry.stores.elasticsearch.client import Cluster
from quarry.stores.elasticsearch.text import ElasticsearchText
from quarry.stores.factory import Stores
from quarry.stores.milvus import MilvusVectorStore
from tests.contract.as_of import AsOfContract


class TestCluster(AsOfContract):
    @pytest.fixture
    def stores(
        self, elasticsearch_settings: ElasticsearchSettings, milvus_settings: MilvusSettings
    ) -> Iterator[Stores]:
        cluster = Cluster(elasticsearch_settings)
        made = Stores(
            ElasticsearchCatalog(cluster, "g1", retention=timedelta(days=365)),
            ElasticsearchText(cluster, "g1"),
            MilvusVectorStore(milvus_settings, "g1"),
        )
        yield made
        for store in (made.catalog, made.text, made.vectors):
            store.drop()
        made.close()
