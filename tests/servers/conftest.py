"""Servers of the suite: the ones that `make servers` started, and ones of its own to kill."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from quarry.settings import ElasticsearchSettings, MilvusSettings
from quarry.stores.elasticsearch.client import Cluster
from tests.conftest import REPO, absent
from tests.leaks.judge import tally_line
from tests.servers.crash_world import count_line
from tests.servers.managed import ELASTICSEARCH, TOOLS, Elasticsearch, Milvus

STATE = REPO / ".servers" / "servers.json"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.servers)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    for line in filter(None, (count_line(), tally_line())):
        terminalreporter.write_line(line)


@pytest.fixture(scope="session")
def addresses() -> dict[str, str]:
    """`elasticsearch` and `milvus` addresses of the running servers."""
    if not STATE.exists():
        absent("no servers are running; run: make servers")
    state = json.loads(STATE.read_text())
    return {"elasticsearch": state["elasticsearch"]["url"], "milvus": state["milvus"]["uri"]}


@pytest.fixture
def elasticsearch_settings(addresses: dict[str, str]) -> Iterator[ElasticsearchSettings]:
    """A fresh prefix for each test on the shared node; its indices go with the test."""
    prefix = f"t{uuid.uuid4().hex[:8]}"
    settings = ElasticsearchSettings(
        url=addresses["elasticsearch"], index_prefix=prefix, replicas=0
    )
    yield settings
    cluster = Cluster(settings)
    names = cluster.call(lambda c: list(c.indices.get(index=f"{prefix}-*")))
    if names:
        cluster.drop(names)
    cluster.close()


@pytest.fixture
def milvus_settings(addresses: dict[str, str]) -> MilvusSettings:
    """A fresh prefix for each test on the shared server."""
    return MilvusSettings(uri=addresses["milvus"], collection_prefix=f"t{uuid.uuid4().hex[:8]}")


@pytest.fixture(scope="session")
def mortal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Elasticsearch, Milvus]]:
    """A pair of servers that tests may kill; they must be running again when a test ends."""
    if not (TOOLS / "done").exists() or not ELASTICSEARCH.exists():
        absent("the servers are not installed; run: make servers")
    folder = tmp_path_factory.mktemp("mortal")
    search, vectors = Elasticsearch(folder / "elasticsearch"), Milvus(folder / "milvus")
    search.start()
    vectors.start()
    yield search, vectors
    search.kill()
    vectors.kill()
