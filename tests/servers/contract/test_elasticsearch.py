"""The Elasticsearch stores keep every promise of the ports, on a real node."""

from __future__ import annotations

from datetime import timedelta

import pytest

from quarry.errors import StoreUnavailable
from quarry.settings_stores import ElasticsearchSettings
from quarry.stores.elasticsearch.catalog import ElasticsearchCatalog
from quarry.stores.elasticsearch.client import Cluster
from quarry.stores.elasticsearch.registry import ElasticsearchRegistry
from quarry.stores.elasticsearch.text import ElasticsearchText
from tests.contract.catalog import CatalogContract, MakeCatalog
from tests.contract.registry import MakeRegistry, RegistryContract
from tests.contract.rows import document
from tests.contract.text_store import MakeText, TextStoreContract

FOREVER = timedelta(days=36_500)
NODE = "index.routing.allocation.require._name"
"""Where the shards of an index may be; nowhere if no node has that name."""


class TestElasticsearchCatalog(CatalogContract):
    @pytest.fixture
    def make(self, elasticsearch_settings: ElasticsearchSettings) -> MakeCatalog:
        cluster = Cluster(elasticsearch_settings)
        return lambda name: ElasticsearchCatalog(cluster, name, retention=FOREVER)

    @pytest.fixture
    def make_forgetful(self, elasticsearch_settings: ElasticsearchSettings) -> MakeCatalog:
        cluster = Cluster(elasticsearch_settings)
        return lambda name: ElasticsearchCatalog(cluster, name, retention=timedelta(0))


class TestElasticsearchText(TextStoreContract):
    @pytest.fixture
    def make(self, elasticsearch_settings: ElasticsearchSettings) -> MakeText:
        cluster = Cluster(elasticsearch_settings)
        return lambda name: ElasticsearchText(cluster, name)


class TestElasticsearchRegistry(RegistryContract):
    @pytest.fixture
    def make(self, elasticsearch_settings: ElasticsearchSettings) -> MakeRegistry:
        return lambda: ElasticsearchRegistry(elasticsearch_settings)


def test_rows_whose_shard_is_not_there_yet_are_not_missing(
    elasticsearch_settings: ElasticsearchSettings,
) -> None:
    hasty = elasticsearch_settings.model_copy(update={"total_s": 0.5})
    catalog = ElasticsearchCatalog(Cluster(hasty), "g1", retention=FOREVER)
    indices = Cluster(elasticsearch_settings).client.indices
    name = f"{hasty.index_prefix}-g1-documents"
    indices.create(index=name, settings={NODE: "none"}, wait_for_active_shards=0)
    for read in (catalog.get, catalog.histories):
        with pytest.raises(StoreUnavailable):
            read(["d1"])
    with pytest.raises(StoreUnavailable):
        catalog.commit(document("d1"))
    indices.put_settings(index=name, settings={NODE: None})
    patient = ElasticsearchCatalog(Cluster(elasticsearch_settings), "g1", retention=FOREVER)
    assert patient.get(["d1"]) == {}
