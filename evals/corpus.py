"""What an index holds at this moment, read once, to hold cases and results against."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from functools import cached_property
from typing import TypeAlias

from evals.datasets.questions import Case, fold
from evals.runner import record_name
from quarry.access import EVERYTHING
from quarry.access.check import Verdict, may_read, verdict
from quarry.access.language import parse_filter
from quarry.ports import Catalog, TextStore
from quarry.records import PUBLIC, Chunk, Document, Principal

People: TypeAlias = Callable[[Case], Principal]
"""Who asks a case, with the groups of the users file."""
_PAGE = 1000


@dataclass(frozen=True)
class Corpus:
    """The live documents and their chunks, in the order of the documents."""

    documents: Mapping[str, Document]
    chunks: Mapping[str, Sequence[Chunk]]
    today: date

    @classmethod
    def read(cls, catalog: Catalog, text: TextStore) -> Corpus:
        """Raises StoreError."""
        documents = {each.doc_id: each for each in _live(catalog)}
        chunks = {
            doc_id: text.chunks(doc_id, each.revision, range(each.chunk_count))
            for doc_id, each in documents.items()
        }
        return cls(documents=documents, chunks=chunks, today=datetime.now(UTC).date())

    def holding(self, phrases: Iterable[str]) -> list[Chunk]:
        """Chunks of any live document that hold one of the phrases."""
        wanted = [fold(phrase) for phrase in phrases]
        return [
            chunk
            for doc_id, texts in self._folded.items()
            for chunk, text in zip(self.chunks[doc_id], texts, strict=True)
            if any(phrase in text for phrase in wanted)
        ]

    def saying(self, phrases: Iterable[str]) -> list[Document]:
        """Live documents that say one of the phrases, be it across a border of chunks."""
        wanted = [fold(phrase) for phrase in phrases]
        return [
            self.documents[doc_id]
            for doc_id, texts in self._folded.items()
            if any(phrase in " ".join(texts) for phrase in wanted)
        ]

    def verdict(
        self, document: Document, principal: Principal, filter: str = "", *, versions: bool = False
    ) -> Verdict:
        """What the catalog check says, for this person and the text of this filter."""
        return verdict(
            document,
            principal=principal,
            filter=parse_filter(filter) if filter else EVERYTHING,
            today=self.today,
            siblings=self._series.get(document.series, ()) if document.series else (),
            all_versions=versions,
        )

    def unreadable(self, principal: Principal, doc_ids: Collection[str]) -> set[str]:
        """Those that this person may not read; a document that is not live is read by nobody."""
        found = {each: self.documents.get(each) for each in doc_ids}
        return {
            doc_id
            for doc_id, document in found.items()
            if document is None or not may_read(principal, document)
        }

    def outdated(self, cases: Iterable[Case]) -> dict[str, list[str]]:
        """Cases with evidence that no current document says any more, with the phrases.

        Who may read it does not count here, and the filter of the case only where it asks for old
        versions: what is hidden from a person is there all the same.
        """
        found: dict[str, list[str]] = {}
        for case in cases:
            gone = [piece[0] for piece in case.evidence if not self._current(case, piece)]
            if case.relevant and not self._named(case):
                gone = [name for name, grade in case.relevant.items() if grade > 0]
            if gone:
                found[case.id] = gone
        return found

    def _current(self, case: Case, phrases: Sequence[str]) -> bool:
        everybody = self._everybody(case.person)
        asked = {self.verdict(each, everybody) for each in self.saying(phrases)}
        if Verdict.ADMITTED in asked:
            return True
        by_filter = (self.verdict(d, everybody, case.filter) for d in self.saying(phrases))
        return bool(case.filter) and Verdict.ADMITTED in by_filter

    def _named(self, case: Case) -> bool:
        return any(grade > 0 and name in self._names for name, grade in case.relevant.items())

    def _everybody(self, person: str) -> Principal:
        scopes = {scope for each in self.documents.values() for scope in each.acl}
        groups = sorted(s for s in scopes if s != PUBLIC and not s.startswith("user:"))
        tenant = next(iter(self.documents.values())).tenant if self.documents else "default"
        return Principal(user=person, groups=tuple(groups), tenant=tenant)

    @cached_property
    def _folded(self) -> dict[str, list[str]]:
        return {doc_id: [fold(c.text) for c in chunks] for doc_id, chunks in self.chunks.items()}

    @cached_property
    def _series(self) -> dict[str, list[Document]]:
        families: dict[str, list[Document]] = defaultdict(list)
        for document in self.documents.values():
            families[document.series].append(document)
        return families

    @cached_property
    def _names(self) -> set[str]:
        return {record_name(document.uri) for document in self.documents.values()}


def _live(catalog: Catalog) -> Iterator[Document]:
    after = ""
    while page := catalog.scan(after=after, limit=_PAGE):
        yield from (row for row in page if row.revision)
        after = page[-1].doc_id
