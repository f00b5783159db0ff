"""Two writers of one document on real servers, one stopped at each of its steps for the other.

No server is to blame here; `test_revisions_interleavings` of the unit tests tries every order in
memory.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest

from loadtests.chaos.pages import Author, Page
from loadtests.chaos.sync import sync
from loadtests.chaos.watch import watched
from quarry.errors import Conflict, ModelError
from quarry.models.fakes import FakeEmbedder
from tests.servers.faults.bench import COUNTS, SYNCS, Bench
from tests.servers.faults.broken import calls_of
from tests.servers.faults.scenarios import ALONE, AT_ONCE, Step, failing_embedder, still

_TWO, _UPLOAD = AT_ONCE["two-syncs"], AT_ONCE["delete-during-upload"]
NARROWER = replace(_TWO.before, acl=("hr",)) if _TWO.before else None
RACES = {
    "a sync during a sync": Step(_TWO.before, _TWO.after, _TWO.rivals),
    "a delete during an upload": _UPLOAD,
    "an upload during a delete": Step(_UPLOAD.before, None, (_UPLOAD.after,)),
    "a narrower ACL during a sync": Step(_TWO.before, _TWO.after, (NARROWER,)),
    "a sync during a narrower ACL": Step(_TWO.before, NARROWER, (_TWO.after,)),
}


@pytest.mark.parametrize("race", RACES)
def test_who_comes_in_between_wins_and_the_other_gives_up(race: str, bench: Bench) -> None:
    step = RACES[race]
    (rival,) = step.rivals
    calls = calls_of(bench, step, step.after)
    names = [f"race-{call}" for call in range(calls)]
    bench.put(dict.fromkeys(names, step.before))

    def write(call: int) -> None:
        made = 0

        def hook(*_: Any) -> None:
            nonlocal made
            if made == call:
                sync(bench.stores, names[call], rival)
            made += 1

        with suppress(Conflict):
            sync(watched(bench.stores, hook), names[call], step.after)
        COUNTS["interleavings"] += 1

    with ThreadPoolExecutor(SYNCS) as pool:
        list(pool.map(write, range(calls)))
    # Before its first call a writer has read nothing, so it comes after the other.
    ends: Mapping[str, Page | None] = {
        name: rival if call else step.after for call, name in enumerate(names)
    }
    bench.check({name: still(page) for name, page in ends.items()})
    bench.repair({name: Step(None, page) for name, page in ends.items()})


def test_two_syncs_at_once_leave_one_whole_page(bench: Bench) -> None:
    author = Author("q", random.Random(3))
    names = [f"race-{number}" for number in range(12)]
    old, one, other = (
        {name: author.page(size, ("public",)) for name in names} for size in (6, 8, 4)
    )
    bench.put(old)
    second: Mapping[str, Page | None] = {**other, names[-1]: None}

    def write(name: str, page: Page | None) -> None:
        with suppress(Conflict):
            sync(bench.stores, name, page)

    both = [(name, pages[name]) for name in names for pages in (one, second)]
    with ThreadPoolExecutor(len(both)) as pool:
        list(pool.map(lambda writing: write(*writing), both))
    for name in names:
        left = [page for page in (one[name], second[name]) if not bench.wrong({name: still(page)})]
        assert len(left) == 1
    bench.repair({name: Step(None, second[name]) for name in names})


def test_an_embedder_that_fails_midway_leaves_the_old_page(bench: Bench) -> None:
    for label in ("create", "update", "shrink"):
        step, name = ALONE[label], f"embedder-{label}"
        bench.put({name: step.before})
        with pytest.raises(ModelError):
            sync(bench.stores, name, step.after, failing_embedder)
        bench.check({name: still(step.before)})
        sync(bench.stores, name, step.after, FakeEmbedder().embed_documents)
        bench.repair({name: step})
