"""What an index holds at this moment, read once, to hold cases and results against."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import cached_property
from typing import TypeAlias

from evals.datasets.questions import Case
from evals.running.collection import record_name
from quarry.access import EVERYTHING
from quarry.access.check import Verdict, may_read, verdict
from quarry.access.language import parse_filter
from quarry.access.principals import USER_PREFIX
from quarry.ports import Catalog, TextStore
from quarry.records import PUBLIC, Chunk, DocState, Document, Principal
from quarry.text import folded

People: TypeAlias = Callable[[Case], Principal]
"""Who asks a case, with the groups of the users file."""
_PAGE = 1000
_NOTHING_MISSED = frozenset({DocState.INDEXED, DocState.EMPTY, DocState.DELETED})


class Corpus:
    """The live documents of an index. Only their catalog rows are held; texts are read each time
    that somebody looks for a phrase, a document at a time."""

    def __init__(
        self,
        documents: Mapping[str, Document],
        catalog: Catalog,
        text: TextStore,
        unread: Sequence[Document] = (),
    ) -> None:
        self.documents = documents
        self.unread = unread
        """Documents whose last reading failed or gave a part only: nobody knows what else they
        say. One that was served before is among `documents` as well."""
        self.today = datetime.now(UTC).date()
        self._catalog = catalog
        self._text = text

    @classmethod
    def read(cls, catalog: Catalog, text: TextStore) -> Corpus:
        """Raises StoreError, as all that looks into the index."""
        rows = list(_rows(catalog))
        live = {row.doc_id: row for row in rows if row.revision}
        return cls(live, catalog, text, [row for row in rows if row.state not in _NOTHING_MISSED])

    def chunks(self) -> Iterator[tuple[Document, list[Chunk]]]:
        """Every document with its chunks in order."""
        for document in self.documents.values():
            span = range(document.chunk_count)
            yield document, self._text.chunks(document.doc_id, document.revision, span)

    def holding(self, phrases: Iterable[str]) -> list[Chunk]:
        """Chunks of any live document that hold one of the phrases."""
        wanted = [folded(phrase) for phrase in phrases]
        return [
            chunk
            for _, chunks in self.chunks()
            for chunk in chunks
            if any(phrase in folded(chunk.text) for phrase in wanted)
        ]

    def named(self, names: Collection[str]) -> list[Document]:
        """Live documents by the names of `Case.relevant`."""
        return [each for each in self.documents.values() if record_name(each.uri) in names]

    def texts(self, document: Document) -> list[str]:
        """Of its chunks, in order."""
        span = range(document.chunk_count)
        chunks = self._text.chunks(document.doc_id, document.revision, span)
        return [chunk.text for chunk in chunks]

    def saying(self, phrases: Iterable[str]) -> list[Document]:
        """Live documents that say one of the phrases, be it across a border of chunks."""
        piece = tuple(phrases)
        return self._saying([piece])[piece]

    def _saying(self, pieces: Collection[tuple[str, ...]]) -> dict[tuple[str, ...], list[Document]]:
        """`saying` for many pieces of evidence in one pass over the texts."""
        found: dict[tuple[str, ...], list[Document]] = {piece: [] for piece in pieces}
        wanted = {piece: [folded(phrase) for phrase in piece] for piece in found}
        for document, chunks in self.chunks():
            text = " ".join(folded(chunk.text) for chunk in chunks)
            for piece, phrases in wanted.items():
                if any(phrase in text for phrase in phrases):
                    found[piece].append(document)
        return found

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
        """Those that this person may not read, neither now nor when the corpus was read: what is
        changed or deleted while a set is asked is no leak."""
        now = self._catalog.get(doc_ids)
        return {
            doc_id
            for doc_id in doc_ids
            if not any(
                document is not None and may_read(principal, document)
                for document in (now.get(doc_id), self.documents.get(doc_id))
            )
        }

    def outdated(self, cases: Iterable[Case]) -> dict[str, list[str]]:
        """`unsaid`, where every document could be read. Else none: what no document says may stand
        in one that failed, and then the index is to blame and not the case."""
        return {} if self.unread else self.unsaid(cases)

    def unsaid(self, cases: Iterable[Case]) -> dict[str, list[str]]:
        """Cases with evidence that no current document says, with the phrases.

        Who may read it does not count here, and the filter of the case only where it asks for old
        versions: what is hidden from a person is there all the same.
        """
        asked = list(cases)
        saying = self._saying({piece for case in asked for piece in case.evidence})
        found: dict[str, list[str]] = {}
        for case in asked:
            gone = [piece[0] for piece in case.evidence if not self._current(case, saying[piece])]
            if case.relevant and not self._named(case):
                gone = [name for name, grade in case.relevant.items() if grade > 0]
            if gone:
                found[case.id] = gone
        return found

    def _current(self, case: Case, saying: Sequence[Document]) -> bool:
        filters = {"", case.filter}
        return any(
            self.verdict(document, self._reader(document, case.person), filter) is Verdict.ADMITTED
            for document in saying
            for filter in filters
        )

    def _named(self, case: Case) -> bool:
        return any(grade > 0 and name in self._names for name, grade in case.relevant.items())

    def _reader(self, document: Document, person: str) -> Principal:
        """Somebody of the document's tenant who is in every group: the person of the case, or one
        whom the document names where it is open to single people only."""
        users = [
            scope.removeprefix(USER_PREFIX)
            for scope in document.acl
            if scope.startswith(USER_PREFIX)
        ]
        alone = len(users) == len(document.acl) > 0 and person not in users
        user = users[0] if alone else person
        return Principal(user=user, groups=self._groups, tenant=document.tenant)

    @cached_property
    def _groups(self) -> tuple[str, ...]:
        """Every group that any document names."""
        scopes = {scope for each in self.documents.values() for scope in each.acl}
        return tuple(sorted(s for s in scopes if s != PUBLIC and not s.startswith(USER_PREFIX)))

    @cached_property
    def _series(self) -> dict[str, list[Document]]:
        families: dict[str, list[Document]] = defaultdict(list)
        for document in self.documents.values():
            families[document.series].append(document)
        return families

    @cached_property
    def _names(self) -> set[str]:
        return {record_name(document.uri) for document in self.documents.values()}


def _rows(catalog: Catalog) -> Iterator[Document]:
    after = ""
    while page := catalog.scan(after=after, limit=_PAGE):
        yield from page
        after = page[-1].doc_id
