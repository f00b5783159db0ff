"""What the suites of ingest share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from quarry.stores.milvus_lite import vector_server
from tests.e2e.ingest_world import InProcessParsers, World


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    monkeypatch.setattr("ingest.parsers.sandbox.ParserPool", InProcessParsers)
    made = World(tmp_path)
    with vector_server(made.settings):  # one owner for the whole test: it takes a second to start
        yield made
