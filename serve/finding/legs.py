"""The two legs of the first stage: nearest vectors, and BM25 with exact identifiers."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import replace

import numpy as np
import structlog

from quarry.errors import (
    DeadlineExceeded,
    ModelError,
    Overloaded,
    QuarryError,
    StoreError,
    StoreUnavailable,
)
from quarry.models.vectors import unit_rows
from quarry.records import Hit, Mode, StageRecord, Vector
from serve.finding.question import Asked
from serve.finding.rrf import rrf
from serve.index import Index
from serve.models import SearchModels
from serve.stage import Run, Threads, told

_log = structlog.get_logger(__name__)

SHARE = 0.5
"""Of the time that is left; a leg that takes longer is left out."""
DOWN = (StoreError, ModelError, Overloaded, DeadlineExceeded, TimeoutError)
"""What makes a leg count as down; everything else is the caller's error or ours."""

Search = Callable[[int, Collection[str]], Awaitable[list[list[Hit]]]]
"""For each wording the best rows, at most so many, without those of the revisions named."""


class Leg:
    """One way to find rows; once it is down it stays down for the request."""

    def __init__(self, name: str, search: Search, *, rrf_k: int, run: Run) -> None:
        self.name = name
        self._rrf_k = rrf_k
        self.hits: list[Hit] = []
        self.exhausted = False
        """Whether the store has no more rows than were asked for."""
        self.error: QuarryError | TimeoutError | None = None
        self.ms = 0.0
        self._search = search
        self._run = run

    async def ask(self, limit: int, without: Collection[str]) -> None:
        """Replaces the hits by those of a new search; notes it if the leg is down."""
        if self.error is not None:
            return
        start = time.perf_counter()
        try:
            found = await self._run.deadline.within(self._search(limit, without), SHARE)
        except DOWN as error:
            found, self.error = [], error
            self._run.without(self.name)
            _log.warning("leg_down", leg=self.name, **told(error))
        self.hits = merged(found, k=self._rrf_k)
        self.exhausted = all(len(hits) < limit for hits in found)
        self.ms += (time.perf_counter() - start) * 1000


def merged(lists: Sequence[Sequence[Hit]], *, k: int) -> list[Hit]:
    """The hits of several wordings by reciprocal rank fusion, those with an exact identifier first;
    each has its best score. Of one wording: the hits as they are."""
    if len(lists) <= 1:
        return [hit for hits in lists for hit in hits]
    best: dict[str, Hit] = {}
    for hit in (hit for hits in lists for hit in hits):
        known = best.get(hit.row_id, hit)
        exact, score = hit.exact or known.exact, max(hit.score, known.score)
        best[hit.row_id] = replace(hit, exact=exact, score=score)
    fused = rrf([[hit.row_id for hit in hits] for hits in lists], k=k)
    return sorted(best.values(), key=lambda hit: (not hit.exact, -fused[hit.row_id], hit.row_id))


class Dense:
    """Nearest vectors; each wording is embedded once, however often the leg is asked."""

    def __init__(
        self, asked: Asked, *, index: Index, models: SearchModels, threads: Threads
    ) -> None:
        self._asked = asked
        self._index = index
        self._models = models
        self._threads = threads
        self.vectors: list[Vector] = []
        self.embed_ms = 0.0

    async def __call__(self, limit: int, without: Collection[str]) -> list[list[Hit]]:
        if not self.vectors:
            await self._embed()
        searches = (
            self._threads.apart(
                self._index.vectors.search,
                vector,
                limit=limit,
                where=self._asked.where,
                without=without,
            )
            for vector in self.vectors
        )
        return await asyncio.gather(*searches)

    async def _embed(self) -> None:
        start = time.perf_counter()
        asked, embed = self._asked, self._models.embed
        first, *others = await asyncio.gather(*map(embed, (asked.question, *asked.wordings)))
        if asked.guesses:
            guessed = await self._models.embed_passages(asked.guesses)
            mean = np.mean([first, *guessed], axis=0, dtype=np.float32)
            first = unit_rows(mean.reshape(1, -1))[0]
        self.vectors = [first, *others]
        self.embed_ms = (time.perf_counter() - start) * 1000


class Lexical:
    """BM25, with the other words of a glossary beside those of the question."""

    def __init__(self, asked: Asked, *, index: Index, threads: Threads) -> None:
        self._asked = asked
        self._index = index
        self._threads = threads

    async def __call__(self, limit: int, without: Collection[str]) -> list[list[Hit]]:
        asked = self._asked
        texts = (" ".join((asked.question, *asked.expansions)), *asked.wordings)
        searches = (
            self._threads(
                self._index.text.search, text, limit=limit, where=asked.where, without=without
            )
            for text in texts
        )
        return await asyncio.gather(*searches)


class Legs:
    """The legs of one request, as its mode wants them."""

    def __init__(
        self, asked: Asked, *, index: Index, models: SearchModels, threads: Threads, run: Run
    ) -> None:
        self._dense = Dense(asked, index=index, models=models, threads=threads)
        lexical = Lexical(asked, index=index, threads=threads)
        self.dense = Leg("dense", self._dense, rrf_k=asked.rrf_k, run=run)
        self.lexical = Leg("lexical", lexical, rrf_k=asked.rrf_k, run=run)
        chosen = {
            Mode.HYBRID: (self.dense, self.lexical),
            Mode.DENSE: (self.dense,),
            Mode.LEXICAL: (self.lexical,),
        }
        self.asked: Sequence[Leg] = chosen[asked.mode]

    async def ask(self, limit: int, without: Collection[str] = ()) -> None:
        """Asks all legs at once. Raises StoreUnavailable when none is left."""
        await asyncio.gather(*(leg.ask(limit, without) for leg in self.asked))
        if all(leg.error is not None for leg in self.asked):
            raise _none_left(self.asked)

    def records(self, kept: dict[str, int]) -> list[StageRecord]:
        """One record for embedding and each leg; `kept` counts what the person may read."""
        embed = round(self._dense.embed_ms, 3)
        count = len(self._dense.vectors)
        records = [StageRecord(stage="embed", ms=embed, count=count)] if embed else []
        for leg in self.asked:
            ms = leg.ms - (self._dense.embed_ms if leg is self.dense else 0.0)
            records.append(StageRecord(stage=leg.name, ms=round(ms, 3), count=kept[leg.name]))
        return records


def _none_left(legs: Sequence[Leg]) -> QuarryError:
    first = legs[0].error
    if len(legs) == 1 and isinstance(first, QuarryError):
        return first
    return StoreUnavailable("No store answers searches now; try again, or run: quarry doctor")
