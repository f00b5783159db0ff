"""The way to a store cut by a TCP proxy at every step of commits, between and within requests."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from urllib.parse import urlsplit

import pytest

from loadtests.chaos.pages import PEOPLE, Author, Page
from loadtests.chaos.proxy import Proxy
from loadtests.chaos.sync import sync
from loadtests.chaos.world import GENERATION
from quarry.errors import ModelError, StoreUnavailable
from quarry.models.fakes import FakeEmbedder
from quarry.records import Vectors
from quarry.stores.milvus import MilvusVectorStore
from tests.servers.crash_world import (
    COUNTS,
    STEPS,
    Bench,
    Step,
    bench_settings,
    fresh_steps,
    together,
    try_sync,
    write_through,
)

STORES = ("elasticsearch", "milvus")
CALLS = range(12)
"""As many as the longest scenario makes."""
WITHIN = 700
"""Bytes of a request that still arrive."""


@pytest.fixture(scope="module")
def proxies(addresses: dict[str, str]) -> Iterator[dict[str, Proxy]]:
    made = {name: Proxy(urlsplit(addresses[name]).port or 0).start() for name in STORES}
    yield made
    for proxy in made.values():
        proxy.stop()


@pytest.fixture(scope="module")
def bench(
    proxies: dict[str, Proxy],
    addresses: dict[str, str],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Bench]:
    """Straight to the servers."""
    made = Bench(bench_settings(tmp_path_factory.mktemp("cut"), addresses))
    yield made
    made.close()


@pytest.fixture(scope="module")
def through(proxies: dict[str, Proxy], bench: Bench) -> Iterator[Bench]:
    """The same index through the proxies, with short time limits."""
    stores = bench.settings.stores
    limits = {"timeout_s": 1.0, "total_s": 1.2}
    url, uri = (f"http://127.0.0.1:{proxies[name].port}" for name in STORES)
    stores = stores.model_copy(
        update={
            "elasticsearch": stores.elasticsearch.model_copy(update={"url": url, **limits}),
            "milvus": stores.milvus.model_copy(update={"uri": uri, **limits}),
        }
    )
    made = Bench(bench.settings.model_copy(update={"stores": stores}))
    yield made
    made.stores.close()


@pytest.fixture(autouse=True)
def reachable(proxies: dict[str, Proxy], through: Bench) -> Iterator[None]:
    """Both ways are open when a test begins, and when it ends."""
    for proxy in proxies.values():
        proxy.heal()
    deadline = time.monotonic() + 60.0
    while time.monotonic() < deadline:
        with suppress(StoreUnavailable):
            through.stores.vectors.count()
            through.stores.text.count()
            break
    yield
    for proxy in proxies.values():
        proxy.heal()


@pytest.mark.parametrize("within", [False, True], ids=["between", "within"])
@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("store", STORES)
def test_a_cut_leaves_old_or_new_and_the_next_sync_repairs(
    store: str,
    call: int,
    within: bool,
    proxies: dict[str, Proxy],
    bench: Bench,
    through: Bench,
) -> None:
    proxy = proxies[store]
    steps = fresh_steps(bench, f"{store}-{call}-{within}")
    act = (lambda: proxy.cut_after(WITHIN)) if within else proxy.cut
    assert write_through(through, steps, call, act).broken, "no scenario makes so many calls"
    COUNTS["cuts"] += proxy.is_cut
    proxy.heal()
    bench.check(steps)
    bench.repair(steps)


# ------------------------------------------------------------------------------ one store is down


def test_without_the_vector_store_readers_see_whole_pages_and_nothing_forbidden(
    proxies: dict[str, Proxy], bench: Bench, through: Bench
) -> None:
    steps = fresh_steps(bench, "no-vectors")
    proxies["milvus"].cut()
    COUNTS["cuts"] += 1
    before = {name: Step(step.before, step.before) for name, step in steps.items()}
    through.check(before)
    assert through.search(steps, PEOPLE[0]).degraded == ("dense",)


def test_without_the_catalog_nobody_is_answered(
    proxies: dict[str, Proxy], bench: Bench, through: Bench
) -> None:
    steps = fresh_steps(bench, "no-catalog")
    proxies["elasticsearch"].cut()
    COUNTS["cuts"] += 1
    for person in PEOPLE[:2]:
        with pytest.raises(StoreUnavailable):
            through.search(steps, person)


def test_a_vector_store_that_was_away_for_long_is_used_again_by_the_next_call(
    proxies: dict[str, Proxy], through: Bench
) -> None:
    """Its client must not have grown patient: gRPC's own would wait for up to two minutes."""
    settings = through.settings.stores.milvus.model_copy(update={"total_s": 5.0})
    store = MilvusVectorStore(settings, GENERATION)
    held = store.count()
    proxies["milvus"].cut()
    COUNTS["cuts"] += 1
    for _ in range(4):
        with pytest.raises(StoreUnavailable):
            store.count()
    proxies["milvus"].heal()
    assert store.count() == held
    store.close()


@pytest.mark.parametrize("label", ["narrow", "delete"])
def test_what_is_forbidden_is_gone_at_once_though_the_vector_store_is_down(
    label: str, proxies: dict[str, Proxy], bench: Bench, through: Bench
) -> None:
    steps = {f"down-{label}": STEPS[label]}
    bench.put({name: step.before for name, step in steps.items()})
    proxies["milvus"].cut()
    COUNTS["cuts"] += 1
    with pytest.raises(StoreUnavailable):
        sync(through.stores, f"down-{label}", STEPS[label].after)
    through.check({f"down-{label}": Step(STEPS[label].after, STEPS[label].after)})
    proxies["milvus"].heal()
    bench.repair(steps)


# ------------------------------------------------------------------------- no server is to blame


def test_two_syncs_at_once_leave_one_whole_page(bench: Bench) -> None:
    author = Author("q", random.Random(3))
    names = [f"race-{number}" for number in range(6)]
    old, one, other = (
        {name: author.page(size, ("public",)) for name in names} for size in (6, 8, 4)
    )
    bench.put(old)
    second: Mapping[str, Page | None] = {**other, names[-1]: None}

    def write(pages: Mapping[str, Page | None]) -> None:
        for name, page in pages.items():
            try_sync(bench.stores, name, page)

    assert together(lambda: write(one), lambda: write(second)) == []
    for name in names:
        left = [page for page in (one[name], second[name]) if _shows(bench, name, page)]
        assert len(left) == 1
    bench.repair({name: Step(None, second[name]) for name in names})


def _shows(bench: Bench, name: str, page: Page | None) -> bool:
    return not bench.wrong({name: Step(page, page)})


def test_a_delete_during_an_upload_wins(bench: Bench) -> None:
    gone: dict[str, Step] = {}
    for call in (3, 6, 8):  # before the first row is written, before the check, before the commit
        name, step = f"upload-{call}", STEPS["shrink"]
        bench.put({name: step.before})

        def delete(name: str = name) -> None:
            sync(bench.stores, name, None)

        assert write_through(bench, {name: step}, call, delete).said, "the upload must lose"
        gone[name] = Step(None, None)
        bench.check(gone)
    bench.repair(gone)


def test_an_embedder_that_fails_midway_leaves_the_old_page(bench: Bench) -> None:
    embedder = FakeEmbedder()

    def fail(_: object) -> Vectors:
        raise ModelError("The embedder ran out of memory; set embedder.batch_tokens lower.")

    for label in ("create", "update", "shrink"):
        step, name = STEPS[label], f"embedder-{label}"
        bench.put({name: step.before})
        with pytest.raises(ModelError):
            sync(bench.stores, name, step.after, fail)
        bench.check({name: Step(step.before, step.before)})
        sync(bench.stores, name, step.after, embedder.embed_documents)
        bench.repair({name: step})
