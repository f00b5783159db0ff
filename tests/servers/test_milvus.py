"""A Milvus server keeps the contract of a vector store, on each index that settings can name."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from quarry.settings import MilvusSettings
from quarry.stores.milvus import MilvusVectorStore
from tests.contract.vector_store import MakeVectors, VectorStoreContract


class TestMilvusServer(VectorStoreContract):
    @pytest.fixture(params=["HNSW", "FLAT"])
    def make(
        self, request: pytest.FixtureRequest, milvus_settings: MilvusSettings
    ) -> Iterator[MakeVectors]:
        settings = milvus_settings.model_copy(update={"index": request.param})
        opened: list[MilvusVectorStore] = []

        def make(name: str) -> MilvusVectorStore:
            opened.append(MilvusVectorStore(settings, name))
            return opened[-1]

        yield make
        for store in opened:
            store.drop()
            store.close()
