"""TextStore in the SQLite file: chunk rows, BM25 by FTS5, and exact identifiers.

FTS5 indexes the terms that `quarry.text.analyze` gives, joined by blanks. Its `ascii` tokenizer
takes every character beyond ASCII as part of a token, and the terms hold no ASCII punctuation, so
no term is split. Labels are few where rows are many, so rows point to a table of label sets and a
filter is evaluated once a set.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection, Sequence
from typing import Any

from quarry import ids
from quarry.access import Filter
from quarry.access.compile import sql_columns, to_sql
from quarry.errors import RowsRejected
from quarry.records import Chunk, Hit, Labels, RowRef, TextRow
from quarry.stores.codec import chunk_from_json, chunk_to_json
from quarry.stores.rows import text_row_fault
from quarry.stores.sqlite import Database, many, table
from quarry.text import analyze, embedded_text, identifiers

# Statements are put together from names that `table` has checked; every value is bound.
# ruff: noqa: S608

LABEL_COLUMNS = (
    "source", "tenant", "series", "version_key", "status", "effective", "acl", "metadata",
)  # fmt: skip


class SqliteTextStore:
    """TextStore of one generation."""

    def __init__(self, database: Database, generation: str) -> None:
        self._database = database
        self._chunks = table("chunks", generation)
        self._labels = table("labels", generation)
        self._codes = table("codes", generation)
        self._fts = table("fts", generation)

    def ensure(self) -> None:
        chunks = self._chunks
        with self._database.write() as db:
            for statement in (
                f"CREATE TABLE IF NOT EXISTS {chunks} (id INTEGER PRIMARY KEY, row_id TEXT UNIQUE,"
                " doc_id TEXT, revision TEXT, ordinal INTEGER, text_hash TEXT, labels INTEGER,"
                " body TEXT)",
                f"CREATE INDEX IF NOT EXISTS {chunks}_by_document"
                f" ON {chunks} (doc_id, revision, ordinal)",
                f"CREATE INDEX IF NOT EXISTS {chunks}_by_text ON {chunks} (text_hash)",
                f"CREATE INDEX IF NOT EXISTS {chunks}_by_labels ON {chunks} (labels)",
                f"CREATE TABLE IF NOT EXISTS {self._labels} (id INTEGER PRIMARY KEY,"
                f" digest TEXT UNIQUE, {', '.join(LABEL_COLUMNS)})",
                f"CREATE TABLE IF NOT EXISTS {self._codes} (code TEXT, id INTEGER,"
                " PRIMARY KEY (code, id)) WITHOUT ROWID",
                f"CREATE INDEX IF NOT EXISTS {self._codes}_by_id ON {self._codes} (id)",
                f"CREATE VIRTUAL TABLE IF NOT EXISTS {self._fts}"
                " USING fts5(terms, tokenize = 'ascii')",
            ):
                db.execute(statement)

    # -------------------------------------------------------------------------------- rows

    def upsert(self, rows: Sequence[TextRow]) -> None:
        faults = {row.chunk.row_id: text_row_fault(row) for row in rows}
        good = {row.chunk.row_id: row for row in rows if not faults[row.chunk.row_id]}
        terms = {key: _terms(row.chunk) for key, row in good.items()}
        with self._database.write() as db:
            self._remove(db, good)
            known: dict[str, int] = {}
            for key, row in good.items():
                self._insert(db, row, terms[key], self._label_set(db, row.labels, known))
        rejected = {key: fault for key, fault in faults.items() if fault}
        if rejected:
            raise RowsRejected("SQLite", rejected)

    def _insert(self, db: sqlite3.Connection, row: TextRow, terms: str, labels: int) -> None:
        chunk = row.chunk
        body = json.dumps(chunk_to_json(chunk), ensure_ascii=False)
        keys = (chunk.row_id, chunk.doc_id, chunk.revision, chunk.ordinal, chunk.text_hash)
        number = db.execute(
            f"INSERT INTO {self._chunks} (row_id, doc_id, revision, ordinal, text_hash, labels,"
            " body) VALUES (?, ?, ?, ?, ?, ?, ?)",
            (*keys, labels, body),
        ).lastrowid
        # SQLite gives the number of a last row again. If that row was lost and not deleted, what
        # belonged to it is still there, and must not pass for this row's.
        db.execute(
            f"INSERT OR REPLACE INTO {self._fts} (rowid, terms) VALUES (?, ?)", (number, terms)
        )
        db.execute(f"DELETE FROM {self._codes} WHERE id = ?", (number,))
        db.executemany(
            f"INSERT OR IGNORE INTO {self._codes} VALUES (?, ?)",
            [(code, number) for code in chunk.identifiers],
        )

    def _label_set(self, db: sqlite3.Connection, labels: Labels, known: dict[str, int]) -> int:
        columns = sql_columns(labels)
        digest = ids.digest(json.dumps(columns, sort_keys=True))
        if digest not in known:
            values = [digest, *(columns[name] for name in LABEL_COLUMNS)]
            marks = ", ".join("?" * len(values))
            # Beyond what rows point to as well: those of a lost set must not get this one.
            number = (
                f"max(coalesce((SELECT max(id) FROM {self._labels}), 0),"
                f" coalesce((SELECT max(labels) FROM {self._chunks}), 0)) + 1"
            )
            db.execute(
                f"INSERT OR IGNORE INTO {self._labels} (id, digest, {', '.join(LABEL_COLUMNS)})"
                f" VALUES ({number}, {marks})",
                values,
            )
            found = db.execute(f"SELECT id FROM {self._labels} WHERE digest = ?", (digest,))
            known[digest] = found.fetchone()[0]
        return known[digest]

    def delete(self, row_ids: Collection[str]) -> None:
        with self._database.write() as db:
            sets = self._remove(db, row_ids)
            db.execute(
                f"DELETE FROM {self._labels} AS l WHERE id IN (SELECT value FROM json_each(?))"
                f" AND NOT EXISTS (SELECT 1 FROM {self._chunks} c WHERE c.labels = l.id)",
                (json.dumps(sets),),
            )

    def _remove(self, db: sqlite3.Connection, row_ids: Collection[str]) -> list[int]:
        """Deletes rows with all that belongs to them; gives the label sets that they had."""
        found = db.execute(
            f"SELECT id, labels FROM {self._chunks}"
            " WHERE row_id IN (SELECT value FROM json_each(?))",
            (many(row_ids),),
        ).fetchall()
        numbers = [(number,) for number, _ in found]
        db.executemany(f"DELETE FROM {self._fts} WHERE rowid = ?", numbers)
        db.executemany(f"DELETE FROM {self._codes} WHERE id = ?", numbers)
        db.executemany(f"DELETE FROM {self._chunks} WHERE id = ?", numbers)
        return sorted({labels for _, labels in found})

    def fetch(self, row_ids: Collection[str]) -> dict[str, Chunk]:
        chunks = self._bodies("row_id IN (SELECT value FROM json_each(?))", (many(row_ids),))
        return {chunk.row_id: chunk for chunk in chunks}

    def row_refs(self, doc_ids: Collection[str]) -> list[RowRef]:
        return self._refs("doc_id IN (SELECT value FROM json_each(?))", (many(doc_ids),))

    def unsearchable(self, doc_ids: Collection[str]) -> set[str]:
        with self._database.read() as db:
            rows = db.execute(
                f"SELECT row_id FROM {self._chunks} c"
                " WHERE doc_id IN (SELECT value FROM json_each(?)) AND ("
                f" NOT EXISTS (SELECT 1 FROM {self._fts} WHERE rowid = c.id)"
                f" OR NOT EXISTS (SELECT 1 FROM {self._labels} WHERE id = c.labels)"
                " OR EXISTS (SELECT 1 FROM json_each(c.body, '$.identifiers') AS held"
                f"  WHERE (held.value, c.id) NOT IN (SELECT code, id FROM {self._codes})))",
                (many(doc_ids),),
            )
            return {row_id for (row_id,) in rows}

    def chunks(self, doc_id: str, revision: str, ordinals: range) -> list[Chunk]:
        if not ordinals:
            return []
        found = self._bodies(
            "doc_id = ? AND revision = ? AND ordinal BETWEEN ? AND ? ORDER BY ordinal",
            (doc_id, revision, min(ordinals), max(ordinals)),
        )
        return [chunk for chunk in found if chunk.ordinal in ordinals]

    def find_text(self, text_hashes: Collection[str]) -> dict[str, str]:
        with self._database.read() as db:
            rows = db.execute(
                f"SELECT text_hash, min(row_id) FROM {self._chunks}"
                " WHERE text_hash IN (SELECT value FROM json_each(?)) GROUP BY text_hash",
                (many(text_hashes),),
            )
            return dict(rows.fetchall())

    def scan(self, *, after: str = "", limit: int = 1000) -> list[RowRef]:
        return self._refs("row_id > ? ORDER BY row_id LIMIT ?", (after, limit))

    def count(self) -> int:
        with self._database.read() as db:
            (count,) = db.execute(f"SELECT count(*) FROM {self._chunks}").fetchone()
        return int(count)

    def _bodies(self, where: str, parameters: tuple[str | int, ...]) -> list[Chunk]:
        with self._database.read() as db:
            statement = f"SELECT body FROM {self._chunks} WHERE {where}"
            rows = db.execute(statement, parameters).fetchall()
        return [chunk_from_json(json.loads(body)) for (body,) in rows]

    def _refs(self, where: str, parameters: tuple[str | int, ...]) -> list[RowRef]:
        with self._database.read() as db:
            statement = f"SELECT row_id, doc_id, revision FROM {self._chunks} WHERE {where}"
            rows = db.execute(statement, parameters).fetchall()
        return [RowRef(row_id=r, doc_id=d, revision=v) for r, d, v in rows]

    # ------------------------------------------------------------------------------ search

    def search(
        self, question: str, *, limit: int, where: Filter, without: Collection[str] = ()
    ) -> list[Hit]:
        codes = identifiers(question)
        terms = analyze(question, codes=codes)
        if not terms:
            return []
        condition, values = to_sql(where, table="l")
        parameters: list[Any] = [many(codes), _match(terms), *values, many(without), limit]
        with self._database.read() as db:
            rows = db.execute(
                f"SELECT c.row_id, c.doc_id, c.revision, bm25({self._fts}) AS cost,"
                f" c.id IN (SELECT id FROM {self._codes}"
                "   WHERE code IN (SELECT value FROM json_each(?))) AS exact"
                f" FROM {self._fts} JOIN {self._chunks} c ON c.id = {self._fts}.rowid"
                f" WHERE {self._fts} MATCH ?"
                f" AND c.labels IN (SELECT l.id FROM {self._labels} l WHERE {condition})"
                " AND c.revision NOT IN (SELECT value FROM json_each(?))"
                " ORDER BY exact DESC, cost, c.row_id LIMIT ?",
                parameters,
            ).fetchall()
        return [
            Hit(row_id=r, doc_id=d, revision=v, score=-cost, exact=bool(exact))
            for r, d, v, cost, exact in rows
        ]

    def publish(self) -> None:
        """Nothing to do: a committed transaction is searched at once."""

    def drop(self) -> None:
        with self._database.write() as db:
            for name in (self._chunks, self._labels, self._codes, self._fts):
                db.execute(f"DROP TABLE IF EXISTS {name}")

    def close(self) -> None:
        self._database.close()


def _terms(chunk: Chunk) -> str:
    words = embedded_text(chunk.header, chunk.text)
    return " ".join(analyze(words, codes=chunk.identifiers))


def _match(terms: Sequence[str]) -> str:
    """An FTS5 expression that any of the terms satisfies; quoted, so that none is an operator."""
    return " OR ".join('"' + term.replace('"', '""') + '"' for term in dict.fromkeys(terms))
