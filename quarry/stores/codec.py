"""Catalog rows and chunks as JSON objects and back, one form for every store that keeps JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields
from datetime import date, datetime
from typing import Any

from quarry.errors import RowsRejected
from quarry.records import Chunk, DocState, Document, Generation, Kept, SourceEntry, Status

NO_UNICODE = "its name or its metadata are not valid Unicode; rename or mend it"
TIMES = ("indexed_at", "committed_at")


def document_to_json(document: Document) -> dict[str, Any]:
    row = _plain(document)
    row["effective"] = document.effective.isoformat() if document.effective else None
    for name in TIMES:
        row[name] = row[name].isoformat() if row[name] else None
    return row


def check_text(document: Document, *, store: str) -> None:
    """Raises RowsRejected if some text of it is not valid Unicode: UTF-8 does not hold it."""
    try:
        json.dumps(document_to_json(document), ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise RowsRejected(store, {document.doc_id: NO_UNICODE}) from None


def document_from_json(row: Mapping[str, Any]) -> Document:
    values = dict(row)
    values["state"] = DocState(row["state"])
    values["status"] = Status(row["status"])
    values["acl"] = tuple(row["acl"])
    values["effective"] = date.fromisoformat(row["effective"]) if row["effective"] else None
    for name in TIMES:
        values[name] = datetime.fromisoformat(row[name]) if row[name] else None
    return Document(**values)


def chunk_to_json(chunk: Chunk) -> dict[str, Any]:
    return _plain(chunk)


def chunk_from_json(row: Mapping[str, Any]) -> Chunk:
    values = dict(row)
    for name in ("section", "identifiers", "span"):
        values[name] = tuple(row[name])
    values["pages"] = tuple(row["pages"]) if row["pages"] else None
    return Chunk(**values)


def entry_to_json(entry: SourceEntry) -> dict[str, Any]:
    return _plain(entry)


def entry_from_json(row: Mapping[str, Any]) -> SourceEntry:
    return SourceEntry(**{**row, "state": DocState(row["state"])})


def kept_to_json(kept: Kept) -> dict[str, Any]:
    times = {field.name: getattr(kept, field.name) for field in fields(kept)}
    return {name: time.isoformat() if time else None for name, time in times.items()}


def kept_from_json(row: Mapping[str, Any]) -> Kept:
    times = {name: datetime.fromisoformat(time) if time else None for name, time in row.items()}
    return Kept(**times)


def generation_to_json(generation: Generation) -> dict[str, Any]:
    return {**_plain(generation), "created_at": generation.created_at.isoformat()}


def generation_from_json(row: Mapping[str, Any]) -> Generation:
    return Generation(**{**row, "created_at": datetime.fromisoformat(row["created_at"])})


def _plain(record: Any) -> dict[str, Any]:
    """Field values by name; tuples become lists, mappings plain dicts, enums their values."""
    return {field.name: _value(getattr(record, field.name)) for field in fields(record)}


def _value(value: Any) -> Any:
    if isinstance(value, tuple):
        return list(value)
    if isinstance(value, DocState | Status):
        return value.value
    return dict(value) if isinstance(value, Mapping) else value
