"""The way to a store broken by TCP proxies at every step of every scenario; a test of one store
inherits this."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import ClassVar
from urllib.parse import urlsplit

import pytest

from loadtests.chaos.proxy import Proxy
from tests.servers.faults.bench import COUNTS, HASTY, Bench
from tests.servers.faults.broken import all_writers, ways_to, write_all

Break = Callable[[Proxy], None]
FOR_GOOD: Mapping[str, Break] = {
    "refused": Proxy.cut,
    "torn": Proxy.tear,
    "unanswered": Proxy.mute,
    "unanswered-next": partial(Proxy.mute, after=1),
    "swallowed": Proxy.hold,
}
"""Before the call; in the middle of its request; after the server has got it, or its second one,
since a commit reads before it writes; with no sign at all."""
ONCE: Mapping[str, Break] = {
    "unanswered": Proxy.mute_once,
    "unanswered-next": partial(Proxy.mute_once, after=1),
}


@pytest.mark.usefixtures("small_batches")
class CutContract:
    store: ClassVar[str]

    @pytest.mark.parametrize("how", FOR_GOOD)
    def test_a_broken_way_leaves_old_or_new_and_the_next_sync_repairs(
        self, how: str, bench: Bench, addresses: Mapping[str, str]
    ) -> None:
        met = self.break_everywhere(FOR_GOOD[how], bench, addresses, HASTY)
        assert met > 30, "hardly anybody met what was broken"

    @pytest.mark.parametrize("how", ONCE)
    def test_who_asks_again_after_a_lost_answer_succeeds(
        self, how: str, bench: Bench, addresses: Mapping[str, str]
    ) -> None:
        assert self.break_everywhere(ONCE[how], bench, addresses, {}) == 0

    def break_everywhere(
        self,
        how: Break,
        bench: Bench,
        addresses: Mapping[str, str],
        limits: Mapping[str, float],
    ) -> int:
        """Gives how many writers ended with an error for it."""
        writers = all_writers(bench)
        steps = {writer.name: writer.step for writer in writers}
        port = urlsplit(addresses[self.store]).port or 0
        with ways_to(self.store, port, bench, len(writers), limits) as ways:

            def break_all() -> None:
                for way in ways:
                    how(way.proxy)

            ended = write_all(bench, writers, [way.stores for way in ways], break_all)
            COUNTS["cuts"] += sum(way.proxy.cuts or way.proxy.is_held for way in ways)
        bench.check(ended.allowed(steps))
        bench.repair(steps)
        return len(ended.gave_up)
