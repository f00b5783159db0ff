"""Servers of the suite: the ones that `make servers` started, and ones of its own to kill."""

from __future__ import annotations

import json
import shutil
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from loadtests.chaos.servers import (
    ELASTICSEARCH,
    SHORT_SESSION_S,
    STATE,
    TOOLS,
    Elasticsearch,
    Milvus,
    all_running,
)
from quarry import attempts, revisions
from quarry.settings_stores import ElasticsearchSettings, MilvusSettings
from quarry.stores.elasticsearch.client import Cluster
from tests.conftest import REPO, absent
from tests.servers import counts
from tests.servers.faults.bench import Bench, fresh_bench

FOLDER = REPO / ".servers"
"""Of `make servers`; whatever runs in it is stopped by `make servers-down`."""
BATCH_ROWS = 16
"""Rows of one store call, so that a document of 30 chunks takes two."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.servers)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--counts", type=Path, help="A file for what was done, in numbers, as JSON.")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    for line in counts.lines():
        terminalreporter.write_line(line)
    if path := terminalreporter.config.getoption("--counts"):
        ended = {name: len(reports) for name, reports in terminalreporter.stats.items() if name}
        path.write_text(json.dumps({"tests": ended, "counts": counts.as_json()}))


@pytest.fixture(scope="session")
def addresses() -> dict[str, str]:
    """`elasticsearch` and `milvus` addresses of the running servers."""
    if not (FOLDER / STATE).exists():
        absent("no servers are running; run: make servers")
    state = json.loads((FOLDER / STATE).read_text())
    return {"elasticsearch": state["elasticsearch"]["url"], "milvus": state["milvus"]["uri"]}


@pytest.fixture(autouse=True)
def running(request: pytest.FixtureRequest) -> None:
    """A server that has gone fails each test at once: waiting for it would take them minutes."""
    if "addresses" in request.fixturenames and not all_running(FOLDER):
        pytest.fail("a server has stopped; its log in .servers says why; run: make servers")


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


# ------------------------------------------------------------------------ what is broken in tests


@pytest.fixture
def bench(addresses: dict[str, str], tmp_path: Path) -> Iterator[Bench]:
    """Straight to the shared servers."""
    with fresh_bench(tmp_path, addresses) as made:
        yield made


@pytest.fixture
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (attempts, revisions):
        monkeypatch.setattr(module, "BATCH_ROWS", BATCH_ROWS)


@pytest.fixture(scope="session")
def mortal() -> Iterator[tuple[Elasticsearch, Milvus]]:
    """A pair of servers that tests may kill; they must be running again when a test ends."""
    if not (TOOLS / "done").exists() or not ELASTICSEARCH.exists():
        absent("the servers are not installed; run: make servers")
    folder = FOLDER / "mortal"
    pair = (
        Elasticsearch(folder / "elasticsearch"),
        Milvus(folder / "milvus", session_s=SHORT_SESSION_S),
    )
    for server in pair:
        server.kill()  # of a run that was broken off
    shutil.rmtree(folder, ignore_errors=True)
    with ThreadPoolExecutor() as pool:
        list(pool.map(lambda server: server.start(), pair))
    yield pair
    for server in pair:
        server.kill()
    shutil.rmtree(folder)
