"""The way to a store broken by TCP proxies at every step of every scenario, in five ways."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlsplit

import pytest

from loadtests.chaos.proxy import Proxy
from tests.servers.faults.bench import COUNTS, HASTY, Bench
from tests.servers.faults.broken import ELASTICSEARCH, MILVUS, all_writers, ways_to, write_all

pytestmark = pytest.mark.usefixtures("small_batches")

BREAKS = {
    "refused": Proxy.cut,
    "torn": Proxy.tear,
    "unanswered": Proxy.mute,
    "swallowed": Proxy.hold,
    "answered-again": Proxy.mute_once,
}
"""Before the call, in the middle of its request, after the server has got it; with no sign at all;
and once only, so that a second try must make it good."""


@pytest.mark.parametrize("how", BREAKS)
@pytest.mark.parametrize("store", [ELASTICSEARCH, MILVUS])
def test_a_broken_way_leaves_old_or_new_and_the_next_sync_repairs(
    store: str, how: str, bench: Bench, addresses: Mapping[str, str]
) -> None:
    again = how == "answered-again"
    writers = all_writers(bench)
    steps = {writer.name: writer.step for writer in writers}
    port = urlsplit(addresses[store]).port or 0
    with ways_to(store, port, bench, len(writers), {} if again else HASTY) as ways:

        def break_all() -> None:
            for way in ways:
                BREAKS[how](way.proxy)

        ended = write_all(bench, writers, [way.stores for way in ways], break_all)
        COUNTS["cuts"] += sum(way.proxy.cuts or how == "swallowed" for way in ways)
    if again:
        assert ended.gave_up == []
    else:
        assert len(ended.gave_up) > len(writers) / 3, "hardly anybody met what was broken"
    bench.check(ended.allowed(steps))
    bench.repair(steps)
