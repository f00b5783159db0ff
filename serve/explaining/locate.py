"""Where expected phrases stand in the documents, as far as a person may read them.

This looks at the index itself and not at what a search found, so that an explanation can tell a
passage that was lost from one that is not there. A document that the person may not read and one
that does not exist give the same result.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field

from quarry.access.check import Verdict, scope_filter
from quarry.records import Candidate, Document
from quarry.text import embedded_text, folded, holds_any
from serve.finding.question import Asked
from serve.finding.view import View
from serve.index import Index
from serve.stage import Deadline, Threads

PROBE_ROWS = 200
"""Rows of the lexical leg that are looked at before all documents are."""
PAGE = 200
"""Documents of one step of the walk through the catalog."""
SHARE = 0.5
"""Of the time that is left, for the walk; the rest is for the answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """A chunk that holds a phrase, and what the catalog check says of its document."""

    candidate: Candidate
    verdict: Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class Located:
    """Where one piece of evidence stands, given as phrases of which any one marks it."""

    phrases: tuple[str, ...]
    held: tuple[Held, ...] = ()
    split: bool = False
    """Whether a document says it across the end of a chunk, where no chunk holds it whole."""
    whole: bool = True
    """Whether all documents were looked through, or a place was found."""


async def locate(
    pieces: Sequence[Sequence[str]],
    asked: Asked,
    *,
    index: Index,
    threads: Threads,
    deadline: Deadline,
) -> tuple[Located, ...]:
    """One `Located` a piece. Raises StoreError."""
    searches = [_Search(phrases) for phrases in pieces]
    for search in searches:
        await threads(_probe, search, asked, index)
    missing = [search for search in searches if not search.held]
    give_up_at = deadline.left() * (1 - SHARE)
    after: str | None = ""
    while missing and after is not None and deadline.left() > give_up_at:
        after = await threads(_walk, missing, asked, index, after)
    return tuple(search.located(whole=after is None) for search in searches)


@dataclass(slots=True)
class _Search:
    phrases: Sequence[str]
    held: dict[str, Held] = field(default_factory=dict)
    split: bool = False
    folded: list[str] = field(init=False)

    def __post_init__(self) -> None:
        self.folded = [phrase for phrase in map(folded, self.phrases) if phrase]

    def look_at(self, candidates: Iterable[Candidate], verdict: Verdict) -> None:
        for each in candidates:
            if holds_any(embedded_text(each.chunk.header, each.chunk.text), self.folded):
                self.held[each.chunk.chunk_id] = Held(candidate=each, verdict=verdict)

    def located(self, *, whole: bool) -> Located:
        return Located(
            phrases=tuple(self.phrases),
            held=tuple(self.held.values()),
            split=self.split,
            whole=whole or bool(self.held),
        )


def _probe(search: _Search, asked: Asked, index: Index) -> None:
    """Looks at the chunks that share most words with the phrases."""
    where = scope_filter(asked.principal)
    hits = {
        hit.row_id
        for phrase in search.phrases
        for hit in index.text.search(phrase, limit=PROBE_ROWS, where=where)
    }
    chunks = index.text.fetch(hits)
    readable = _readable(View.read(index.catalog, {c.doc_id for c in chunks.values()}, asked))
    for chunk in chunks.values():
        document, verdict = readable.get(chunk.doc_id, (None, Verdict.UNREADABLE))
        if document is not None and chunk.revision == document.revision:
            search.look_at([Candidate(chunk=chunk, document=document)], verdict)


def _walk(searches: Collection[_Search], asked: Asked, index: Index, after: str) -> str | None:
    """Looks through one page of the catalog; gives where the next one begins, None at the end."""
    view, following = View.page(index.catalog, asked, after=after, limit=PAGE)
    for document, verdict in _readable(view).values():
        everything = range(document.chunk_count)
        chunks = index.text.chunks(document.doc_id, document.revision, everything)
        whole = "\n".join(chunk.text for chunk in chunks)
        for search in searches:
            search.look_at((Candidate(chunk=c, document=document) for c in chunks), verdict)
            search.split = search.split or holds_any(whole, search.folded)
    return following


def _readable(view: View) -> dict[str, tuple[Document, Verdict]]:
    admitted = {doc_id: (each, Verdict.ADMITTED) for doc_id, each in view.admitted.items()}
    return admitted | dict(view.passed_over)
