"""The two legs of the first stage: nearest vectors, and BM25 with exact identifiers."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Collection, Sequence

import structlog

from quarry.errors import (
    DeadlineExceeded,
    ModelError,
    Overloaded,
    QuarryError,
    StoreError,
    StoreUnavailable,
)
from quarry.records import Hit, Mode, StageRecord, Vector
from serve.index import Index
from serve.models import Embed
from serve.question import Asked
from serve.stage import Run, Threads

_log = structlog.get_logger(__name__)

SHARE = 0.5
"""Of the time that is left; a leg that takes longer is left out."""
DOWN = (StoreError, ModelError, Overloaded, DeadlineExceeded, TimeoutError)
"""What makes a leg count as down; everything else is the caller's error or ours."""

Search = Callable[[int, Collection[str]], Awaitable[list[Hit]]]
"""The best rows, at most so many, without those of the revisions named."""


class Leg:
    """One way to find rows; once it is down it stays down for the request."""

    def __init__(self, name: str, search: Search, run: Run) -> None:
        self.name = name
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
            self.hits = await self._run.deadline.within(self._search(limit, without), SHARE)
        except DOWN as error:
            self.hits, self.error = [], error
            self._run.without(self.name)
            _log.warning("leg_down", leg=self.name, error=type(error).__name__)
        self.exhausted = len(self.hits) < limit
        self.ms += (time.perf_counter() - start) * 1000


class Dense:
    """Nearest vectors; the question is embedded once, however often the leg is asked."""

    def __init__(self, asked: Asked, *, index: Index, embed: Embed, threads: Threads) -> None:
        self._asked = asked
        self._index = index
        self._embed = embed
        self._threads = threads
        self._vector: Vector | None = None
        self.embed_ms = 0.0

    async def __call__(self, limit: int, without: Collection[str]) -> list[Hit]:
        start = time.perf_counter()
        if self._vector is None:
            self._vector = await self._embed(self._asked.question)
            self.embed_ms = (time.perf_counter() - start) * 1000
        return await self._threads.apart(
            self._index.vectors.search,
            self._vector,
            limit=limit,
            where=self._asked.where,
            without=without,
        )


class Lexical:
    def __init__(self, asked: Asked, *, index: Index, threads: Threads) -> None:
        self._asked = asked
        self._index = index
        self._threads = threads

    async def __call__(self, limit: int, without: Collection[str]) -> list[Hit]:
        return await self._threads(
            self._index.text.search,
            self._asked.question,
            limit=limit,
            where=self._asked.where,
            without=without,
        )


class Legs:
    """The legs of one request, as its mode wants them."""

    def __init__(
        self, asked: Asked, *, index: Index, embed: Embed, threads: Threads, run: Run
    ) -> None:
        self._dense = Dense(asked, index=index, embed=embed, threads=threads)
        lexical = Lexical(asked, index=index, threads=threads)
        self.dense = Leg("dense", self._dense, run)
        self.lexical = Leg("lexical", lexical, run)
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
        records = [StageRecord(stage="embed", ms=embed, count=1)] if embed else []
        for leg in self.asked:
            ms = leg.ms - (self._dense.embed_ms if leg is self.dense else 0.0)
            records.append(StageRecord(stage=leg.name, ms=round(ms, 3), count=kept[leg.name]))
        return records


def _none_left(legs: Sequence[Leg]) -> QuarryError:
    first = legs[0].error
    if len(legs) == 1 and isinstance(first, QuarryError):
        return first
    return StoreUnavailable("No store answers searches now; try again, or run: quarry doctor")
