"""VectorStore in Milvus: a server from 2.3 on, or Milvus Lite through its owner's address.

Nothing here needs sparse or hybrid search, nullable fields, partial updates or filter templates.
A server gets an HNSW index, Lite a FLAT one: filtered search is exact there.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import partial
from typing import Any, TypeVar

import numpy as np
from pymilvus import DataType, MilvusClient

from quarry.access import Filter
from quarry.access.compile import milvus_fields, to_milvus
from quarry.access.labels import LABEL_BYTES
from quarry.errors import RowsRejected, StoreError
from quarry.ids import token_of
from quarry.records import Hit, RowRef, Vector, VectorRow
from quarry.settings_stores import MilvusSettings
from quarry.stores.milvus_connection import MilvusConnection
from quarry.stores.rows import MAX_KEY, vector_row_fault

T = TypeVar("T")

BATCH_ROWS = 1000
BATCH_BYTES = 8_000_000
"""A write stays far below the 64 MB that a server takes."""
JSON_BYTES = 65_536
"""Longest JSON value that Milvus keeps."""
MAX_RESULTS = 16_384
"""Most rows that one search or page gives."""
MAX_EF = 32_768
EXACT_ROWS = 10_000
"""Up to so many matching rows are compared one by one when a search has not found enough."""
LITE_FLUSH_ROWS = 5000
"""Lite searches rows that are not flushed some 50 times slower, so they must stay few."""
KEYS = ("chunk_id", "doc_id", "revision")
REF_FIELDS = ["row_id", "doc_id", "revision"]


class MilvusVectorStore:
    """Vectors of one generation, in the collection `PREFIX_GENERATION`.

    `address` gives the address of Milvus Lite's owner; without it, settings name a server.
    """

    def __init__(
        self,
        settings: MilvusSettings,
        generation: str,
        *,
        address: Callable[[], str] | None = None,
    ) -> None:
        self._settings = settings
        self._lite = address is not None
        self._name = f"{settings.collection_prefix}_{generation}"
        self._connection = MilvusConnection(settings, address or (lambda: settings.uri))
        self._dimension = 0
        self._unflushed = 0
        self._guard = threading.Lock()

    # ------------------------------------------------------------------------------ schema

    def ensure(self, dimension: int) -> None:
        def create(client: MilvusClient) -> None:
            if not client.has_collection(self._name, timeout=self._seconds):
                client.create_collection(
                    self._name,
                    schema=_schema(dimension, by_tenant=bool(self._partitions)),
                    consistency_level="Bounded",
                    timeout=self._seconds,
                    **({"num_partitions": self._partitions} if self._partitions else {}),
                )
            if not client.list_indexes(self._name, field_name="vector"):
                # Not waited for: the first rows are not there yet, and loading waits.
                client.create_index(
                    self._name, self._index(client), timeout=self._total, sync=False
                )
            client.load_collection(self._name, timeout=self._total)

        self._call(create)
        held = self._known_dimension()
        if held != dimension:
            raise StoreError(
                f"The vectors of {self._name} have {held} dimensions and not {dimension}; "
                "use the embedder that built it, or another data_dir."
            )

    def _index(self, client: MilvusClient) -> Any:
        params = client.prepare_index_params()
        if self._is_flat:
            params.add_index("vector", index_type="FLAT", metric_type="IP")
            return params
        build = {"M": self._settings.hnsw_m, "efConstruction": self._settings.hnsw_ef_construction}
        params.add_index("vector", index_type="HNSW", metric_type="IP", params=build)
        return params

    @property
    def _is_flat(self) -> bool:
        return self._lite or self._settings.index == "FLAT"

    @property
    def _partitions(self) -> int:
        return 0 if self._lite else self._settings.tenant_partitions

    def _known_dimension(self) -> int:
        if not self._dimension:
            facts = self._call(lambda c: c.describe_collection(self._name, timeout=self._seconds))
            fields = {field["name"]: field for field in facts["fields"]}
            self._dimension = int(fields["vector"]["params"]["dim"])
        return self._dimension

    # -------------------------------------------------------------------------------- rows

    def upsert(self, rows: Sequence[VectorRow]) -> None:
        dimension = self._known_dimension()
        good: dict[str, dict[str, Any]] = {}
        rejected: dict[str, str] = {}
        for row in rows:
            fault = vector_row_fault(row, dimension)
            fields = {} if fault else milvus_fields(row.labels)
            fault = fault or _size_fault(fields)
            if fault:
                rejected[row.row_id] = fault
            else:
                keys = {key: getattr(row, key) for key in KEYS}
                vector = np.asarray(row.vector, dtype=np.float32)
                good[row.row_id] = {"row_id": row.row_id, **keys, **fields, "vector": vector}
        size = max(1, min(BATCH_ROWS, BATCH_BYTES // (4 * dimension + 2048)))
        for batch in _batches(list(good.values()), size):
            self._call(partial(self._upsert, batch))
            self._flush_if_many(len(batch))
        if rejected:
            raise RowsRejected("Milvus", rejected)

    def _flush_if_many(self, written: int) -> None:
        with self._guard:
            self._unflushed += written
            full = self._lite and self._unflushed >= LITE_FLUSH_ROWS
        if full:
            self.flush()

    def fetch(self, row_ids: Collection[str]) -> dict[str, Vector]:
        found = self._get(row_ids, ["vector"])
        return {row["row_id"]: np.asarray(row["vector"], dtype=np.float32) for row in found}

    def present(self, row_ids: Collection[str]) -> set[str]:
        return {row["row_id"] for row in self._get(row_ids, ["row_id"])}

    def _get(self, row_ids: Collection[str], fields: list[str]) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = []
        for batch in _batches(sorted(set(row_ids)), BATCH_ROWS):
            rows += self._query(f"row_id in {json.dumps(batch)}", fields)
        return rows

    def row_refs(self, doc_ids: Collection[str]) -> list[RowRef]:
        refs: list[RowRef] = []
        for batch in _batches(sorted(set(doc_ids)), BATCH_ROWS):
            refs += _refs(self._query(f"doc_id in {json.dumps(batch)}", REF_FIELDS))
        return refs

    def delete(self, row_ids: Collection[str]) -> None:
        for batch in _batches(sorted(set(row_ids)), BATCH_ROWS):
            self._call(partial(self._delete, batch))

    def _upsert(self, rows: list[dict[str, Any]], client: MilvusClient) -> None:
        if not self._partitions:
            client.upsert(self._name, rows, timeout=self._seconds)
            return
        # Milvus 2.3 upserts into partitions by primary key, where no search of a tenant looks.
        self._delete([row["row_id"] for row in rows], client)
        client.insert(self._name, rows, timeout=self._seconds)

    def _delete(self, row_ids: list[str], client: MilvusClient) -> None:
        client.delete(self._name, ids=row_ids, timeout=self._seconds)

    def scan(self, *, after: str = "", limit: int = 1000) -> list[RowRef]:
        where = f"row_id > {json.dumps(after)}"
        page = min(limit, MAX_RESULTS)
        # A limited query of a server gives the first rows by key, and Lite's does if it is named an
        # iterator; a server reads less than all completed writes for an iterator.
        order = {"iterator": "True"} if self._lite else {}
        found = self._query(where, REF_FIELDS, limit=page, **order)
        return sorted(_refs(found), key=lambda ref: ref.row_id)

    def count(self) -> int:
        return self._count("")

    def _count(self, expression: str, *, consistency: str = "Strong") -> int:
        (row,) = self._query(expression, ["count(*)"], consistency=consistency)
        return int(row["count(*)"])

    def _query(
        self, where: str, fields: list[str], *, consistency: str = "Strong", **options: Any
    ) -> list[dict[str, Any]]:
        def query(client: MilvusClient) -> list[dict[str, Any]]:
            return list(
                client.query(
                    self._name,
                    filter=where,
                    output_fields=fields,
                    consistency_level=consistency,
                    timeout=self._seconds,
                    **options,
                )
            )

        return self._call(query)

    # ------------------------------------------------------------------------------ search

    def search(
        self, vector: Vector, *, limit: int, where: Filter, without: Collection[str] = ()
    ) -> list[Hit]:
        expression = to_milvus(where, lite=self._lite)
        if without:
            others = f"revision not in {json.dumps(sorted(without))}"
            expression = f"({expression}) and {others}" if expression else others
        limit = min(limit, MAX_RESULTS)
        hits = self._search(vector, limit, expression, max(limit, self._settings.search_ef))
        if len(hits) < limit and not self._is_flat:
            hits = self._all_that_match(vector, limit, expression, hits)
        return sorted(hits, key=lambda hit: (-hit.score, hit.row_id))

    def _all_that_match(
        self, vector: Vector, limit: int, expression: str, hits: list[Hit]
    ) -> list[Hit]:
        """More hits than a search gave, if there are more.

        What is not flushed yet is searched by a coarse index of few probes, which misses nearly all
        of what a selective filter matches (benchmarks/filtered_recall.py), whatever the effort.
        """
        lax = {"consistency": "Bounded"}  # as the search was
        matching = self._count(expression, **lax)
        if matching <= len(hits):
            return hits
        if matching > EXACT_ROWS:
            return self._search(vector, limit, expression, MAX_EF)
        found = self._query(expression, [*REF_FIELDS, "vector"], limit=EXACT_ROWS, **lax)
        vectors = np.asarray([row["vector"] for row in found], dtype=np.float32)
        scores = vectors @ np.asarray(vector, dtype=np.float32)
        best = np.argsort(-scores, kind="stable")[:limit]
        return [
            Hit(**{name: found[row][name] for name in REF_FIELDS}, score=float(scores[row]))
            for row in best
        ]

    def _search(self, vector: Vector, limit: int, expression: str, ef: int) -> list[Hit]:
        params = {} if self._is_flat else {"ef": ef}

        def search(client: MilvusClient) -> Any:
            return client.search(
                self._name,
                data=[np.asarray(vector, dtype=np.float32)],
                anns_field="vector",
                filter=expression,
                limit=limit,
                output_fields=["row_id", "doc_id"],
                search_params={"metric_type": "IP", "params": params},
                timeout=self._seconds,
            )

        (found,) = self._call(search)
        return [_hit(hit) for hit in found]

    # --------------------------------------------------------------------------- lifecycle

    def flush(self) -> None:
        with self._guard:
            self._unflushed = 0
        self._call(lambda c: c.flush(self._name, timeout=self._total))
        if not self._lite:
            self.count()  # a strong read: whoever searches after this finds what was flushed

    def drop(self) -> None:
        self._call(lambda c: c.drop_collection(self._name, timeout=self._seconds))
        self._dimension = 0

    def close(self) -> None:
        self._connection.close()

    def _call(self, request: Callable[[MilvusClient], T]) -> T:
        return self._connection.call(request)

    @property
    def _seconds(self) -> float:
        return self._settings.timeout_s

    @property
    def _total(self) -> float:
        return self._settings.total_s


def _schema(dimension: int, *, by_tenant: bool) -> Any:
    schema = MilvusClient.create_schema(auto_id=False, enable_dynamic_field=False)
    schema.add_field("row_id", DataType.VARCHAR, is_primary=True, max_length=MAX_KEY)
    for name in KEYS:
        schema.add_field(name, DataType.VARCHAR, max_length=MAX_KEY)
    for name in ("source", "series", "version_key", "status"):
        schema.add_field(name, DataType.VARCHAR, max_length=LABEL_BYTES)
    schema.add_field("tenant", DataType.VARCHAR, max_length=LABEL_BYTES, is_partition_key=by_tenant)
    schema.add_field("effective", DataType.INT64)
    for name in ("acl", "metadata"):
        schema.add_field(name, DataType.JSON)
    schema.add_field("vector", DataType.FLOAT_VECTOR, dim=dimension)
    return schema


def _size_fault(fields: dict[str, Any]) -> str:
    for name in ("acl", "metadata"):
        size = len(json.dumps(fields[name], ensure_ascii=False).encode()) if fields else 0
        if size >= JSON_BYTES:
            return f"its {name} is longer than {JSON_BYTES} bytes"
    return ""


def _refs(rows: Sequence[dict[str, Any]]) -> list[RowRef]:
    return [RowRef(**{name: row[name] for name in REF_FIELDS}) for row in rows]


def _hit(hit: Any) -> Hit:
    entity = hit["entity"]
    row_id = entity["row_id"]
    return Hit(
        row_id=row_id,
        doc_id=entity["doc_id"],
        revision=token_of(row_id),
        score=float(hit["distance"]),
    )


def _batches(items: Sequence[T], size: int) -> Iterator[list[T]]:
    for start in range(0, len(items), size):
        yield list(items[start : start + size])
