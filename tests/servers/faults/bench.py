"""One index on a pair of servers: written through the commit protocol, read as people read it.

Readers are those that serve people: the engine's search, with its catalog check.
"""

from __future__ import annotations

import asyncio
import uuid
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from loadtests.chaos import reader
from loadtests.chaos.journal import Row
from loadtests.chaos.pages import PEOPLE, WORD, Page
from loadtests.chaos.reader import engine_over
from loadtests.chaos.sync import sync, sync_batch
from loadtests.chaos.world import GENERATION, prepare, settings_of
from quarry.records import Principal, SearchRequest, SearchResult
from quarry.settings import Settings
from quarry.stores.factory import Stores, open_stores
from quarry.verify import verify
from serve.stage import Threads
from tests.servers.faults.scenarios import Step, fault, repaired

COUNTS: Counter[str] = Counter()
"""What was done in this run, for its last line (tests/servers/counts.py)."""

ONE_ANSWER_S = 30.0
"""Time limit of one request: more than a busy machine takes."""
PATIENT_S = 150.0
"""Time limit of a call with its retries: a killed server is back by then."""
HASTY = {"timeout_s": 2.0, "total_s": 1.0}
"""The same for a store that is away: Elasticsearch's client fails at once, Milvus's only when the
time of its request is up."""
MOST_TEXTS = 2000
SYNCS = 8
"""Documents that are repaired at once."""


class Violated(AssertionError):
    """A reader saw what nobody may see, or a sync did not repair."""

    def __init__(self, what: str) -> None:
        super().__init__(what)
        COUNTS["violations"] += 1


@dataclass
class Bench:
    """Its own index if it was made by `fresh_bench`; `settings` may lead to it through proxies."""

    settings: Settings
    stores: Stores = field(init=False)

    def __post_init__(self) -> None:
        self.stores = open_stores(self.settings, GENERATION)
        self._threads = Threads(16)
        self._engine = engine_over(self.stores, self.settings, self._threads)

    def close(self) -> None:
        self.stores.close()
        self._threads.close()

    # ------------------------------------------------------------------------------- writing

    def put(self, pages: Mapping[str, Page | None]) -> None:
        """Writes pages of documents that are new."""
        written = {name: page for name, page in pages.items() if page}
        for name, outcome in sync_batch(self.stores, written).items() if written else ():
            assert outcome.document, f"{name}: {outcome.error}"

    def repair(self, steps: Mapping[str, Step]) -> None:
        """One more sync of each document; then all of them are new and nothing is left over."""
        with ThreadPoolExecutor(SYNCS) as pool:
            list(pool.map(lambda name: sync(self.stores, name, steps[name].after), steps))
        self.check(repaired(steps))
        report = verify(self.stores, repair=False)
        if report.found or report.busy:
            raise Violated(f"one more sync left {dict(report.found)}")

    # ------------------------------------------------------------------------------- reading

    def search(self, names: Iterable[str], person: Principal) -> SearchResult:
        """All texts of these documents that this person finds. Raises StoreUnavailable."""
        listed = ", ".join(f'"{name}"' for name in names)
        request = SearchRequest(
            question=WORD,
            principal=person,
            top_k=MOST_TEXTS,
            filter=f"page in ({listed})",
            deadline_s=120.0,
        )
        return asyncio.run(self._engine.search(request))

    def check(self, steps: Mapping[str, Step], *, without: tuple[str, ...] = ()) -> None:
        """Everybody sees all of each old page or all of the new one, and nothing forbidden.

        `without`: the legs of the search that are down.
        """
        if wrong := self.wrong(steps, without=without):
            raise Violated(wrong)

    def wrong(self, steps: Mapping[str, Step], *, without: tuple[str, ...] = ()) -> str:
        """What somebody sees that they must not see, or does not see; empty: all is well."""
        commits: dict[str, Row] = {}
        with ThreadPoolExecutor(len(PEOPLE)) as pool:
            results = list(pool.map(lambda person: self.search(steps, person), PEOPLE))
        for person, result in zip(PEOPLE, results, strict=True):
            assert result.degraded == without
            shown: dict[str, list[tuple[Row, list[str]]]] = {name: [] for name in steps}
            for row, texts in reader.seen(result.candidates):
                shown[row.name].append((row, texts))
            for name, seen in shown.items():
                if wrong := fault(steps[name], person, seen):
                    return f"{name}: {person} {wrong}"
                if seen and commits.setdefault(name, seen[0][0]) != seen[0][0]:
                    return f"{name}: {person} sees another commit than others"
        return ""


@contextmanager
def fresh_bench(folder: Path, addresses: Mapping[str, str]) -> Iterator[Bench]:
    """An index of its own, gone at the end, with patient time limits and straight to the servers.

    Its vectors are searched exactly, which takes one call.
    """
    settings = settings_of(folder, **addresses, timeout_s=ONE_ANSWER_S, total_s=PATIENT_S)
    prefix = f"t{uuid.uuid4().hex[:8]}"
    made = Bench(
        changed(
            settings,
            elasticsearch={"index_prefix": prefix},
            milvus={"collection_prefix": prefix, "index": "FLAT"},
        )
    )
    prepare(made.stores)
    try:
        yield made
    finally:
        for store in (made.stores.catalog, made.stores.text, made.stores.vectors):
            store.drop()
        made.close()


def changed(settings: Settings, **stores: Mapping[str, object]) -> Settings:
    """The same with other values for some stores: `changed(s, milvus={"uri": …})`."""
    held = settings.stores
    updates = {name: getattr(held, name).model_copy(update=new) for name, new in stores.items()}
    return settings.model_copy(update={"stores": held.model_copy(update=updates)})


def hasty(settings: Settings, store: str) -> Settings:
    """The same index for who does not wait until this store is back."""
    return changed(settings, **{store: HASTY})
