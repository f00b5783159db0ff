"""A corpus that changes, what it was at each time by replaying the changes, and who asks for it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

from quarry import retention
from quarry.models.extractive import ExtractiveGenerator
from quarry.models.fakes import FakeEmbedder
from quarry.records import PUBLIC, Mode, Principal, SearchRequest, Vector
from quarry.settings import Settings
from quarry.stores.factory import Stores
from serve.engine import make_engine
from serve.index import Index
from serve.models import LoadedModels
from serve.stage import Threads
from tests.unit.revisions.revision_world import WORD, Page, embed, sync

NOON = datetime(2026, 7, 1, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
ALL = 100

Change = Page | None
Shown = dict[str, frozenset[str]]
"""Texts of each document."""


@dataclass(frozen=True)
class Row:
    """What a document's row says after some changes."""

    served: Page | None = None
    acl: tuple[str, ...] = ()

    def after(self, page: Change) -> Row:
        if page is None:
            return Row(acl=self.acl)
        if not page.broken:
            return Row(page, page.acl)
        if self.served is None:
            return Row(acl=page.acl)
        # What cannot be read leaves what is served, but takes rights away.
        kept = self.acl if PUBLIC in page.acl else tuple(s for s in self.acl if s in page.acl)
        return Row(replace(self.served, acl=kept), kept)


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
        return {
            doc: then.served.texts
            for doc in self.changes
            if (then := self._stands(doc, hours)).served
            and _reads(person, then.served.acl)
            and self._reads_now(person, doc, hours)
        }

    def _stands(self, doc: str, hours: float) -> Row:
        row = Row()
        for at, page in self.changes[doc]:
            if at <= hours:
                row = row.after(page)
        return row

    def _reads_now(self, person: Principal, doc: str, hours: float) -> bool:
        deleted = any(page is None and at > hours for at, page in self.changes[doc])
        if deleted and not self.stores.retain_deleted:
            return False
        return _reads(person, self._stands(doc, self.hours).acl)

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
        request = SearchRequest(
            question=WORD,
            principal=person,
            mode=mode,
            top_k=top_k,
            filter=filter,
            as_of=None if hours is None else NOON + hours * HOUR,
        )
        retrieval = {"candidates": candidates, "top_k": top_k}
        settings = Settings.model_validate({"retrieval": retrieval})
        models = LoadedModels(
            embedder=WordEmbedder(),
            reranker=None,
            generator=ExtractiveGenerator(),
            fallback=None,
        )
        threads = Threads(2)
        try:
            index = Index.of("g1", self.stores)
            engine = make_engine(settings, index=index, models=models, threads=threads)
            result = asyncio.run(engine.search(request))
        finally:
            threads.close()
        shown: dict[str, set[str]] = {}
        for candidate in result.candidates:
            shown.setdefault(candidate.document.doc_id, set()).add(candidate.chunk.text)
            assert candidate.chunk.revision == candidate.document.revision
        assert result.degraded == ()
        return {doc: frozenset(texts) for doc, texts in shown.items()}


class WordEmbedder(FakeEmbedder):
    """Embeds questions as `sync` embeds passages."""

    def embed_question(self, text: str) -> Vector:
        return embed(text)


def people(*groups: Sequence[str]) -> list[Principal]:
    return [Principal(user="x", groups=tuple(names)) for names in groups]


def _reads(person: Principal, acl: Sequence[str]) -> bool:
    return not {PUBLIC, *person.groups}.isdisjoint(acl)
