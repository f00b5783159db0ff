"""Milvus Lite, through its owner's server, keeps the contract of a vector store."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from quarry.settings import Settings
from quarry.settings_stores import MilvusSettings
from quarry.stores.milvus import MilvusVectorStore
from quarry.stores.milvus_lite import server_address, vector_server
from tests.contract.vector_store import MakeVectors, VectorStoreContract


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Settings]:
    folder: Path = tmp_path_factory.mktemp("data")
    settings = Settings(data_dir=folder)
    with vector_server(settings):
        yield settings


class TestMilvusLite(VectorStoreContract):
    @pytest.fixture
    def make(self, settings: Settings) -> Iterator[MakeVectors]:
        opened: list[MilvusVectorStore] = []

        def make(name: str) -> MilvusVectorStore:
            address = partial(server_address, settings)
            opened.append(MilvusVectorStore(MilvusSettings(), name, address=address))
            return opened[-1]

        yield make
        for store in opened:
            store.drop()
            store.close()
