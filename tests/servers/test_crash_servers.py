"""Elasticsearch and Milvus killed by kill -9 at the steps of commits, and started again.

Six scenarios run at once, all stopped before the same store call. Then the server is killed, either
before they go on or just after. Impatient writers end with a sentence, patient ones wait for it to
come back. While it is down, readers see old or new or are told that they cannot see.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest

from loadtests.chaos.pages import PEOPLE
from loadtests.chaos.servers import Elasticsearch, Milvus
from quarry.errors import StoreUnavailable
from tests.servers.crash_world import COUNTS, Bench, bench_settings, fresh_steps, write_through

Pair = tuple[Elasticsearch, Milvus]
CALLS = range(0, 12, 2)
"""Every other store call of a commit; the proxies of the other suite cut at every one."""


@pytest.fixture(scope="module")
def urls(mortal: Pair) -> dict[str, str]:
    return {"elasticsearch": mortal[0].url, "milvus": mortal[1].uri}


@pytest.fixture(scope="module")
def patient(urls: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    made = Bench(bench_settings(tmp_path_factory.mktemp("patient"), urls))
    yield made
    made.close()


@pytest.fixture
def hasty(patient: Bench) -> Iterator[Bench]:
    """The same index with short time limits."""
    stores = patient.settings.stores
    limits = {"timeout_s": 1.0, "total_s": 1.5}
    stores = stores.model_copy(
        update={
            "elasticsearch": stores.elasticsearch.model_copy(update=limits),
            "milvus": stores.milvus.model_copy(update=limits),
        }
    )
    made = Bench(patient.settings.model_copy(update={"stores": stores}))
    yield made
    made.stores.close()


def kill(server: Elasticsearch | Milvus) -> None:
    COUNTS["kills"] += 1
    server.kill()


def kill_and_start(server: Elasticsearch | Milvus) -> None:
    """When the calls are on their way; it is away for a moment longer than its start takes."""
    time.sleep(0.004)
    kill(server)
    time.sleep(0.2)
    server.start()


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("which", [0, 1], ids=["elasticsearch", "milvus"])
def test_a_killed_server_leaves_old_or_new_and_the_next_sync_repairs(
    which: int, call: int, mortal: Pair, patient: Bench, hasty: Bench
) -> None:
    server = mortal[which]
    steps = fresh_steps(patient, f"{which}-{call}")
    if call % 4 == 0:
        write_through(hasty, steps, call, lambda: kill(server))
        if which == 0:
            with pytest.raises(StoreUnavailable):  # no catalog, no answer
                hasty.search(steps, PEOPLE[2])
        else:
            hasty.check(steps)
            assert "dense" in hasty.search(steps, PEOPLE[0]).degraded
        server.start()
    else:
        away = threading.Thread(target=kill_and_start, args=(server,))
        write_through(patient, steps, call, away.start)
        away.join()
    patient.check(steps)
    patient.repair(steps)
