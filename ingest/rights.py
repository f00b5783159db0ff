"""Rights that were taken away end first: before a run parses, embeds or writes a document. So do
records that their file does not hold any more.

What a document grants is told by the settings of its source, the metadata beside it, and what it
says of itself: front matter, for which no parser is needed, or the fields of a record. So what was
closed does not stay open while scans are read for hours, or because the embedder fails.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import structlog

from ingest.documents import document_of
from ingest.ledger import Ledger
from ingest.parsers.decoding import decode
from ingest.parsers.front_matter import front_matter
from ingest.parsers.remains import own_metadata
from ingest.parsers.routing import Format, named_format
from ingest.work import Task
from quarry import ids, revisions
from quarry.attempts import BATCH_ROWS, batches
from quarry.entries import documents_of
from quarry.errors import Conflict, ParseError, QuarryError
from quarry.ports import Parser, Source
from quarry.records import DocState, Document, ParsedDocument
from quarry.settings import Settings
from quarry.stores.factory import Stores

_log = structlog.get_logger(__name__)


@dataclass(slots=True)
class _Known:
    """What is known of one address so far."""

    beside: Mapping[str, object] | None = None
    """Metadata beside the content; None: it is not known."""
    content: bytes | None = None
    has_unread: bool = False
    """One of its lines cannot be read, and may hold any record that was not found."""


class Rights:
    """Takes away at once what the addresses that a run is about to read no longer grant, or hold,
    and withdraws what they call a draft or withdrawn.

    It gives nobody new rights. `parser` makes the parser of files of records, when one is needed.
    `is_mass_delete` says of a count of documents that are gone, and of all that were there, whether
    they have to be kept.
    """

    def __init__(
        self,
        stores: Stores,
        sources: Sequence[Source],
        settings: Settings,
        parser: Callable[[], Parser],
        *,
        ledger: Ledger,
        is_mass_delete: Callable[[int, int], bool],
    ) -> None:
        self._stores = stores
        self._sources = sources
        self._settings = settings
        self._make_parser = parser
        self._ledger = ledger
        self._is_mass_delete = is_mass_delete
        self._parser: Parser | None = None

    def narrow(self, tasks: Sequence[Task]) -> list[Task]:
        """Those whose records it hid: their rows are to be swept at the end. Raises StoreError."""
        for batch in batches([task for task in tasks if not task.several]):
            named = {ids.doc_id(t.item.source, t.item.address): t for t in batch}
            for doc_id, row in self._stores.catalog.get(named).items():
                if _is_open(row):
                    self._narrow(row, self._told(named[doc_id]))
        several = (task for task in tasks if task.several)
        looked_at = (task for task in several if any(map(_is_open, self._rows(task))))
        return [task for task in looked_at if self._narrow_records(task)]

    # ------------------------------------------------------------------------------- files

    def _told(self, task: Task) -> Document:
        known = _Known()
        try:
            self._look_beside(task, known)
            said: Mapping[str, Any] | None = {}
            if named_format(task.item.address) is Format.MARKDOWN:
                self._read(task, known)
                said = _front_matter(known.content or b"")
        except Exception as error:  # one file must not stop a run
            said = self._remains(task, known, error, is_records=False)
        return self._document(task, known, said)

    # ----------------------------------------------------------------------------- records

    def _narrow_records(self, task: Task) -> bool:
        """Whether it hid some."""
        known = _Known()
        reached: set[str] = set()
        try:
            self._look_beside(task, known)
            self._read(task, known)
            for batch in _batched(self._records(task, known)):
                reached.update(batch)
                for doc_id, row in self._stores.catalog.get(batch).items():
                    self._narrow(row, batch[doc_id])
            if not known.has_unread:
                return bool(reached) and self._hide(task, reached)
            left = self._document(task, known, None)
        except Exception as error:  # as above
            left = self._document(task, known, self._remains(task, known, error, is_records=True))
        for row in self._rows(task):
            if row.doc_id not in reached:
                self._narrow(row, left)
        return False

    def _hide(self, task: Task, reached: Collection[str]) -> bool:
        """Hides what a file that was read whole holds no more; rows stay, for texts that moved."""
        there = gone = 0
        for row in self._present(task):
            there += 1
            gone += row.doc_id not in reached
        if not gone or self._is_mass_delete(gone, there):
            return False
        self._reread(task)
        for row in self._present(task):
            if row.doc_id in reached:
                continue
            try:
                revisions.bury(self._stores, row)
                self._ledger.add_deleted(row.uri, row.chunk_count)
            except Conflict:  # the reading decides on what the other writer made of it
                _log.info("hiding_lost", address=row.address)
        return True

    def _reread(self, task: Task) -> None:
        """Though this run stops, and its file is put back as it was: what is hidden returns."""
        catalog = self._stores.catalog
        entry = catalog.entry(task.item.source, task.item.address)
        if entry:
            catalog.put_entry(replace(entry, tag=""))

    def _records(self, task: Task, known: _Known) -> Iterator[Document]:
        self._parser = self._parser or self._make_parser()
        for parsed in self._parser.parse(known.content or b"", task.item):
            known.has_unread = known.has_unread or parsed.is_unread
            said = None if parsed.is_unread else parsed.metadata
            yield self._document(task, known, said, parsed.record)

    # ------------------------------------------------------------------------------ pieces

    def _narrow(self, row: Document, told: Document) -> None:
        wanted = replace(row, acl=told.acl, tenant=told.tenant, status=told.status)
        try:
            revisions.narrow(self._stores, row, wanted)
        except Conflict:  # it is read after what the other writer made of it, and narrowed then
            _log.info("narrowing_lost", address=row.address)

    def _document(
        self, task: Task, known: _Known, said: Mapping[str, Any] | None, record: str = ""
    ) -> Document:
        """A row of which only rights and status count. `said` is None if they cannot be known."""
        document = document_of(
            task.item,
            ParsedDocument(record=record, metadata=said or {}),
            known.beside,
            source=self._settings.source(task.item.source),
            recipe="",
        )
        return document if said is not None else replace(document, acl=())

    def _remains(
        self, task: Task, known: _Known, error: Exception, *, is_records: bool
    ) -> Mapping[str, Any] | None:
        """What an address that cannot be read says of itself. Raises what must stop the run."""
        if isinstance(error, QuarryError) and not isinstance(error, ParseError):
            raise error
        state = DocState(error.state) if isinstance(error, ParseError) else DocState.FAILED
        address = task.item.address
        return own_metadata(known.content, address, state=state, is_records=is_records)

    def _look_beside(self, task: Task, known: _Known) -> None:
        known.beside = self._sources[task.source].metadata(task.item)

    def _read(self, task: Task, known: _Known) -> None:
        if task.item.size > self._settings.ingest.max_bytes:
            raise ParseError(DocState.TOO_LARGE, "It is too large to be read.")
        known.content = self._sources[task.source].read(task.item)

    def _rows(self, task: Task) -> Iterator[Document]:
        return documents_of(self._stores.catalog, task.item.source, task.item.address)

    def _present(self, task: Task) -> Iterator[Document]:
        return (row for row in self._rows(task) if row.state is not DocState.DELETED)


def _is_open(row: Document) -> bool:
    return bool(row.revision and row.acl)


def _front_matter(content: bytes) -> Mapping[str, Any]:
    """As the parser finds it. Raises ParseError."""
    text = decode(content)
    if text is None:
        raise ParseError(DocState.CORRUPT, "It is not text in any known encoding.")
    return front_matter(text)[0]


def _batched(documents: Iterable[Document]) -> Iterator[dict[str, Document]]:
    batch: dict[str, Document] = {}
    for document in documents:
        batch[document.doc_id] = document
        if len(batch) == BATCH_ROWS:
            yield batch
            batch = {}
    if batch:
        yield batch
