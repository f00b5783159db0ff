"""Asks both legs for rows and believes only the catalog about them (invariants 1 and 2).

Rows are immutable and belong to one revision. One catalog read decides about all rows of a pass, so
a result never holds two revisions of a document. A commit between the search and that read leaves
only rows of the replaced revision; then the request looks again, so that a document never
disappears while it is updated.

Rows that the catalog does not let through crowd out those that it does: of older versions, of
revisions that are kept for searches of the past, or of later ones in such a search. What one pass
turned down is left out of the next one, so that a result is full if there is enough to fill it.

Texts come last, and only of what ranks high enough in both legs to matter: most hits of the dense
leg, which come without, never are read.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import islice
from typing import TypeAlias

from quarry import past
from quarry.ids import chunk_of, token_serial
from quarry.records import Candidate, Chunk, Document, Hit, StageRecord
from serve.finding.legs import Legs
from serve.finding.question import Asked
from serve.finding.rrf import rrf
from serve.finding.view import View
from serve.index import Index
from serve.models import SearchModels
from serve.stage import Drop, Run, Threads

LOOKS = 3
"""Times that a request looks again because documents were replaced under it."""
MOST_ROWS = 8192
"""Rows asked of one leg at most; stores allow 10,000."""
SPARE = 10
"""A tenth more rows are asked for than are wanted, so that few searches need a second pass."""
MOST_PASSES = 16
MOST_LEFT_OUT = 10_000
"""Revisions that a store is told to leave out at most."""
SETTLED = timedelta(minutes=5)
"""What was committed longer ago than this, by whatever clock, is in every search."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What the person may read, by chunk_id; each leg best first with its scores."""

    candidates: Mapping[str, Candidate]
    """Those that go on; an explanation has them all."""
    dense: Mapping[str, float]
    lexical: Mapping[str, float]
    dropped: tuple[Drop, ...] = ()
    """What the legs found and this person may read, but did not ask for."""


async def retrieve(
    asked: Asked, *, keep: int, index: Index, models: SearchModels, threads: Threads, run: Run
) -> tuple[Found, list[StageRecord]]:
    """The best `keep` of what this person may read among the rows that the legs find.

    While a leg gives fewer of them than are wanted and has more rows, it is asked for twice as
    many, without what was turned down; what is over is cut off. So what is found, and how much, is
    the same whether rows lie between that nobody may see, or not. Raises AsOfError for a time that
    cannot be gone back to, StoreUnavailable when no leg, or not the catalog, can be reached.
    """
    legs = Legs(asked, index=index, models=models, threads=threads, run=run)
    # A lane is told from the texts, and an explanation names all that was found.
    everything = bool(asked.lane) or run.results is not None
    checker = _Checker(asked, index, keep=None if everything else keep)
    if asked.as_of is not None:
        await threads(checker.check_time, asked.as_of)
    wanted = max(asked.candidates, asked.top_k)
    limit, looked_again, passes = wanted + wanted // SPARE, 0, 0
    while True:
        passes += 1
        await legs.ask(limit, tuple(checker.left_out))
        rows = await checker.look({leg.name: leg.hits for leg in legs.asked}, wanted, threads)
        if rows.moved and looked_again < LOOKS:
            looked_again += 1
            checker.forget()
            continue
        short = any(len(rows.legs[leg.name]) < wanted and not leg.exhausted for leg in legs.asked)
        if short and passes < MOST_PASSES and (checker.leave_out() or limit < MOST_ROWS):
            limit = min(2 * limit, MOST_ROWS)
            continue
        first = rows.first(wanted)
        leading = rows.leading or _leading(first.values(), checker.keep, asked.rrf_k)
        if await checker.read(leading, rows, threads) or looked_again >= LOOKS:
            break
        looked_again += 1
        checker.forget()
    leading = await checker.filled(leading, rows, first, threads)
    found = checker.found(leading, rows, first)
    kept = {"dense": len(found.dense), "lexical": len(found.lexical)}
    checked = StageRecord(
        stage="catalog",
        ms=round(checker.ms, 3),
        count=len(found.candidates),
        detail={"looked_again": looked_again},
    )
    return found, [*legs.records(kept), checked]


Scores: TypeAlias = dict[str, float]
"""By chunk_id, best first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rows:
    """What one pass let through."""

    admitted: Mapping[str, Document]
    """By chunk_id."""
    row_ids: Mapping[str, str]
    """By chunk_id."""
    legs: Mapping[str, Scores]
    """Of what is admitted, by the leg's name."""
    moved: bool
    """Whether a document that this person may read was replaced after the search began."""
    leading: Sequence[str] = ()
    """The chunks that fusing puts first, where all rows were let through."""

    def first(self, wanted: int) -> dict[str, Scores]:
        """Of each leg at most so many as were wanted."""
        return {name: dict(islice(scores.items(), wanted)) for name, scores in self.legs.items()}


def _leading(legs: Iterable[Iterable[str]], keep: int | None, rrf_k: int) -> list[str]:
    """The chunks that fusing puts first."""
    scores = rrf([list(leg) for leg in legs], k=rrf_k)
    return sorted(scores, key=lambda chunk: (-scores[chunk], chunk))[:keep]


class _Checker:
    """The catalog check of one request, over all its passes."""

    def __init__(self, asked: Asked, index: Index, *, keep: int | None) -> None:
        self._asked = asked
        self._index = index
        self.keep = keep
        """How many of the first are read; None: all."""
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

    async def look(self, legs: Mapping[str, Sequence[Hit]], wanted: int, threads: Threads) -> _Rows:
        """Reads the catalog once for all of the hits, and texts of what leads as it stands."""
        start = time.perf_counter()
        hits = [hit for leg in legs.values() for hit in leg]
        self._chunks.update({hit.row_id: hit.chunk for hit in hits if hit.chunk})
        first = ([hit.row_id for hit in leg[:wanted]] for leg in legs.values())
        leading = _leading(first, self.keep, self._asked.rrf_k)
        names = {hit.doc_id for hit in hits} | set(self.left_out.values())
        rows = leading if self.keep is not None else [hit.row_id for hit in hits]
        view, _ = await asyncio.gather(
            threads(View.read, self._index.catalog, names, self._asked),
            self._fetch(rows, threads),
        )
        judged = self._judge(legs, view)
        if len(judged.admitted) == len({hit.row_id for hit in hits}):
            judged = replace(judged, leading=[chunk_of(row) for row in leading])
        self.ms += (time.perf_counter() - start) * 1000
        return judged

    async def read(self, leading: Sequence[str], rows: _Rows, threads: Threads) -> bool:
        """Reads the texts of these chunks. False if one is gone: its row was replaced since the
        search."""
        start = time.perf_counter()
        await self._fetch((rows.row_ids[chunk] for chunk in leading), threads)
        gone = {rows.admitted[c].revision for c in leading if rows.row_ids[c] not in self._chunks}
        self.ms += (time.perf_counter() - start) * 1000
        return not self._moved(gone)

    async def filled(
        self, leading: Sequence[str], rows: _Rows, legs: Mapping[str, Scores], threads: Threads
    ) -> Sequence[str]:
        """Those that come next in the place of those whose texts are gone for good, such as rows
        that only one of the stores has lost."""
        if self.keep is None or all(rows.row_ids[chunk] in self._chunks for chunk in leading):
            return leading
        start = time.perf_counter()
        order = _leading(legs.values(), None, self._asked.rrf_k)
        await self._fetch((rows.row_ids[chunk] for chunk in order), threads)
        self.ms += (time.perf_counter() - start) * 1000
        return [chunk for chunk in order if rows.row_ids[chunk] in self._chunks][: self.keep]

    def found(self, leading: Sequence[str], rows: _Rows, legs: Mapping[str, Scores]) -> Found:
        candidates = {
            chunk: Candidate(chunk=self._chunks[row], document=rows.admitted[chunk])
            for chunk in leading
            if (row := rows.row_ids[chunk]) in self._chunks
        }
        return Found(
            candidates=candidates,
            dense=legs.get("dense", {}),
            lexical=legs.get("lexical", {}),
            dropped=tuple(self._dropped.values()),
        )

    async def _fetch(self, row_ids: Iterable[str], threads: Threads) -> None:
        missing = set(row_ids) - self._chunks.keys()
        if missing:
            self._chunks.update(await threads(self._index.text.fetch, missing))

    def _judge(self, legs: Mapping[str, Sequence[Hit]], view: View) -> _Rows:
        admitted: dict[str, Document] = {}
        row_ids: dict[str, str] = {}
        scores: dict[str, Scores] = {}
        newer = set(view.successors)
        for name, hits in legs.items():
            leg = scores[name] = {}
            for hit in hits:
                document = view.admitted.get(hit.doc_id)
                if document is None or document.revision != hit.revision:
                    self._turn_down(hit, view)
                    if document and self._was_replaced(hit, document):
                        newer.add(document.revision)
                    continue
                chunk = chunk_of(hit.row_id)
                if chunk not in leg:
                    admitted[chunk], row_ids[chunk] = document, hit.row_id
                    leg[chunk] = hit.score
        moved = self._moved(newer) or self._was_wrong(view)
        return _Rows(admitted=admitted, row_ids=row_ids, legs=scores, moved=moved)

    def _moved(self, newer: Collection[str]) -> bool:
        """Whether there are revisions among these that the latest search could not have seen."""
        moved = not self._known.issuperset(newer)
        self._known.update(newer)
        return moved

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

    def forget(self) -> None:
        """What was turned down may be let through when the catalog is read again."""
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
