"""All four stores in memory, for tests and for trying things out: exact, small, safe to share.

An instance is the state: two users of the same rows share the instance.
"""

from __future__ import annotations

import math
import threading
from bisect import bisect_right
from collections import Counter
from collections.abc import Collection, Mapping, Sequence

import numpy as np

from quarry.access import Filter
from quarry.access.compile import matches
from quarry.errors import RowsRejected
from quarry.records import (
    Chunk,
    Hit,
    RowRef,
    TextRow,
    Vector,
    VectorRow,
)
from quarry.stores.memory_catalog import MemoryCatalog, MemoryRegistry
from quarry.stores.rows import text_row_fault, vector_row_fault
from quarry.text import analyze, embedded_text, identifiers

__all__ = ["MemoryCatalog", "MemoryRegistry", "MemoryTextStore", "MemoryVectorStore"]

BM25_K1 = 1.2
BM25_B = 0.75


class MemoryVectorStore:
    """VectorStore: exact search over all rows."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._rows: dict[str, VectorRow] = {}
        self._dimension = 0

    def ensure(self, dimension: int) -> None:
        with self._lock:
            self._dimension = dimension

    def upsert(self, rows: Sequence[VectorRow]) -> None:
        with self._lock:
            faults = {row.row_id: vector_row_fault(row, self._dimension) for row in rows}
            self._rows.update({row.row_id: row for row in rows if not faults[row.row_id]})
        _raise_rejected(faults)

    def fetch(self, row_ids: Collection[str]) -> dict[str, Vector]:
        with self._lock:
            return {key: self._rows[key].vector for key in row_ids if key in self._rows}

    def present(self, row_ids: Collection[str]) -> set[str]:
        with self._lock:
            return {key for key in row_ids if key in self._rows}

    def row_refs(self, doc_ids: Collection[str]) -> list[RowRef]:
        wanted = set(doc_ids)
        with self._lock:
            return [_vector_ref(row) for row in self._rows.values() if row.doc_id in wanted]

    def delete(self, row_ids: Collection[str]) -> None:
        with self._lock:
            for row_id in row_ids:
                self._rows.pop(row_id, None)

    def search(
        self, vector: Vector, *, limit: int, where: Filter, without: Collection[str] = ()
    ) -> list[Hit]:
        left_out = set(without)
        with self._lock:
            rows = [
                row
                for row in self._rows.values()
                if row.revision not in left_out and matches(where, row.labels)
            ]
        hits = [_hit(_vector_ref(row), float(np.dot(row.vector, vector))) for row in rows]
        return _best(hits, limit)

    def scan(self, *, after: str = "", limit: int = 1000) -> list[RowRef]:
        with self._lock:
            return [_vector_ref(self._rows[key]) for key in _page(self._rows, after, limit)]

    def count(self) -> int:
        with self._lock:
            return len(self._rows)

    def flush(self) -> None:
        """Nothing to do: writes are searched at once and never durable."""

    def drop(self) -> None:
        with self._lock:
            self._rows.clear()

    def close(self) -> None:
        """Nothing to do."""


class MemoryTextStore:
    """TextStore: BM25 over what was published, computed for each question."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._rows: dict[str, TextRow] = {}
        self._published: Mapping[str, TextRow] = {}
        self._terms: dict[str, Counter[str]] = {}

    def ensure(self) -> None:
        """Nothing to do."""

    def upsert(self, rows: Sequence[TextRow]) -> None:
        faults = {row.chunk.row_id: text_row_fault(row) for row in rows}
        with self._lock:
            good = {row.chunk.row_id: row for row in rows if not faults[row.chunk.row_id]}
            self._rows.update(good)
        _raise_rejected(faults)

    def fetch(self, row_ids: Collection[str]) -> dict[str, Chunk]:
        with self._lock:
            return {key: self._rows[key].chunk for key in row_ids if key in self._rows}

    def row_refs(self, doc_ids: Collection[str]) -> list[RowRef]:
        wanted = set(doc_ids)
        with self._lock:
            return [_text_ref(r.chunk) for r in self._rows.values() if r.chunk.doc_id in wanted]

    def unsearchable(self, doc_ids: Collection[str]) -> set[str]:
        """None: rows are searched by what they hold."""
        return set()

    def chunks(self, doc_id: str, revision: str, ordinals: range) -> list[Chunk]:
        with self._lock:
            found = [
                row.chunk
                for row in self._rows.values()
                if (row.chunk.doc_id, row.chunk.revision) == (doc_id, revision)
                and row.chunk.ordinal in ordinals
            ]
        return sorted(found, key=lambda chunk: chunk.ordinal)

    def find_text(self, text_hashes: Collection[str]) -> dict[str, str]:
        wanted = set(text_hashes)
        with self._lock:
            chunks = [row.chunk for row in self._rows.values()]
        return {chunk.text_hash: chunk.row_id for chunk in chunks if chunk.text_hash in wanted}

    def delete(self, row_ids: Collection[str]) -> None:
        with self._lock:
            for row_id in row_ids:
                self._rows.pop(row_id, None)

    def search(
        self, question: str, *, limit: int, where: Filter, without: Collection[str] = ()
    ) -> list[Hit]:
        with self._lock:
            rows = self._published
            terms = {key: self._terms_of(row) for key, row in rows.items()}
        codes, left_out = set(identifiers(question)), set(without)
        scores = _bm25(terms, set(analyze(question)))
        hits = []
        for key, score in scores.items():
            row = rows[key]
            exact = not codes.isdisjoint(row.chunk.identifiers)
            if row.chunk.revision not in left_out and matches(where, row.labels):
                hits.append(_hit(_text_ref(row.chunk), score, exact=exact))
        return _best(hits, limit)

    def _terms_of(self, row: TextRow) -> Counter[str]:
        words = embedded_text(row.chunk.header, row.chunk.text)
        if words not in self._terms:
            self._terms[words] = Counter(analyze(words))
        return self._terms[words]

    def publish(self) -> None:
        with self._lock:
            self._published = dict(self._rows)

    def scan(self, *, after: str = "", limit: int = 1000) -> list[RowRef]:
        with self._lock:
            return [_text_ref(self._rows[key].chunk) for key in _page(self._rows, after, limit)]

    def count(self) -> int:
        with self._lock:
            return len(self._rows)

    def drop(self) -> None:
        with self._lock:
            self._rows.clear()
            self._published = {}
            self._terms.clear()

    def close(self) -> None:
        """Nothing to do."""


def _raise_rejected(faults: Mapping[str, str]) -> None:
    rejected = {row_id: fault for row_id, fault in faults.items() if fault}
    if rejected:
        raise RowsRejected("memory", rejected)


def _vector_ref(row: VectorRow) -> RowRef:
    return RowRef(row_id=row.row_id, doc_id=row.doc_id, revision=row.revision)


def _text_ref(chunk: Chunk) -> RowRef:
    return RowRef(row_id=chunk.row_id, doc_id=chunk.doc_id, revision=chunk.revision)


def _hit(ref: RowRef, score: float, *, exact: bool = False) -> Hit:
    return Hit(
        row_id=ref.row_id, doc_id=ref.doc_id, revision=ref.revision, score=score, exact=exact
    )


def _best(hits: list[Hit], limit: int) -> list[Hit]:
    return sorted(hits, key=lambda hit: (not hit.exact, -hit.score, hit.row_id))[:limit]


def _page(rows: Collection[str], after: str, limit: int) -> list[str]:
    ordered = sorted(rows)
    start = bisect_right(ordered, after)
    return ordered[start : start + limit]


def _bm25(rows: Mapping[str, Counter[str]], terms: set[str]) -> dict[str, float]:
    """Scores of the rows that hold a term (Robertson and Zaragoza 2009, idf as Lucene has it)."""
    lengths = {key: counts.total() for key, counts in rows.items()}
    mean = sum(lengths.values()) / len(lengths) if lengths else 1.0
    scores: dict[str, float] = {}
    for term in terms:
        holders = {key: counts[term] for key, counts in rows.items() if term in counts}
        idf = math.log(1 + (len(rows) - len(holders) + 0.5) / (len(holders) + 0.5))
        for key, count in holders.items():
            norm = BM25_K1 * (1 - BM25_B + BM25_B * lengths[key] / mean)
            gain = idf * count * (BM25_K1 + 1) / (count + norm)
            scores[key] = scores.get(key, 0.0) + gain
    return scores
