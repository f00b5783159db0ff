"""The contract of a vector store on a Milvus server; a test of one index inherits this.

Each index has a file of its own, since files run beside each other (tests/servers/__main__.py), and
these wait for Milvus nearly all the time.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

import pytest

from quarry.settings_stores import MilvusSettings
from quarry.stores.milvus import MilvusVectorStore
from tests.contract.vector_store import MakeVectors, VectorStoreContract

GENERATIONS = ("g1", "g2")
"""Those that the contract makes."""


class MilvusServerContract(VectorStoreContract):
    index: ClassVar[Mapping[str, Any]] = {}
    """What the settings say of it."""

    @pytest.fixture(scope="class")
    def settings(self, addresses: dict[str, str]) -> Iterator[MilvusSettings]:
        """Making a collection takes seconds, so all tests use the same ones."""
        prefix = f"t{uuid.uuid4().hex[:8]}"
        settings = MilvusSettings(uri=addresses["milvus"], collection_prefix=prefix, **self.index)
        yield settings
        for name in GENERATIONS:
            store = MilvusVectorStore(settings, name)
            store.drop()
            store.close()

    @pytest.fixture
    def make(self, settings: MilvusSettings) -> Iterator[MakeVectors]:
        opened: list[MilvusVectorStore] = []

        def make(name: str) -> MilvusVectorStore:
            assert name in GENERATIONS
            opened.append(MilvusVectorStore(settings, name))
            return opened[-1]

        yield make
        for store in opened:
            clear(store)
            store.close()


def clear(store: MilvusVectorStore) -> None:
    while refs := store.scan():
        store.delete([ref.row_id for ref in refs])
    assert store.count() == 0
