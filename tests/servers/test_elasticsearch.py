"""The Elasticsearch stores keep every promise of the ports, on a real node."""

from __future__ import annotations

from datetime import timedelta

import pytest

from quarry.settings import ElasticsearchSettings
from quarry.stores.elasticsearch.catalog import ElasticsearchCatalog
from quarry.stores.elasticsearch.client import Cluster
from quarry.stores.elasticsearch.registry import ElasticsearchRegistry
from quarry.stores.elasticsearch.text import ElasticsearchText
from tests.contract.catalog import CatalogContract, MakeCatalog
from tests.contract.registry import MakeRegistry, RegistryContract
from tests.contract.text_store import MakeText, TextStoreContract

FOREVER = timedelta(days=36_500)


class TestElasticsearchCatalog(CatalogContract):
    @pytest.fixture
    def make(self, elasticsearch_settings: ElasticsearchSettings) -> MakeCatalog:
        cluster = Cluster(elasticsearch_settings)
        return lambda name: ElasticsearchCatalog(cluster, name, retention=FOREVER)


class TestElasticsearchText(TextStoreContract):
    @pytest.fixture
    def make(self, elasticsearch_settings: ElasticsearchSettings) -> MakeText:
        cluster = Cluster(elasticsearch_settings)
        return lambda name: ElasticsearchText(cluster, name)


class TestElasticsearchRegistry(RegistryContract):
    @pytest.fixture
    def make(self, elasticsearch_settings: ElasticsearchSettings) -> MakeRegistry:
        return lambda: ElasticsearchRegistry(elasticsearch_settings)
