"""Which rows no store takes: checked before writing, so that the others are stored."""

from __future__ import annotations

import math

import numpy as np

from quarry.records import Labels, TextRow, VectorRow

MAX_KEY = 80
"""Longest id in characters, as `quarry.ids` makes them."""


def text_row_fault(row: TextRow) -> str:
    """Why this row cannot be stored; empty if it can."""
    chunk = row.chunk
    fault = _keys_fault(chunk.row_id, chunk.doc_id, chunk.revision) or labels_fault(row.labels)
    if fault:
        return fault
    words = (chunk.text, chunk.header, chunk.anchor, *chunk.section, *chunk.identifiers)
    return "" if all(map(_encodes, words)) else "its text is not valid Unicode"


def vector_row_fault(row: VectorRow, dimension: int) -> str:
    """Why this row cannot be stored; empty if it can."""
    fault = _keys_fault(row.row_id, row.doc_id, row.revision) or labels_fault(row.labels)
    if fault:
        return fault
    if row.vector.shape != (dimension,):
        return f"its vector has shape {row.vector.shape} and not ({dimension},)"
    return "" if np.isfinite(row.vector).all() else "its vector has a value that is not finite"


def labels_fault(labels: Labels) -> str:
    """Why these labels cannot be stored; empty if they can."""
    words = [labels.source, labels.tenant, labels.series, labels.version, *labels.acl]
    for key, value in labels.metadata.items():
        if isinstance(value, float) and not math.isfinite(value):
            return "a metadata number is not finite"
        words += [key, value] if isinstance(value, str) else [key]
    return "" if all(map(_encodes, words)) else "a label is not valid Unicode"


def _keys_fault(*keys: str) -> str:
    if all(key and len(key) <= MAX_KEY and key.isascii() for key in keys):
        return ""
    return f"its ids are not 1 to {MAX_KEY} ASCII characters"


def _encodes(text: str) -> bool:
    """False for lone surrogates, which no UTF-8 store can keep."""
    if text.isascii():
        return True
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True
