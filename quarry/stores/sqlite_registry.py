"""Registry in the SQLite file: the generations, and the one row that names the live one."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

from quarry.errors import Conflict
from quarry.records import Generation
from quarry.stores.codec import generation_from_json, generation_to_json
from quarry.stores.sqlite import Database

_SCHEMA = (
    "CREATE TABLE IF NOT EXISTS generations (name TEXT PRIMARY KEY, created REAL, body TEXT)",
    "CREATE TABLE IF NOT EXISTS live (only INTEGER PRIMARY KEY CHECK (only = 1), name TEXT)",
)


class SqliteRegistry:
    """Registry. Whoever only looks writes nothing, and so never waits for a writer."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def generations(self) -> list[Generation]:
        with self._database.read() as db:
            if not _is_there(db):
                return []
            rows = db.execute("SELECT body FROM generations ORDER BY created, name").fetchall()
        return [generation_from_json(json.loads(body)) for (body,) in rows]

    def live(self) -> Generation | None:
        with self._database.read() as db:
            if not _is_there(db):
                return None
            row = db.execute("SELECT body FROM live JOIN generations USING (name)").fetchone()
        return generation_from_json(json.loads(row[0])) if row else None

    def create(self, generation: Generation) -> None:
        body = json.dumps(generation_to_json(generation))
        with self._write() as db:
            created = db.execute(
                "INSERT INTO generations VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
                (generation.name, generation.created_at.timestamp(), body),
            )
            if not created.rowcount:
                raise Conflict(f"Generation {generation.name} is there already.")

    def switch(self, name: str, *, expected: str) -> None:
        with self._write() as db:
            row = db.execute("SELECT name FROM live").fetchone()
            known = db.execute("SELECT 1 FROM generations WHERE name = ?", (name,)).fetchone()
            if (row[0] if row else "") != expected or not known:
                raise Conflict(f"Generation {name} cannot follow {expected or 'none'}; look again.")
            db.execute("INSERT OR REPLACE INTO live VALUES (1, ?)", (name,))

    def remove(self, name: str) -> None:
        with self._write() as db:
            if db.execute("SELECT 1 FROM live WHERE name = ?", (name,)).fetchone():
                raise Conflict(f"Generation {name} is live; switch to another one first.")
            db.execute("DELETE FROM generations WHERE name = ?", (name,))

    def close(self) -> None:
        self._database.close()

    @contextmanager
    def _write(self) -> Iterator[sqlite3.Connection]:
        with self._database.write() as db:
            for statement in _SCHEMA:
                db.execute(statement)
            yield db


def _is_there(db: sqlite3.Connection) -> bool:
    """Whether anything was ever registered; both tables come in one transaction."""
    found = db.execute("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'live'")
    return found.fetchone() is not None
