"""A corpus that changes, what it was at each time by replaying the changes, and who asks for it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

from quarry import retention
from quarry.records import Mode, Principal, SearchRequest, Vector
from quarry.settings import RetrievalSettings
from quarry.stores.factory import Stores
from serve.index import Index
from serve.question import ask
from serve.retrieve import retrieve
from serve.stage import Deadline, Run, Threads
from tests.unit.revision_world import WORD, Page, embed, sync

NOON = datetime(2026, 7, 1, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
ALL = 100

Change = Page | None
Shown = dict[str, frozenset[str]]
"""Texts of each document."""


@dataclass
class Past:
    """Stores with a clock of hours since NOON, and every change that was made to them."""

    stores: Stores
    hours: float = 0.0
    changes: dict[str, list[tuple[float, Change]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.stores = replace(self.stores, clock=lambda: NOON + self.hours * HOUR)

    def change(self, doc: str, page: Change) -> None:
        sync(self.stores, page, doc)
        self.changes.setdefault(doc, []).append((self.hours, page))

    def ingest_ends(self) -> None:
        retention.expire(self.stores)

    # ---------------------------------------------------------------------------- the model

    def shown(self, hours: float, person: Principal) -> Shown:
        """What the search must show: the pages of that time that this person could read then and
        can read now."""
        pages = {doc: self._page(doc, hours) for doc in self.changes}
        return {
            doc: page.texts
            for doc, page in pages.items()
            if page and _reads(person, page) and self._reads_now(person, doc, hours)
        }

    def _page(self, doc: str, hours: float) -> Page | None:
        """What was served then: a broken page leaves what there was."""
        served: Page | None = None
        for at, page in self.changes[doc]:
            if at <= hours and not (page and page.broken):
                served = page
        return served

    def _reads_now(self, person: Principal, doc: str, hours: float) -> bool:
        last: Page | None = None
        for at, page in self.changes[doc]:
            if page is None and at > hours and not self.stores.retain_deleted:
                return False
            # A document that was never read well has the labels of its latest reading.
            if page and not (page.broken and self._page(doc, at)):
                last = page
        return last is not None and _reads(person, last)

    # ------------------------------------------------------------------------------- asking

    def found(
        self,
        hours: float | None,
        person: Principal,
        *,
        mode: Mode = Mode.HYBRID,
        top_k: int = ALL,
        candidates: int = ALL,
        filter: str = "",
    ) -> Shown:
        return asyncio.run(self._found(hours, person, mode, top_k, candidates, filter))

    async def _found(
        self,
        hours: float | None,
        person: Principal,
        mode: Mode,
        top_k: int,
        candidates: int,
        filter: str,
    ) -> Shown:
        moment = None if hours is None else NOON + hours * HOUR
        request = SearchRequest(
            question=WORD,
            principal=person,
            mode=mode,
            top_k=top_k,
            filter=filter,
            as_of=moment,
        )
        asked, _ = ask(request, RetrievalSettings(candidates=candidates))
        threads = Threads(2)
        try:
            found, _ = await retrieve(
                asked,
                index=Index.of("g1", self.stores),
                embed=_embed,
                threads=threads,
                run=Run(Deadline(60)),
            )
        finally:
            threads.close()
        legs = {Mode.DENSE: [found.dense], Mode.LEXICAL: [found.lexical]}
        for leg in legs.get(mode, [found.dense, found.lexical]):
            assert len(leg) >= min(top_k, len(found.candidates)), "a leg did not reach k"
        shown: dict[str, set[str]] = {}
        for candidate in found.candidates.values():
            shown.setdefault(candidate.document.doc_id, set()).add(candidate.chunk.text)
            assert candidate.chunk.revision == candidate.document.revision
        return {doc: frozenset(texts) for doc, texts in shown.items()}


def people(*groups: Sequence[str]) -> list[Principal]:
    return [Principal(user="x", groups=tuple(names)) for names in groups]


def _reads(person: Principal, page: Page) -> bool:
    return bool({"public", *person.groups} & set(page.acl))


async def _embed(question: str) -> Vector:
    return embed(question)
