"""The settings decide which stores are opened, and nothing else is imported."""

from __future__ import annotations

import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pytest

from quarry.errors import MissingExtra, StoreUnavailable
from quarry.settings import Settings
from quarry.settings_stores import StoreSettings
from quarry.stores.factory import open_catalog, open_registry, open_stores
from quarry.stores.memory import MemoryCatalog, MemoryRegistry, MemoryTextStore
from quarry.stores.sqlite_catalog import SqliteCatalog
from quarry.stores.sqlite_registry import SqliteRegistry
from tests.contract.rows import DIMENSION, document, text_row


def settings_of(folder: Path, **stores: object) -> Settings:
    return Settings(data_dir=folder, stores=StoreSettings.model_validate(stores))


def test_memory_stores_are_new_and_empty_each_time(tmp_path: Path) -> None:
    settings = settings_of(tmp_path, text="memory", vectors="memory")
    stores = open_stores(settings, "g1")
    assert isinstance(stores.catalog, MemoryCatalog)
    assert isinstance(stores.text, MemoryTextStore)
    assert isinstance(open_registry(settings), MemoryRegistry)
    stores.catalog.commit(document())
    assert open_stores(settings, "g1").catalog.scan() == []


def test_sqlite_stores_share_one_file_in_a_folder_that_is_made(tmp_path: Path) -> None:
    settings = settings_of(tmp_path / "new", vectors="memory", retention_days=2)
    registry = open_registry(settings)
    stores = open_stores(settings, "g1")
    stores.ensure(DIMENSION)
    stored = stores.catalog.commit(document())
    stores.text.upsert([text_row("a tent")])
    assert isinstance(registry, SqliteRegistry)
    assert isinstance(stores.catalog, SqliteCatalog)
    assert stores.retention == timedelta(days=2)
    alone = open_catalog(settings, "g1")
    assert alone.get(["d1"]) == {"d1": stored}
    for each in (registry, stores, alone):
        each.close()
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["quarry.sqlite"]
    assert (tmp_path / "new").stat().st_mode & 0o077 == 0


def test_vectors_of_milvus_lite_are_reached_only_through_an_owner(tmp_path: Path) -> None:
    stores = open_stores(settings_of(tmp_path), "g1")
    with pytest.raises(StoreUnavailable, match="No process serves"):
        stores.vectors.count()
    stores.close()


def test_a_package_that_is_not_installed_is_named_with_its_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "elasticsearch", None)
    settings = settings_of(tmp_path, text="elasticsearch", vectors="memory")
    for opening in (lambda: open_registry(settings), lambda: open_stores(settings, "g1")):
        with pytest.raises(MissingExtra, match=r"\.\[elasticsearch\]"):
            opening()


def test_opening_one_kind_imports_no_other() -> None:
    program = """
import sys
from quarry.settings import Settings
from quarry.settings_stores import StoreSettings
from quarry.stores.factory import open_stores
open_stores(Settings(stores=StoreSettings(text="memory", vectors="memory")), "g1")
loaded = {name.partition(".")[0] for name in sys.modules}
print(sorted(loaded & {"pymilvus", "milvus_lite", "elasticsearch", "grpc", "torch", "ray"}))
"""
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "[]"
