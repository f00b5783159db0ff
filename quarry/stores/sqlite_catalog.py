"""Catalog in the SQLite file: a commit and its snapshot are one transaction."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import groupby
from typing import Any

from quarry.errors import Conflict, RowsRejected
from quarry.ports import CommitResult
from quarry.records import DocState, Document, Kept, SourceEntry
from quarry.stores.codec import (
    NO_UNICODE,
    document_from_json,
    document_to_json,
    entry_from_json,
    entry_to_json,
    kept_from_json,
    kept_to_json,
)
from quarry.stores.sqlite import Database, many, table

# Statements are put together from names that `table` has checked; every value is bound.
# ruff: noqa: S608

_PAGE = 1000
_SERIES = "json_extract(body, '$.series')"
_KEPT = ("", "")
"""Source and address of the entry that holds what `keep` was given; no listing has these."""


class SqliteCatalog:
    """Catalog of one generation. Without a `retention` a commit forgets what it replaces."""

    def __init__(self, database: Database, generation: str, *, retention: timedelta) -> None:
        self._database = database
        self._retention = retention
        self._documents = table("documents", generation)
        self._history = table("history", generation)
        self._entries = table("entries", generation)

    def ensure(self) -> None:
        documents, history, entries = self._documents, self._history, self._entries
        with self._database.write() as db:
            for statement in (
                f"CREATE TABLE IF NOT EXISTS {documents} (doc_id TEXT PRIMARY KEY, serial INTEGER,"
                " source TEXT, address TEXT, state TEXT, series TEXT, live INTEGER, body TEXT)",
                f"CREATE INDEX IF NOT EXISTS {documents}_by_address"
                f" ON {documents} (source, address, doc_id)",
                f"CREATE INDEX IF NOT EXISTS {documents}_by_series"
                f" ON {documents} (series) WHERE live AND series <> ''",
                f"CREATE INDEX IF NOT EXISTS {documents}_by_state ON {documents} (state, doc_id)",
                f"CREATE TABLE IF NOT EXISTS {history} (doc_id TEXT, serial INTEGER,"
                " replaced REAL, body TEXT, PRIMARY KEY (doc_id, serial))",
                f"CREATE INDEX IF NOT EXISTS {history}_by_age"
                f" ON {history} (replaced) WHERE replaced IS NOT NULL",
                f"CREATE INDEX IF NOT EXISTS {history}_by_series"
                f" ON {history} ({_SERIES}) WHERE {_SERIES} <> ''",
                f"CREATE TABLE IF NOT EXISTS {entries} (source TEXT, address TEXT, body TEXT,"
                " PRIMARY KEY (source, address)) WITHOUT ROWID",
            ):
                db.execute(statement)

    def get(self, doc_ids: Collection[str]) -> dict[str, Document]:
        rows = self._select("doc_id IN (SELECT value FROM json_each(?))", (many(doc_ids),))
        return {row.doc_id: row for row in rows}

    def commit(self, document: Document) -> Document:
        with self._database.write() as db:
            return self._set(db, document)

    def commit_many(self, documents: Sequence[Document]) -> list[CommitResult]:
        results: list[CommitResult] = []
        with self._database.write() as db:
            for document in documents:
                try:
                    results.append(self._set(db, document))
                except (Conflict, RowsRejected) as error:
                    results.append(error)
        return results

    def _set(self, db: sqlite3.Connection, document: Document) -> Document:
        """The compare-and-set inside the caller's transaction; writes nothing if it raises."""
        key = document.doc_id
        found = db.execute(f"SELECT serial FROM {self._documents} WHERE doc_id = ?", (key,))
        current = found.fetchone()
        if (current[0] if current else 0) != document.serial:
            raise Conflict(f"Document {key} was changed by another writer; read it again.")
        stored = replace(document, serial=document.serial + 1)
        body = json.dumps(document_to_json(stored))
        row = (key, stored.serial, stored.source, stored.address, stored.state.value)
        try:
            db.execute(
                f"INSERT OR REPLACE INTO {self._documents} VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                (*row, stored.series, bool(stored.revision), body),
            )
        except UnicodeEncodeError:
            raise RowsRejected("SQLite", {key: NO_UNICODE}) from None
        self._remember(db, stored, body)
        return stored

    def _remember(self, db: sqlite3.Connection, stored: Document, body: str) -> None:
        if not self._retention:
            db.execute(f"DELETE FROM {self._history} WHERE doc_id = ?", (stored.doc_id,))
        elif stored.committed_at:
            db.execute(
                f"UPDATE {self._history} SET replaced = ? WHERE doc_id = ? AND serial = ?",
                (stored.committed_at.timestamp(), stored.doc_id, stored.serial - 1),
            )
        db.execute(
            f"INSERT INTO {self._history} VALUES (?, ?, NULL, ?)",
            (stored.doc_id, stored.serial, body),
        )

    def series(self, names: Collection[str]) -> dict[str, list[Document]]:
        rows = self._select(
            "live AND series <> '' AND series IN (SELECT value FROM json_each(?))"
            " ORDER BY series, doc_id",
            (many(names),),
        )
        return {name: list(group) for name, group in groupby(rows, key=lambda row: row.series)}

    def scan(
        self,
        *,
        source: str = "",
        address: str = "",
        state: DocState | None = None,
        after: str = "",
        limit: int = 1000,
    ) -> list[Document]:
        wanted = {"source": source, "address": address, "state": state.value if state else ""}
        given = {column: value for column, value in wanted.items() if value}
        where = " AND ".join([*(f"{column} = ?" for column in given), "doc_id > ?"])
        parameters: tuple[str | int, ...] = (*given.values(), after, limit)
        return self._select(f"{where} ORDER BY doc_id LIMIT ?", parameters)

    def counts(self, *, source: str = "") -> dict[DocState, int]:
        where = " WHERE source = ?" if source else ""
        with self._database.read() as db:
            rows = db.execute(
                f"SELECT state, count(*) FROM {self._documents}{where} GROUP BY state",
                (source,) if source else (),
            ).fetchall()
        return {DocState(state): count for state, count in rows}

    def history(self, doc_id: str) -> list[Document]:
        return self.histories([doc_id]).get(doc_id, [])

    def histories(self, doc_ids: Collection[str]) -> dict[str, list[Document]]:
        with self._database.read() as db:
            rows = db.execute(
                f"SELECT body FROM {self._history}"
                " WHERE doc_id IN (SELECT value FROM json_each(?)) ORDER BY doc_id, serial",
                (many(doc_ids),),
            ).fetchall()
        snapshots = [document_from_json(json.loads(body)) for (body,) in rows]
        by_document = groupby(snapshots, key=lambda snapshot: snapshot.doc_id)
        return {doc_id: list(group) for doc_id, group in by_document}

    def members(self, series: Collection[str]) -> set[str]:
        with self._database.read() as db:
            rows = db.execute(
                f"SELECT DISTINCT doc_id FROM {self._history} WHERE {_SERIES} <> ''"
                f" AND {_SERIES} IN (SELECT value FROM json_each(?))",
                (many(series),),
            ).fetchall()
        return {doc_id for (doc_id,) in rows}

    def expired(self, before: datetime, *, after: str = "", limit: int = 1000) -> list[str]:
        with self._database.read() as db:
            rows = db.execute(
                f"SELECT DISTINCT doc_id FROM {self._history} INDEXED BY {self._history}_by_age"
                " WHERE replaced < ? AND doc_id > ? ORDER BY doc_id LIMIT ?",
                (before.timestamp(), after, limit),
            ).fetchall()
        return [doc_id for (doc_id,) in rows]

    def trim_history(self, doc_ids: Collection[str], *, before: datetime) -> int:
        with self._database.write() as db:
            return db.execute(
                f"DELETE FROM {self._history}"
                " WHERE doc_id IN (SELECT value FROM json_each(?)) AND replaced < ?",
                (many(doc_ids), before.timestamp()),
            ).rowcount

    def kept(self) -> Kept:
        body = self._entry(_KEPT)
        return kept_from_json(body) if body else Kept()

    def keep(self, kept: Kept) -> None:
        self._put_entry(_KEPT, kept_to_json(kept))

    def sources(self) -> list[str]:
        with self._database.read() as db:
            rows = db.execute(
                f"SELECT DISTINCT source FROM {self._entries} WHERE source <> ? ORDER BY source",
                (_KEPT[0],),
            ).fetchall()
        return [source for (source,) in rows]

    def entries(self, source: str) -> Iterator[SourceEntry]:
        after, more = "", True
        while more:
            with self._database.read() as db:
                rows = db.execute(
                    f"SELECT body FROM {self._entries} WHERE source = ? AND address > ?"
                    " ORDER BY address LIMIT ?",
                    (source, after, _PAGE),
                ).fetchall()
            page = [entry_from_json(json.loads(body)) for (body,) in rows]
            yield from page
            more = len(page) == _PAGE
            after = page[-1].address if page else ""

    def entry(self, source: str, address: str) -> SourceEntry | None:
        body = self._entry((source, address))
        return entry_from_json(body) if body else None

    def _entry(self, key: tuple[str, str]) -> dict[str, Any] | None:
        with self._database.read() as db:
            row = db.execute(
                f"SELECT body FROM {self._entries} WHERE source = ? AND address = ?", key
            ).fetchone()
        return json.loads(row[0]) if row else None

    def put_entry(self, entry: SourceEntry) -> None:
        self._put_entry((entry.source, entry.address), entry_to_json(entry))

    def _put_entry(self, key: tuple[str, str], entry: dict[str, Any]) -> None:
        with self._database.write() as db:
            db.execute(
                f"INSERT OR REPLACE INTO {self._entries} VALUES (?, ?, ?)",
                (*key, json.dumps(entry)),
            )

    def delete_entry(self, source: str, address: str) -> None:
        with self._database.write() as db:
            db.execute(
                f"DELETE FROM {self._entries} WHERE source = ? AND address = ?", (source, address)
            )

    def drop(self) -> None:
        with self._database.write() as db:
            for name in (self._documents, self._history, self._entries):
                db.execute(f"DROP TABLE IF EXISTS {name}")

    def close(self) -> None:
        self._database.close()

    def _select(self, where: str, parameters: tuple[str | int, ...]) -> list[Document]:
        with self._database.read() as db:
            rows = db.execute(
                f"SELECT body FROM {self._documents} WHERE {where}", parameters
            ).fetchall()
        return [document_from_json(json.loads(body)) for (body,) in rows]
