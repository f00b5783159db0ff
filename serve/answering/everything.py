"""Long-context mode: an answer reads everything that may be read, where that fits its context.

The prompt and the checks are those of every answer. What is sent is decided by the catalog alone,
as in a search; ranking only decides what stands first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import structlog

from quarry.errors import StoreError
from quarry.records import Candidate, Chunk, StageRecord
from serve.answering.evidence import NO_ROOM, SOURCE_TOKENS, Budget, Chosen, choose
from serve.finding.question import Asked
from serve.finding.view import View
from serve.index import Index
from serve.stage import Run, Threads, told

_log = structlog.get_logger(__name__)

SHARE = 0.3
"""Of the time that is left, for reading everything; the rest is for the answer."""
PAGE = 1000
MOST_PAGES = 10
"""Documents of a larger catalog are not read through for one question, whoever asks it."""


async def choose_everything(
    ranked: Sequence[Candidate],
    asked: Asked,
    *,
    index: Index,
    threads: Threads,
    budget: Budget,
    run: Run,
) -> tuple[Chosen, StageRecord] | None:
    """Evidence of all that this person may read by this filter, the ranked passages first.

    None if it does not fit the budget's tokens; its number of sources does not count. None as
    well, and named in `degraded`, if a store fails or it takes too long.
    """
    most = budget.tokens // SOURCE_TOKENS
    try:
        readable = await run.deadline.within(threads(_readable, asked, index, most), SHARE)
    except (StoreError, TimeoutError) as error:
        run.without("long_context")
        _log.warning("not_read_whole", **told(error))
        return None
    if not readable:
        return None
    places = {each.chunk.chunk_id: place for place, each in enumerate(ranked)}
    last = len(places)
    ordered = sorted(readable, key=lambda each: places.get(each.chunk.chunk_id, last))
    chosen, record = await choose(
        ordered,
        budget=replace(budget, sources=len(ordered)),
        around=_alone,
        widen="none",
    )
    if any(drop.reason == NO_ROOM for drop in chosen.dropped):
        return None
    detail = {**record.detail, "long_context": True}
    return chosen, replace(record, detail=detail)


async def _alone(_chunk: Chunk, _reach: int) -> list[Chunk]:
    return []


def _readable(asked: Asked, index: Index, most: int) -> list[Candidate] | None:
    """All chunks of what this person may read by this filter; None if they are more than `most`,
    or if a document was replaced while it was read."""
    found: list[Candidate] = []
    after = ""
    for _ in range(MOST_PAGES):
        page = index.catalog.scan(after=after, limit=PAGE)
        view = View.read(index.catalog, [row.doc_id for row in page], asked)
        for document in view.admitted.values():
            if len(found) + document.chunk_count > most:
                return None
            ordinals = range(document.chunk_count)
            chunks = index.text.chunks(document.doc_id, document.revision, ordinals)
            if len(chunks) != document.chunk_count:
                return None
            found += (Candidate(chunk=chunk, document=document) for chunk in chunks)
        if len(page) < PAGE:
            return found
        after = page[-1].doc_id
    return None
