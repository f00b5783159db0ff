"""The in-memory stores keep every store contract."""

from __future__ import annotations

from collections import defaultdict
from datetime import timedelta

import pytest

from quarry.stores.memory import (
    MemoryCatalog,
    MemoryRegistry,
    MemoryTextStore,
    MemoryVectorStore,
)
from tests.contract.catalog import CatalogContract, MakeCatalog
from tests.contract.registry import MakeRegistry, RegistryContract
from tests.contract.text_store import MakeText, TextStoreContract
from tests.contract.vector_store import MakeVectors, VectorStoreContract


class TestMemoryTextStore(TextStoreContract):
    @pytest.fixture
    def make(self) -> MakeText:
        opened: defaultdict[str, MemoryTextStore] = defaultdict(MemoryTextStore)
        return opened.__getitem__


class TestMemoryVectorStore(VectorStoreContract):
    @pytest.fixture
    def make(self) -> MakeVectors:
        opened: defaultdict[str, MemoryVectorStore] = defaultdict(MemoryVectorStore)
        return opened.__getitem__


class TestMemoryCatalog(CatalogContract):
    @pytest.fixture
    def make(self) -> MakeCatalog:
        opened = defaultdict(lambda: MemoryCatalog(retention=timedelta(days=365)))
        return opened.__getitem__

    @pytest.fixture
    def make_forgetful(self) -> MakeCatalog:
        opened: defaultdict[str, MemoryCatalog] = defaultdict(MemoryCatalog)
        return opened.__getitem__


class TestMemoryRegistry(RegistryContract):
    @pytest.fixture
    def make(self) -> MakeRegistry:
        registry = MemoryRegistry()
        return lambda: registry
