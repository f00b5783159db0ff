"""Mends one document: sweeps garbage, corrects the catalog, marks what its source must give again.

Garbage goes by the serial rule of the commit protocol (docs/architecture.md): only rows that no
commit can make visible any more are deleted, and an attempt that might still commit is ended first
by a commit that changes nothing but the serial.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from typing import NamedTuple

from quarry import ids, revisions
from quarry.attempts import commit_row, delete_rows
from quarry.entries import LOST, documents_of, lost, orphan
from quarry.records import DocState, Document, RowRef, SourceEntry
from quarry.stores.factory import Stores
from quarry.verify_report import Kind, Reread

RELABELLED = "relabelled"
"""The meta_hash of a document whose rows carry the catalog's labels again; no metadata has it, so
the next ingest still compares."""
UNREAD = "unread"
"""The recipe of a document that has to be written again; no parser has it."""

_SWEPT = frozenset({Kind.REPLACED_ROWS, Kind.ROWS_OF_DELETED, Kind.UNFINISHED_ROWS})
_REWRITTEN = frozenset({Kind.OLD_LABELS, Kind.UNSEARCHABLE_TEXT})
_LOST = frozenset({Kind.MISSING_TEXT, Kind.MISSING_VECTORS})


class Facts(NamedTuple):
    """A document and its rows in both stores."""

    document: Document
    text: tuple[RowRef, ...]
    vectors: tuple[RowRef, ...]

    @property
    def rows(self) -> tuple[RowRef, ...]:
        return self.text + self.vectors

    @property
    def row_ids(self) -> tuple[set[str], set[str]]:
        return {row.row_id for row in self.text}, {row.row_id for row in self.vectors}

    def where(self, belongs: Callable[[RowRef], bool]) -> Facts:
        text = tuple(row for row in self.text if belongs(row))
        return Facts(self.document, text, tuple(row for row in self.vectors if belongs(row)))


@dataclass(frozen=True, slots=True)
class Mended:
    kinds: frozenset[Kind]
    reread: Reread | None = None


class Repairer:
    """Raises Conflict if another writer changed the document since it was read."""

    def __init__(self, stores: Stores) -> None:
        self._stores = stores

    def mend(self, facts: Facts, kinds: Collection[Kind]) -> Mended:
        """What was wrong is named by `kinds`; gives which of them are right now."""
        document = facts.document
        mended = set(kinds) & _SWEPT
        if Kind.ROWS_OF_NO_DOCUMENT in kinds:
            self._bury(facts)
            return Mended(frozenset({Kind.ROWS_OF_NO_DOCUMENT}))
        if Kind.ROWS_AHEAD in kinds:
            ahead = facts.where(lambda row: ids.token_serial(row.revision) > document.serial)
            delete_rows(self._stores, {row.row_id for row in ahead.rows})
            mended.add(Kind.ROWS_AHEAD)
        if mended & _SWEPT:
            document = revisions.settle(self._stores, document)
        if needs_reading(facts, kinds):
            return Mended(frozenset(mended), self._mark(document))
        if Kind.CHUNK_COUNT in kinds:
            counted = replace(document, chunk_count=_counted(facts))
            document = commit_row(self._stores, document, counted)
            mended.add(Kind.CHUNK_COUNT)
        if rewritten := _REWRITTEN & set(kinds):
            self._relabel(document)
            mended |= rewritten
        return Mended(frozenset(mended))

    def _bury(self, facts: Facts) -> None:
        """A tombstone first: an attempt at a new document may be about to commit these rows."""
        tombstone = replace(facts.document, error="Rows of an unknown document were removed.")
        commit_row(self._stores, None, tombstone)
        delete_rows(self._stores, {row.row_id for row in facts.rows})

    def _relabel(self, document: Document) -> None:
        revisions.change_labels(self._stores, document, replace(document, meta_hash=RELABELLED))

    def _mark(self, document: Document) -> Reread:
        """Makes the next ingest read the address and write the document, whatever has not changed.

        What is left of the document stays served until then.
        """
        if document.recipe != UNREAD:
            commit_row(self._stores, document, replace(document, recipe=UNREAD))
        catalog, address = self._stores.catalog, address_of(document)
        entry = catalog.entry(document.source, document.address) or orphan(document)
        if entry.reason != LOST:
            rows = documents_of(catalog, document.source, document.address)
            live = sum(row.state is not DocState.DELETED for row in rows)
            catalog.put_entry(lost(entry, live))
        return address

    def mark_address(self, entry: SourceEntry, there: int) -> None:
        """Makes the next ingest read an address of which the catalog lost documents or the entry,
        or delete what is left of it if it is gone. `there`: documents that are left."""
        self._stores.catalog.put_entry(lost(entry, there))


def needs_reading(facts: Facts, kinds: Collection[Kind]) -> bool:
    """Whether only the document's source can give what is missing."""
    return bool(_LOST & set(kinds)) or (Kind.CHUNK_COUNT in kinds and not _counted(facts))


def address_of(document: Document) -> Reread:
    return Reread(source=document.source, address=document.address)


def _counted(facts: Facts) -> int:
    served = facts.where(lambda row: row.revision == facts.document.revision)
    return len(served.row_ids[0])
