"""Asks both legs for rows and believes only the catalog about them (invariants 1 and 2).

Rows are immutable and belong to one revision. One catalog read decides about all rows of a pass, so
a result never holds two revisions of a document. A commit between the search and that read leaves
only rows of the replaced revision; then the request looks again, so that a document never
disappears while it is updated.

Rows that the catalog does not let through crowd out those that it does: of older versions, of
revisions that are kept for searches of the past, or of later ones in such a search. What one pass
turned down is left out of the next one, so that a result is full if there is enough to fill it.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import islice

from quarry import past
from quarry.ids import token_serial
from quarry.records import Candidate, Chunk, Document, Hit, StageRecord
from serve.finding.legs import Legs
from serve.finding.question import Asked
from serve.finding.view import View
from serve.index import Index
from serve.models import SearchModels
from serve.stage import Drop, Run, Threads

LOOKS = 3
"""Times that a request looks again because documents were replaced under it."""
MOST_ROWS = 8192
"""Rows asked of one leg at most; stores allow 10,000."""
SPARE = 4
"""A fourth more rows are asked for than are wanted, so that few searches need a second pass."""
MOST_PASSES = 16
MOST_LEFT_OUT = 10_000
"""Revisions that a store is told to leave out at most."""
SETTLED = timedelta(minutes=5)
"""What was committed longer ago than this, by whatever clock, is in every search."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What the person may read, by chunk_id; each leg best first with its scores."""

    candidates: Mapping[str, Candidate]
    dense: Mapping[str, float]
    lexical: Mapping[str, float]
    dropped: tuple[Drop, ...] = ()
    """What the legs found and this person may read, but did not ask for."""


async def retrieve(
    asked: Asked, *, index: Index, models: SearchModels, threads: Threads, run: Run
) -> tuple[Found, list[StageRecord]]:
    """Every candidate that this person may read among the rows that the legs find.

    While a leg gives fewer of them than are wanted and has more rows, it is asked for twice as
    many, without what was turned down; what is over is cut off. So what is found, and how much, is
    the same whether rows lie between that nobody may see, or not. Raises AsOfError for a time that
    cannot be gone back to, StoreUnavailable when no leg, or not the catalog, can be reached.
    """
    legs = Legs(asked, index=index, models=models, threads=threads, run=run)
    checker = _Checker(asked, index)
    if asked.as_of is not None:
        await threads(checker.check_time, asked.as_of)
    wanted = max(asked.candidates, asked.top_k)
    limit, looked_again, passes = wanted + wanted // SPARE, 0, 0
    while True:
        passes += 1
        await legs.ask(limit, tuple(checker.left_out))
        rows = await checker.look([hit for leg in legs.asked for hit in leg.hits], threads)
        if rows.moved and looked_again < LOOKS:
            looked_again += 1
            continue
        short = any(rows.count(leg.hits) < wanted and not leg.exhausted for leg in legs.asked)
        if not short or passes >= MOST_PASSES:
            break
        if not checker.leave_out() and limit >= MOST_ROWS:
            break
        limit = min(2 * limit, MOST_ROWS)
    found = rows.found(legs.dense.hits, legs.lexical.hits, wanted)
    kept = {"dense": len(found.dense), "lexical": len(found.lexical)}
    checked = StageRecord(
        stage="catalog",
        ms=round(checker.ms, 3),
        count=len(found.candidates),
        detail={"looked_again": looked_again},
    )
    return found, [*legs.records(kept), checked]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rows:
    """What one pass let through, by row_id."""

    admitted: Mapping[str, Candidate]
    dropped: tuple[Drop, ...]
    moved: bool
    """Whether a document that this person may read was replaced after the search began."""

    def found(self, dense: Iterable[Hit], lexical: Iterable[Hit], wanted: int) -> Found:
        """At most `wanted` of each leg."""
        legs = [dict(islice(self.scores(hits).items(), wanted)) for hits in (dense, lexical)]
        by_chunk = {each.chunk.chunk_id: each for each in self.admitted.values()}
        kept = {name: each for name, each in by_chunk.items() if name in legs[0] or name in legs[1]}
        return Found(candidates=kept, dense=legs[0], lexical=legs[1], dropped=self.dropped)

    def count(self, hits: Iterable[Hit]) -> int:
        return len(self.scores(hits))

    def scores(self, hits: Iterable[Hit]) -> dict[str, float]:
        """Scores of the admitted rows by chunk_id, best first; a repeated id counts once."""
        scores: dict[str, float] = {}
        for hit in hits:
            if hit.row_id in self.admitted:
                scores.setdefault(self.admitted[hit.row_id].chunk.chunk_id, hit.score)
        return scores


class _Checker:
    """The catalog check of one request, over all its passes."""

    def __init__(self, asked: Asked, index: Index) -> None:
        self._asked = asked
        self._index = index
        self._began = index.clock()
        self.ms = 0.0
        self._chunks: dict[str, Chunk] = {}
        self._known: set[str] = set()
        """Revisions that replaced a hit and were committed before the latest search began."""

        self._turned_down: dict[str, str] = {}
        """Revisions of the latest hits that were not let through, and whose they are."""
        self._dropped: dict[str, Drop] = {}
        self.left_out: dict[str, str] = {}
        """Revisions that were turned down before, and that the next search is to leave out."""

    def check_time(self, as_of: datetime) -> None:
        """Raises AsOfError."""
        now, retention = self._index.clock(), self._index.retention
        past.check_time(as_of, retention=retention, now=now)
        past.check_kept(as_of, self._index.catalog.kept())

    def leave_out(self) -> bool:
        """Leaves out what was turned down; False if that is nothing new, or too much."""
        more = self._turned_down.keys() - self.left_out.keys()
        if not more or len(self.left_out) + len(more) > MOST_LEFT_OUT:
            return False
        self.left_out |= self._turned_down
        return True

    async def look(self, hits: Sequence[Hit], threads: Threads) -> _Rows:
        """Reads the catalog and missing texts at once; a row whose text is gone was replaced."""
        start = time.perf_counter()
        self._chunks.update({hit.row_id: hit.chunk for hit in hits if hit.chunk})
        missing = {hit.row_id for hit in hits} - self._chunks.keys()
        names = {hit.doc_id for hit in hits} | set(self.left_out.values())
        view, texts = await asyncio.gather(
            threads(View.read, self._index.catalog, names, self._asked),
            threads(self._index.text.fetch, missing),
        )
        self._chunks.update(texts)
        rows = self._judge(hits, view)
        self.ms += (time.perf_counter() - start) * 1000
        return rows

    def _judge(self, hits: Sequence[Hit], view: View) -> _Rows:
        admitted: dict[str, Candidate] = {}
        newer = set(view.successors)
        for hit in hits:
            document = view.admitted.get(hit.doc_id)
            if document is None or document.revision != hit.revision:
                self._turn_down(hit, view)
                if document and self._was_replaced(hit, document):
                    newer.add(document.revision)
            elif chunk := self._chunks.get(hit.row_id):
                admitted[hit.row_id] = Candidate(chunk=chunk, document=document)
            else:  # swept since the search
                newer.add(document.revision)
        moved = not newer <= self._known or self._was_wrong(view)
        dropped = tuple(self._dropped.values())
        if moved:
            self._forget()
        self._known |= newer
        return _Rows(admitted=admitted, dropped=dropped, moved=moved)

    def _turn_down(self, hit: Hit, view: View) -> None:
        self._turned_down[hit.revision] = hit.doc_id
        chunk = self._chunks.get(hit.row_id)
        passed_over = view.passed_over.get(hit.doc_id)
        if passed_over and chunk and hit.revision == passed_over[0].revision:
            left = Candidate(chunk=chunk, document=passed_over[0])
            self._dropped[hit.row_id] = Drop(left, passed_over[1].value)

    def _was_wrong(self, view: View) -> bool:
        """Whether something that is left out may be seen after all: the catalog has changed."""
        documents = ((view.admitted.get(doc), left) for left, doc in self.left_out.items())
        return any(document and document.revision == left for document, left in documents)

    def _forget(self) -> None:
        self._turned_down.clear()
        self._dropped.clear()
        self.left_out.clear()

    def _was_replaced(self, hit: Hit, document: Document) -> bool:
        """Whether the search may have come before the commit that replaced the hit's revision.

        False for rows of an attempt that has yet to commit, and for rows that are kept for the
        past: their successor has been there for long.
        """
        if token_serial(hit.revision) >= document.serial:
            return False
        committed = document.committed_at
        if not self._index.retention or committed is None:
            return True
        return committed > self._began - SETTLED
