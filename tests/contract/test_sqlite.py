"""The SQLite stores keep every store contract."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from quarry.stores.sqlite import Database
from quarry.stores.sqlite_catalog import SqliteCatalog
from quarry.stores.sqlite_registry import SqliteRegistry
from quarry.stores.sqlite_text import SqliteTextStore
from tests.contract.catalog import CatalogContract, MakeCatalog
from tests.contract.registry import MakeRegistry, RegistryContract
from tests.contract.text_store import MakeText, TextStoreContract


class Opened:
    """Opens a database of its own for each client, as another process would."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "quarry.sqlite"
        self._opened: list[Database] = []

    def __call__(self) -> Database:
        self._opened.append(Database(self._path))
        return self._opened[-1]

    def close(self) -> None:
        for database in self._opened:
            database.close()


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Opened]:
    opened = Opened(tmp_path)
    yield opened
    opened.close()


class TestSqliteTextStore(TextStoreContract):
    @pytest.fixture
    def make(self, database: Opened) -> MakeText:
        return lambda name: SqliteTextStore(database(), name)


class TestSqliteCatalog(CatalogContract):
    @pytest.fixture
    def make(self, database: Opened) -> MakeCatalog:
        return lambda name: SqliteCatalog(database(), name, retention=timedelta(days=365))

    @pytest.fixture
    def make_forgetful(self, database: Opened) -> MakeCatalog:
        return lambda name: SqliteCatalog(database(), name, retention=timedelta(0))


class TestSqliteRegistry(RegistryContract):
    @pytest.fixture
    def make(self, database: Opened) -> MakeRegistry:
        return lambda: SqliteRegistry(database())
