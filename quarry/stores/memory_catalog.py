"""Catalog and registry in memory; `quarry.stores.memory` has the others."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from quarry.errors import Conflict, RowsRejected
from quarry.ports import CommitResult
from quarry.records import DocState, Document, Generation, Kept, SourceEntry
from quarry.stores.codec import check_text
from quarry.stores.snapshots import replaced_after


class MemoryCatalog:
    """Catalog: one lock is the atomic step.

    Without a `retention` a commit forgets what it replaces.
    """

    def __init__(self, *, retention: timedelta = timedelta(0)) -> None:
        self._retention = retention
        self._lock = threading.RLock()
        self._rows: dict[str, Document] = {}
        self._history: dict[str, list[Document]] = {}
        self._entries: dict[tuple[str, str], SourceEntry] = {}
        self._kept = Kept()

    def ensure(self) -> None:
        """Nothing to do."""

    def get(self, doc_ids: Collection[str]) -> dict[str, Document]:
        with self._lock:
            return {key: self._rows[key] for key in doc_ids if key in self._rows}

    def commit(self, document: Document) -> Document:
        check_text(document, store="The catalog in memory")
        with self._lock:
            current = self._rows.get(document.doc_id)
            if (current.serial if current else 0) != document.serial:
                raise Conflict(f"Document {document.doc_id} was changed by another writer.")
            stored = replace(document, serial=document.serial + 1)
            self._rows[document.doc_id] = stored
            replaced = self._history.get(document.doc_id, ()) if self._retention else ()
            self._history[document.doc_id] = [*replaced, stored]
            return stored

    def commit_many(self, documents: Sequence[Document]) -> list[CommitResult]:
        results: list[CommitResult] = []
        for document in documents:
            try:
                results.append(self.commit(document))
            except (Conflict, RowsRejected) as error:
                results.append(error)
        return results

    def series(self, names: Collection[str]) -> dict[str, list[Document]]:
        found: dict[str, list[Document]] = {}
        wanted = set(names) - {""}
        with self._lock:
            for row in self._rows.values():
                if row.series in wanted and row.revision:
                    found.setdefault(row.series, []).append(row)
        return found

    def scan(
        self,
        *,
        source: str = "",
        address: str = "",
        state: DocState | None = None,
        after: str = "",
        limit: int = 1000,
    ) -> list[Document]:
        with self._lock:
            rows = [
                row
                for row in self._rows.values()
                if source in ("", row.source)
                and address in ("", row.address)
                and state in (None, row.state)
                and row.doc_id > after
            ]
        return sorted(rows, key=lambda row: row.doc_id)[:limit]

    def counts(self, *, source: str = "") -> dict[DocState, int]:
        with self._lock:
            rows = self._rows.values()
            return dict(Counter(row.state for row in rows if source in ("", row.source)))

    def history(self, doc_id: str) -> list[Document]:
        with self._lock:
            return list(self._history.get(doc_id, ()))

    def histories(self, doc_ids: Collection[str]) -> dict[str, list[Document]]:
        with self._lock:
            return {key: list(self._history[key]) for key in doc_ids if key in self._history}

    def members(self, series: Collection[str]) -> set[str]:
        wanted = set(series) - {""}
        with self._lock:
            return {
                doc_id
                for doc_id, rows in self._history.items()
                if any(row.series in wanted for row in rows)
            }

    def expired(self, before: datetime, *, after: str = "", limit: int = 1000) -> list[str]:
        with self._lock:
            found = [
                doc_id
                for doc_id, rows in self._history.items()
                if doc_id > after and len(_replaced_after(rows, before)) < len(rows)
            ]
        return sorted(found)[:limit]

    def trim_history(self, doc_ids: Collection[str], *, before: datetime) -> int:
        trimmed = 0
        with self._lock:
            for doc_id in self._history.keys() & set(doc_ids):
                rows = self._history[doc_id]
                self._history[doc_id] = _replaced_after(rows, before)
                trimmed += len(rows) - len(self._history[doc_id])
        return trimmed

    def kept(self) -> Kept:
        with self._lock:
            return self._kept

    def keep(self, kept: Kept) -> None:
        with self._lock:
            self._kept = kept

    def sources(self) -> list[str]:
        with self._lock:
            return sorted({source for source, _ in self._entries})

    def entries(self, source: str) -> Iterator[SourceEntry]:
        with self._lock:
            found = [entry for key, entry in self._entries.items() if key[0] == source]
        return iter(found)

    def entry(self, source: str, address: str) -> SourceEntry | None:
        with self._lock:
            return self._entries.get((source, address))

    def put_entry(self, entry: SourceEntry) -> None:
        with self._lock:
            self._entries[entry.source, entry.address] = entry

    def delete_entry(self, source: str, address: str) -> None:
        with self._lock:
            self._entries.pop((source, address), None)

    def drop(self) -> None:
        with self._lock:
            self._rows.clear()
            self._history.clear()
            self._entries.clear()
            self._kept = Kept()

    def close(self) -> None:
        """Nothing to do."""


class MemoryRegistry:
    """Registry."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._generations: dict[str, Generation] = {}
        self._live = ""

    def generations(self) -> list[Generation]:
        with self._lock:
            return sorted(self._generations.values(), key=lambda g: (g.created_at, g.name))

    def live(self) -> Generation | None:
        with self._lock:
            return self._generations.get(self._live)

    def create(self, generation: Generation) -> None:
        with self._lock:
            if generation.name in self._generations:
                raise Conflict(f"Generation {generation.name} is there already.")
            self._generations[generation.name] = generation

    def switch(self, name: str, *, expected: str) -> None:
        with self._lock:
            if self._live != expected or name not in self._generations:
                raise Conflict(f"Generation {name} cannot follow {expected or 'none'}; look again.")
            self._live = name

    def remove(self, name: str) -> None:
        with self._lock:
            if name and name == self._live:
                raise Conflict(f"Generation {name} is live; switch to another one first.")
            self._generations.pop(name, None)

    def close(self) -> None:
        """Nothing to do."""


def _replaced_after(rows: Sequence[Document], before: datetime) -> list[Document]:
    return replaced_after(rows, before, committed_at=lambda row: row.committed_at)
