"""Asks both legs for rows and believes only the catalog about them (invariants 1 and 2).

Rows are immutable and belong to one revision. One catalog read decides about all rows of a pass, so
a result never holds two revisions of a document. A commit between the search and that read leaves
only rows of the replaced revision; then the request looks again, so that a document never
disappears while it is updated.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from quarry.ids import token_serial
from quarry.records import Candidate, Chunk, Document, Hit, StageRecord
from serve.index import Index
from serve.legs import Legs
from serve.models import Embed
from serve.question import Asked
from serve.stage import Drop, Run, Threads
from serve.view import View

LOOKS = 3
"""Times that a request looks again because documents were replaced under it."""
MOST_ROWS = 8192
"""Rows asked of one leg at most; stores allow 10,000."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What the person may read, by chunk_id; each leg best first with its scores."""

    candidates: Mapping[str, Candidate]
    dense: Mapping[str, float]
    lexical: Mapping[str, float]
    dropped: tuple[Drop, ...] = ()
    """What the legs found and this person may read, but did not ask for."""


async def retrieve(
    asked: Asked, *, index: Index, embed: Embed, threads: Threads, run: Run
) -> tuple[Found, list[StageRecord]]:
    """Every candidate that this person may read among the rows that the legs find.

    While a leg gives fewer than `asked.top_k` of them and has more rows, it is asked for twice as
    many. Raises StoreUnavailable when no leg, or not the catalog, can be reached.
    """
    legs = Legs(asked, index=index, embed=embed, threads=threads, run=run)
    checker = _Checker(asked, index)
    limit, looked_again = max(asked.candidates, asked.top_k), 0
    while True:
        await legs.ask(limit)
        rows = await threads(checker.look, [hit for leg in legs.asked for hit in leg.hits])
        if rows.moved and looked_again < LOOKS:
            looked_again += 1
            continue
        short = any(rows.count(leg.hits) < asked.top_k and not leg.exhausted for leg in legs.asked)
        if not short or limit >= MOST_ROWS:
            break
        limit = min(2 * limit, MOST_ROWS)
    found = Found(
        candidates=rows.by_chunk,
        dense=rows.scores(legs.dense.hits),
        lexical=rows.scores(legs.lexical.hits),
        dropped=rows.dropped,
    )
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

    @property
    def by_chunk(self) -> dict[str, Candidate]:
        return {candidate.chunk.chunk_id: candidate for candidate in self.admitted.values()}

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
        self.ms = 0.0
        self._chunks: dict[str, Chunk] = {}
        self._known: set[str] = set()
        """Revisions that replaced a hit and were committed before the latest search began."""

    def look(self, hits: Sequence[Hit]) -> _Rows:
        """Reads texts first and the catalog last: a row whose text is gone was replaced by then."""
        start = time.perf_counter()
        missing = {hit.row_id for hit in hits} - self._chunks.keys()
        self._chunks.update(self._index.text.fetch(missing))
        view = View.read(self._index.catalog, {hit.doc_id for hit in hits}, self._asked)
        admitted: dict[str, Candidate] = {}
        dropped: dict[str, Drop] = {}
        newer = set(view.successors)
        for hit in hits:
            document = view.admitted.get(hit.doc_id)
            chunk = self._chunks.get(hit.row_id)
            if document is None:
                passed_over = view.passed_over.get(hit.doc_id)
                if passed_over and chunk and hit.revision == passed_over[0].revision:
                    left = Candidate(chunk=chunk, document=passed_over[0])
                    dropped[hit.row_id] = Drop(left, passed_over[1].value)
            elif hit.revision == document.revision and chunk is not None:
                admitted[hit.row_id] = Candidate(chunk=chunk, document=document)
            elif _was_replaced(hit, document):
                newer.add(document.revision)
        moved = not newer <= self._known
        self._known |= newer
        self.ms += (time.perf_counter() - start) * 1000
        return _Rows(admitted=admitted, dropped=tuple(dropped.values()), moved=moved)


def _was_replaced(hit: Hit, document: Document) -> bool:
    """False for rows of an attempt that has yet to commit."""
    return token_serial(hit.revision) < document.serial
