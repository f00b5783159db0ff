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
        readable = await run.deadline.within(_readable(asked, index, threads, most), SHARE)
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


async def _readable(
    asked: Asked, index: Index, threads: Threads, most: int
) -> list[Candidate] | None:
    """All chunks of what this person may read by this filter; None if they are more than `most`,
    or if a document was replaced while it was read. Raises StoreError.

    A page at a time, so that nothing goes on in a thread once nobody waits for it.
    """
    found: list[Candidate] = []
    after: str | None = ""
    pages = 0
    while after is not None and pages < MOST_PAGES:
        chunks, after = await threads(_page, asked, index, after, most - len(found))
        if chunks is None:
            return None
        found += chunks
        pages += 1
    return found if after is None else None


def _page(
    asked: Asked, index: Index, after: str, most: int
) -> tuple[list[Candidate] | None, str | None]:
    """The chunks of one page of documents, and where the next one begins."""
    view, following = View.page(index.catalog, asked, after=after, limit=PAGE)
    documents = view.admitted.values()
    if sum(document.chunk_count for document in documents) > most:
        return None, None
    found: list[Candidate] = []
    for document in documents:
        ordinals = range(document.chunk_count)
        chunks = index.text.chunks(document.doc_id, document.revision, ordinals)
        if len(chunks) != document.chunk_count:
            return None, None
        found += (Candidate(chunk=chunk, document=document) for chunk in chunks)
    return found, following
