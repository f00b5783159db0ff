"""The past on the stores of the embedded profile, and in memory."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from functools import partial
from itertools import count
from pathlib import Path

import pytest

from quarry.settings import Settings
from quarry.settings_stores import MilvusSettings
from quarry.stores.factory import Stores
from quarry.stores.memory import MemoryCatalog, MemoryTextStore, MemoryVectorStore
from quarry.stores.milvus import MilvusVectorStore
from quarry.stores.milvus_lite import server_address, vector_server
from quarry.stores.sqlite import open_database
from quarry.stores.sqlite_catalog import SqliteCatalog
from quarry.stores.sqlite_text import SqliteTextStore
from tests.contract.as_of import AsOfContract

YEAR = timedelta(days=365)


class TestMemory(AsOfContract):
    @pytest.fixture
    def stores(self) -> Stores:
        return Stores(MemoryCatalog(retention=YEAR), MemoryTextStore(), MemoryVectorStore())


class TestEmbedded(AsOfContract):
    @pytest.fixture(scope="class")
    def names(self) -> Iterator[str]:
        return (f"g{number}" for number in count(1))

    @pytest.fixture(scope="class")
    def settings(self, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Settings]:
        settings = Settings(data_dir=tmp_path_factory.mktemp("data"))
        with vector_server(settings):
            yield settings

    @pytest.fixture
    def stores(self, settings: Settings, names: Iterator[str], tmp_path: Path) -> Iterator[Stores]:
        database, name = open_database(tmp_path), next(names)
        address = partial(server_address, settings)
        stores = Stores(
            SqliteCatalog(database, name, retention=YEAR),
            SqliteTextStore(database, name),
            MilvusVectorStore(MilvusSettings(), name, address=address),
        )
        yield stores
        stores.vectors.drop()
        stores.close()
