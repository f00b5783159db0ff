"""One store cannot be reached: what readers are told, and what a writer can still do."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

import pytest

from loadtests.chaos.pages import PEOPLE
from loadtests.chaos.proxy import Proxy
from loadtests.chaos.sync import sync
from loadtests.chaos.world import GENERATION
from quarry.errors import StoreUnavailable
from quarry.stores.milvus import MilvusVectorStore
from tests.servers.faults.bench import COUNTS, Bench, changed, hasty
from tests.servers.faults.broken import ADDRESS, ELASTICSEARCH, MILVUS
from tests.servers.faults.scenarios import ALONE, still


@dataclass
class Through:
    """The same index, where the way to one store can be cut."""

    bench: Bench
    proxies: Mapping[str, Proxy]

    def without(self, store: str) -> Bench:
        """From now on that store is away; the limits of its calls are short."""
        self.proxies[store].cut()
        COUNTS["cuts"] += 1
        return Bench(hasty(self.bench.settings, store))


@pytest.fixture
def through(bench: Bench, addresses: Mapping[str, str]) -> Iterator[Through]:
    proxies = {name: Proxy(urlsplit(addresses[name]).port or 0).start() for name in ADDRESS}
    ways = {
        name: {ADDRESS[name]: f"http://127.0.0.1:{proxy.port}"} for name, proxy in proxies.items()
    }
    made = Through(Bench(changed(bench.settings, **ways)), proxies)
    yield made
    for proxy in proxies.values():
        proxy.stop()
    made.bench.close()


def fill(bench: Bench, *labels: str) -> None:
    """The pages of some scenarios, as they are before, each named after its own."""
    bench.put({label: ALONE[label].before for label in labels})


def test_without_the_vector_store_readers_see_whole_pages_and_nothing_forbidden(
    bench: Bench, through: Through
) -> None:
    fill(bench, *ALONE)
    left = through.without(MILVUS)
    pages = {label: still(step.before) for label, step in ALONE.items()}
    left.check(pages, without=("dense",))
    left.close()


def test_without_the_catalog_nobody_is_answered(bench: Bench, through: Through) -> None:
    fill(bench, *ALONE)
    left = through.without(ELASTICSEARCH)
    for person in PEOPLE[:2]:
        with pytest.raises(StoreUnavailable):
            left.search(ALONE, person)
    left.close()


@pytest.mark.parametrize("label", ["narrow", "delete"])
def test_what_is_forbidden_is_gone_at_once_though_the_vector_store_is_down(
    label: str, bench: Bench, through: Through
) -> None:
    fill(bench, label)
    left = through.without(MILVUS)
    with pytest.raises(StoreUnavailable):
        sync(left.stores, label, ALONE[label].after)
    left.check({label: still(ALONE[label].after)}, without=("dense",))
    left.close()
    bench.repair({label: ALONE[label]})


def test_a_vector_store_that_was_away_for_long_is_used_again_by_the_next_call(
    through: Through,
) -> None:
    """Its client must not have grown patient: gRPC's own would wait for up to two minutes."""
    limits = {"timeout_s": 4.0, "total_s": 5.0}
    settings = changed(through.bench.settings, milvus=limits).stores.milvus
    store = MilvusVectorStore(settings, GENERATION)
    held = store.count()
    through.proxies[MILVUS].cut()
    COUNTS["cuts"] += 1
    for _ in range(4):
        with pytest.raises(StoreUnavailable):
            store.count()
    through.proxies[MILVUS].heal()
    assert store.count() == held
    store.close()
