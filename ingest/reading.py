"""Reading: from a listed address to documents in chunks, and to what has not changed."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath

import structlog

from ingest.chunking import Chunker, ChunkJob
from ingest.documents import document_of, failed, head_of
from ingest.parsers.remains import own_metadata
from ingest.work import SERVED, Done, End, Row, Task, Work
from quarry import ids
from quarry.entries import documents_of
from quarry.errors import ParseError, QuarryError
from quarry.ports import Catalog, Parser, Source
from quarry.records import Block, DocState, Document, ParsedDocument, SourceItem
from quarry.settings import Settings

_log = structlog.get_logger(__name__)

CHUNKED_TOGETHER = 64
"""Documents of one call of the chunker, which counts tokens for all of them at once."""
_NO_TEXT = "No text was found in it."


def holds_records(address: str) -> bool:
    """By its name; a file that turns out to hold records is read twice, once without use."""
    return PurePosixPath(address).suffix.lower() in ids.RECORD_SUFFIXES


@dataclass(frozen=True, slots=True)
class _Seen:
    """What the catalog said of a document before its content was read."""

    serial: int
    mark: tuple[str, str, str, str, str]
    """Equal marks, equal documents."""
    served: bool
    deleted: bool
    by_hand: str | None
    """Hash of the content that a person deleted; None: nobody did."""


@dataclass(frozen=True, slots=True)
class _Draft:
    """A document that is to be written, before it is chunked."""

    task: int
    seen: _Seen | None
    document: Document
    blocks: tuple[Block, ...]


@dataclass(slots=True)
class _Reading:
    """How far the reading of one address has come."""

    task: Task
    before: Mapping[str, _Seen]
    """Documents that the address held, by id."""
    beside: Mapping[str, object] | None = None
    """Metadata beside the content; None: it is not known."""
    content: bytes | None = None
    found: set[str] = field(default_factory=set)
    rows: int = 0
    is_misjudged: bool = False
    """It holds records, which its name does not tell."""
    unread: str = ""
    """Why the first line that cannot be read is none; it may hold any record that is missing."""

    @property
    def missing(self) -> list[str]:
        """Ids of documents that the address held and that were not found in it now."""
        there = (doc_id for doc_id, seen in self.before.items() if not seen.deleted)
        return [doc_id for doc_id in there if doc_id not in self.found]

    @property
    def withheld(self) -> list[str]:
        """Those of them that are served, while it is not known whether they are gone."""
        return [d for d in self.missing if self.before[d].served] if self.unread else []


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadSettings:
    settings: Settings
    recipe: str
    """Fingerprint of the parsers, kept with each document."""
    threads: int


class Reader:
    """Reads and parses addresses, and cuts the documents that are new or changed into chunks.

    The catalog is asked before the content is read, so that an attempt whose content is older than
    what another writer committed meanwhile loses at its commit.
    """

    def __init__(
        self,
        *,
        sources: Sequence[Source],
        parser: Parser,
        chunker: Chunker,
        catalog: Catalog,
        config: ReadSettings,
    ) -> None:
        self._sources = sources
        self._parser = parser
        self._chunker = chunker
        self._catalog = catalog
        self._settings = config.settings
        self._recipe = config.recipe
        self._threads = ThreadPoolExecutor(config.threads, thread_name_prefix="read")

    def __call__(self, rows: Sequence[Row]) -> Iterator[Row]:
        """For each `Task`: `Work` or `Done` for every document found, and one `End`."""
        waiting: list[_Draft] = []
        for row in self._read_all([row for row in rows if isinstance(row, Task)]):
            if isinstance(row, _Draft):
                waiting.append(row)
            else:
                yield row
            if len(waiting) >= CHUNKED_TOGETHER:
                yield from self._works(waiting)
                waiting = []
        yield from self._works(waiting)

    # ------------------------------------------------------------------------------ reading

    def _read_all(self, tasks: Sequence[Task]) -> Iterator[_Draft | Done | End]:
        """Plain files side by side; a file of many records, which may be long, as a stream."""
        plain = [task for task in tasks if not task.several]
        names = {task.number: ids.doc_id(task.item.source, task.item.address) for task in plain}
        rows = self._catalog.get(names.values())

        def read(task: Task) -> list[_Draft | Done | End]:
            row = rows.get(names[task.number])
            return list(self._read(task, {row.doc_id: _seen(row)} if row else {}))

        for found in self._threads.map(read, plain):
            yield from found
        for task in tasks:
            if task.several:
                yield from self._read_records(task)

    def _read_records(self, task: Task) -> Iterator[_Draft | Done | End]:
        yield from self._read(replace(task, several=True), self._before(task))

    def _read(self, task: Task, before: Mapping[str, _Seen]) -> Iterator[_Draft | Done | End]:
        reading = _Reading(task, before)
        try:
            yield from self._documents(reading)
            if reading.is_misjudged:  # by now the first reading has given its parser back
                yield from self._read_records(task)
                return
            if reading.found:
                yield from self._ending(reading)
                return
            fault = ParseError(DocState.EMPTY, _NO_TEXT)
        except ParseError as error:
            fault = error
        except QuarryError:
            raise
        except Exception as error:  # one file must not stop a run; the log has the whole fault
            _log.exception("reading_failed", address=task.item.address)
            reason = f"Reading it ran into a fault of the program ({type(error).__name__})."
            fault = ParseError(DocState.FAILED, reason)
        yield from self._failure(reading, fault)

    def _documents(self, reading: _Reading) -> Iterator[_Draft | Done]:
        task = reading.task
        reading.beside = self._sources[task.source].metadata(task.item)
        reading.content = self._content(task)
        with closing(self._parsed(reading.content, task.item)) as documents:
            for parsed in documents:
                if parsed.record and not task.several:
                    reading.is_misjudged = True
                    return
                document = self._document(task, parsed, reading.beside)
                reading.found.add(document.doc_id)
                if parsed.is_unread:
                    reading.unread = reading.unread or parsed.reason
                if _stays_deleted(document, reading.before):
                    continue
                reading.rows += 1
                yield _row(task, document, parsed, reading.before)

    def _ending(self, reading: _Reading) -> Iterator[_Draft | End]:
        """The end of an address that was read as a whole, but for lines that cannot be read.

        A record that such a line may hold is not known to be gone, and nor is who may read it: it
        is kept, for nobody, until the line is mended.
        """
        withheld = reading.withheld
        reason = f"It may be in a line that cannot be read, so nobody reads it: {reading.unread}"
        for row in self._rows(withheld):
            left = failed(replace(row, acl=()), DocState.CORRUPT, reason)
            seen = reading.before[row.doc_id]
            yield _Draft(task=reading.task.number, seen=seen, document=left, blocks=())
        kept = set(withheld)
        yield End(
            task=reading.task.number,
            documents=reading.rows + len(withheld),
            gone=tuple(doc_id for doc_id in reading.missing if doc_id not in kept),
            before=sum(not seen.deleted for seen in reading.before.values()),
        )

    def _failure(self, reading: _Reading, fault: ParseError) -> Iterator[_Draft | Done | End]:
        """The end of an address that could not be read as a whole.

        What is served stays, with those rights that are known to hold now; where that cannot be
        known, nobody reads it until it can.
        """
        task, state = reading.task, DocState(fault.state)
        before = reading.before or self._before(task)
        own_id = ids.doc_id(task.item.source, task.item.address)
        done = {own_id, *reading.found}
        unread = [doc_id for doc_id, seen in before.items() if seen.served and doc_id not in done]
        said = own_metadata(
            reading.content,
            task.item.address,
            state=state,
            is_records=task.several or bool(unread),
        )
        parsed = ParsedDocument(state=state, reason=fault.reason, metadata=said or {})
        document = self._document(task, parsed, reading.beside)
        if said is None:
            document = replace(document, acl=())
        rows = reading.rows
        if not _stays_deleted(document, before):
            yield _row(task, document, parsed, before)
            rows += 1
        for row in self._rows(unread):
            rights = replace(row, acl=document.acl, tenant=document.tenant)
            left = failed(rights, state, fault.reason)
            yield _Draft(task=task.number, seen=before[row.doc_id], document=left, blocks=())
            rows += 1
        yield End(task=task.number, documents=rows, state=state, reason=fault.reason)

    def _before(self, task: Task) -> dict[str, _Seen]:
        """All that the catalog knows of the documents of an address."""
        rows = documents_of(self._catalog, task.item.source, task.item.address)
        return {row.doc_id: _seen(row) for row in rows}

    def _rows(self, doc_ids: Sequence[str]) -> Iterator[Document]:
        for start in range(0, len(doc_ids), CHUNKED_TOGETHER):
            yield from self._catalog.get(doc_ids[start : start + CHUNKED_TOGETHER]).values()

    def _content(self, task: Task) -> bytes:
        limit = self._settings.ingest.max_bytes
        if task.item.size > limit:
            raise ParseError(
                DocState.TOO_LARGE,
                f"It has {task.item.size} bytes, and ingest.max_bytes allows {limit}.",
            )
        return self._sources[task.source].read(task.item)

    def _parsed(self, content: bytes, item: SourceItem) -> Generator[ParsedDocument]:
        yield from self._parser.parse(content, item)

    def _document(
        self, task: Task, parsed: ParsedDocument, beside: Mapping[str, object] | None
    ) -> Document:
        source = self._settings.source(task.item.source)
        return document_of(task.item, parsed, beside, source=source, recipe=self._recipe)

    # ----------------------------------------------------------------------------- chunking

    def _works(self, drafts: Sequence[_Draft]) -> Iterator[Row]:
        names = [draft.document.doc_id for draft in drafts]
        bases = self._catalog.get(names) if names else {}
        jobs = [
            ChunkJob(
                doc_id=draft.document.doc_id, head=head_of(draft.document), blocks=draft.blocks
            )
            for draft in drafts
        ]
        for draft, chunks in zip(drafts, self._chunker.chunk(jobs), strict=True):
            document = draft.document
            base = bases.get(document.doc_id)
            if _has_moved(draft.seen, base):
                yield Done(task=draft.task, uri=document.uri, state=document.state, conflict=True)
            elif document.state in SERVED and not chunks:
                document = failed(document, DocState.EMPTY, _NO_TEXT)
                yield Work(task=draft.task, base=base, document=document)
            else:
                yield Work(task=draft.task, base=base, document=document, chunks=chunks)


def _has_moved(seen: _Seen | None, base: Document | None) -> bool:
    """Whether another writer committed it since it was looked at. The tombstone under which
    `verify` takes rows of an unknown document away is of no address, and so not seen by one."""
    if seen is None:
        return base is not None and bool(base.source)
    return base is None or base.serial != seen.serial


def _row(
    task: Task, document: Document, parsed: ParsedDocument, before: Mapping[str, _Seen]
) -> _Draft | Done:
    seen = before.get(document.doc_id)
    served = document.state in SERVED
    if served and seen and seen.served and document.content_hash and seen.mark == _mark(document):
        return Done(
            task=task.number,
            uri=document.uri,
            state=document.state,
            reason=document.error,
            unchanged=True,
        )
    blocks = parsed.blocks if served else ()
    return _Draft(task=task.number, seen=seen, document=document, blocks=blocks)


def _stays_deleted(document: Document, before: Mapping[str, _Seen]) -> bool:
    """Whether a person deleted what was read; what has no text or cannot be read does not tell, so
    it stays so."""
    seen = before.get(document.doc_id)
    if seen is None or seen.by_hand is None:
        return False
    return document.state not in SERVED or document.content_hash in ("", seen.by_hand)


def _seen(row: Document) -> _Seen:
    return _Seen(
        serial=row.serial,
        mark=_mark(row),
        served=bool(row.revision),
        deleted=row.state is DocState.DELETED,
        by_hand=row.content_hash if row.deleted_by_hand else None,
    )


def _mark(row: Document) -> tuple[str, str, str, str, str]:
    return (row.content_hash, row.meta_hash, row.recipe, row.state.value, row.error)
