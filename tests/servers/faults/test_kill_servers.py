"""Elasticsearch and Milvus killed by kill -9 at every step of every scenario, and started again.

All scenarios run at once, a document for each of their steps, each stopped at its step. Then the
server is killed, before they go on or while their calls are under way. Impatient writers end with a
sentence, patient ones wait for it to come back. While it is down, readers see old or new or are
told that they cannot see.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from loadtests.chaos.pages import PEOPLE
from loadtests.chaos.servers import Elasticsearch, Milvus
from quarry.errors import StoreUnavailable
from tests.servers.faults.bench import COUNTS, Bench, fresh_bench, hasty
from tests.servers.faults.broken import ELASTICSEARCH, MILVUS, Ended, all_writers, write_all
from tests.servers.faults.scenarios import Step

pytestmark = pytest.mark.usefixtures("small_batches")

Server = Elasticsearch | Milvus
Pair = tuple[Elasticsearch, Milvus]
UNDER_WAY_MS = (3, 100)
"""Time after which a server is killed when the calls are made."""


@pytest.fixture
def urls(mortal: Pair) -> dict[str, str]:
    return {ELASTICSEARCH: mortal[0].url, MILVUS: mortal[1].uri}


@pytest.fixture
def server(mortal: Pair, which: str) -> Server:
    return mortal[which == MILVUS]


def kill(server: Server, steps: int) -> None:
    COUNTS["kills"] += 1
    COUNTS["killed"] += steps
    server.kill()


@pytest.mark.parametrize("which", [ELASTICSEARCH, MILVUS])
def test_a_server_killed_before_a_call_leaves_old_or_new_and_the_next_sync_repairs(
    which: str, server: Server, urls: Mapping[str, str], tmp_path: Path
) -> None:
    with fresh_bench(tmp_path, urls) as patient:
        writers = all_writers(patient)
        steps = {writer.name: writer.step for writer in writers}
        impatient = Bench(hasty(patient.settings, which))
        ended = write_all(
            patient,
            writers,
            [impatient.stores] * len(writers),
            lambda: kill(server, len(writers)),
        )
        assert len(ended.gave_up) > len(writers) / 3, "hardly anybody met what was broken"
        while_it_is_down(which, impatient, ended.allowed(steps))
        impatient.close()
        server.start()
        patient.check(ended.allowed(steps))
        patient.repair(steps)


def while_it_is_down(which: str, impatient: Bench, allowed: Mapping[str, Step]) -> None:
    if which == ELASTICSEARCH:
        with pytest.raises(StoreUnavailable):  # no catalog, no answer
            impatient.search(allowed, PEOPLE[2])
    else:
        impatient.check(allowed, without=("dense",))


@pytest.mark.parametrize("after_ms", UNDER_WAY_MS)
@pytest.mark.parametrize("which", [ELASTICSEARCH, MILVUS])
def test_a_server_killed_during_calls_is_waited_for_and_nothing_is_lost(
    which: str, after_ms: int, server: Server, urls: Mapping[str, str], tmp_path: Path
) -> None:
    with fresh_bench(tmp_path, urls) as patient:
        writers = all_writers(patient)
        steps = {writer.name: writer.step for writer in writers}

        def kill_and_start() -> None:
            time.sleep(after_ms / 1000)
            kill(server, len(writers))
            server.start()

        away = threading.Thread(target=kill_and_start)
        ended: Ended = write_all(patient, writers, [patient.stores] * len(writers), away.start)
        away.join()
        assert ended.gave_up == []
        patient.check(ended.allowed(steps))
        patient.repair(steps)
