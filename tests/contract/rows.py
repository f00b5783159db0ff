"""Rows, chunks and documents for the store suites."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, date, datetime
from typing import Any

import numpy as np

from quarry import ids
from quarry.records import (
    Chunk,
    DocState,
    Document,
    Labels,
    Scalar,
    Status,
    TextRow,
    Vector,
    VectorRow,
)

DIMENSION = 8
TOKEN = "00000000-aaaaaaaaaaaa"
LATER = "00000001-bbbbbbbbbbbb"


def labels(**changes: Any) -> Labels:
    defaults = Labels(
        source="handbook",
        tenant="default",
        acl=("public",),
        series="",
        version="",
        status=Status.CURRENT,
        effective=None,
        metadata={},
    )
    return replace(defaults, **changes)


def chunk(
    text: str,
    *,
    doc: str = "d1",
    token: str = TOKEN,
    ordinal: int = 0,
    header: str = "",
    **more: Any,
) -> Chunk:
    """A chunk of that text; identifiers come from text and header by the product's own rules."""
    from quarry.text import identifiers

    name = ids.chunk_id(doc, text, ordinal)
    values: dict[str, Any] = {
        "row_id": ids.row_id(name, token),
        "chunk_id": name,
        "doc_id": doc,
        "revision": token,
        "ordinal": ordinal,
        "text": text,
        "header": header,
        "text_hash": ids.digest(f"{header}\n{text}"),
        "identifiers": tuple(identifiers(f"{header}\n{text}")),
    }
    return Chunk(**{**values, **more})


def text_row(text: str, *, row_labels: Labels | None = None, **more: Any) -> TextRow:
    return TextRow(chunk=chunk(text, **more), labels=row_labels or labels())


def vector(*values: float) -> Vector:
    """The values, filled with zeros to DIMENSION."""
    padded = [*values, *[0.0] * (DIMENSION - len(values))]
    return np.asarray(padded, dtype=np.float32)


def vector_row(
    name: str,
    values: Vector,
    *,
    doc: str = "d1",
    token: str = TOKEN,
    row_labels: Labels | None = None,
) -> VectorRow:
    """A row whose row_id starts with `name`, so that tests can say which comes first."""
    return VectorRow(
        row_id=ids.row_id(name, token),
        chunk_id=name,
        doc_id=doc,
        revision=token,
        labels=row_labels or labels(),
        vector=values,
    )


def document(doc: str = "d1", **changes: Any) -> Document:
    defaults = Document(
        doc_id=doc,
        source="handbook",
        address=f"{doc}.md",
        uri=f"file:///handbook/{doc}.md",
        title="A page",
        content_hash="c0",
        meta_hash="m0",
        recipe="r0",
        revision=TOKEN,
        state=DocState.INDEXED,
        acl=("public",),
        chunk_count=1,
        indexed_at=at(0),
        committed_at=at(0),
    )
    return replace(defaults, **changes)


def full_document(doc: str = "d1") -> Document:
    """One with every field set, to see what comes back."""
    metadata: Mapping[str, Scalar] = {"region": "CA", "pages": 3, "share": 0.5, "signed": True}
    return document(
        doc,
        url="https://example.org/leave#a",
        title="Parental “leave” \\ 'policy' 育児",
        error="page 3 cannot be read",
        state=DocState.PARTIAL,
        series="HR-014",
        version="4.10",
        status=Status.DRAFT,
        effective=date(2026, 7, 1),
        tenant="north",
        acl=("hr", "user:ana"),
        metadata=metadata,
        chunk_count=7,
        deleted_by_hand=True,
    )


def at(hours: float) -> datetime:
    """A time that many hours after the suite's midnight."""
    return datetime.fromtimestamp(1_790_000_000 + 3600 * hours, tz=UTC)
