"""Text rows and BM25 in Elasticsearch."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from typing import Any

from quarry.access import Everything, Filter
from quarry.access.compile_elasticsearch import elasticsearch_fields, to_elasticsearch
from quarry.errors import RowsRejected
from quarry.ids import token_of
from quarry.records import Chunk, Hit, RowRef, TextRow
from quarry.stores import codec
from quarry.stores.elasticsearch import mappings
from quarry.stores.elasticsearch.client import PAGE, Cluster
from quarry.stores.elasticsearch.known import KnownRows
from quarry.stores.rows import text_row_fault
from quarry.text import analyze, embedded_text, identifiers

REF = ["row_id", "doc_id", "revision"]
MOST_HITS = 10_000
"""Elasticsearch gives no more at once."""
TIES = 8
"""Hits beyond the limit, among which those end that are as good as the last one within it."""


class ElasticsearchText:
    """TextStore of one generation."""

    def __init__(self, cluster: Cluster, generation: str) -> None:
        self._cluster = cluster
        self._index = cluster.index(generation, "chunks")
        self._rows = KnownRows(
            cluster,
            self._index,
            lambda source: codec.chunk_from_json(source["chunk"]),
            size=cluster.settings.known_rows,
        )

    def ensure(self) -> None:
        settings = self._cluster.settings
        body = mappings.body(mappings.CHUNKS, settings, shards=settings.shards)
        self._cluster.ensure(self._index, body)

    def upsert(self, rows: Sequence[TextRow]) -> None:
        faults = {row.chunk.row_id: text_row_fault(row) for row in rows}
        rejected = {row_id: fault for row_id, fault in faults.items() if fault}
        operations = [
            ({"index": {"_id": row.chunk.row_id}}, _source(row))
            for row in rows
            if not faults[row.chunk.row_id]
        ]
        rejected |= self._cluster.bulk(self._index, operations)
        if rejected:
            raise RowsRejected("Elasticsearch", rejected)

    def fetch(self, row_ids: Collection[str]) -> dict[str, Chunk]:
        return self._rows.read(row_ids)

    def row_refs(self, doc_ids: Collection[str]) -> list[RowRef]:
        wanted = sorted(set(doc_ids))
        self.publish()
        found: list[RowRef] = []
        for start in range(0, len(wanted), PAGE):
            query = {"terms": {"doc_id": wanted[start : start + PAGE]}}
            found += _refs(self._pages(query, source=REF))
        return found

    def unsearchable(self, doc_ids: Collection[str]) -> set[str]:
        """None: Elasticsearch keeps a row and what it is searched by as one."""
        return set()

    def chunks(self, doc_id: str, revision: str, ordinals: range) -> list[Chunk]:
        if not ordinals:
            return []
        query = {
            "bool": {
                "filter": [
                    {"term": {"doc_id": doc_id}},
                    {"term": {"revision": revision}},
                    {"range": {"ordinal": {"gte": ordinals.start, "lt": ordinals.stop}}},
                ]
            }
        }
        found = [codec.chunk_from_json(hit["_source"]["chunk"]) for hit in self._pages(query)]
        return sorted(found, key=lambda chunk: chunk.ordinal)

    def find_text(self, text_hashes: Collection[str]) -> dict[str, str]:
        wanted = sorted(set(text_hashes))
        found: dict[str, str] = {}
        for start in range(0, len(wanted), PAGE):
            found |= self._holders(wanted[start : start + PAGE])
        return found

    def _holders(self, text_hashes: list[str]) -> dict[str, str]:
        """A row of each text, in two requests however many rows hold it.

        Most texts are held by few rows, so that one page has them all. Where it is full, each text
        that is not on it is looked for by itself: a footer may be held by all documents.
        """
        query = {"terms": {"text_hash": text_hashes}}
        hits = list(self._pages(query, limit=PAGE, source=["text_hash"]))
        found = {hit["_source"]["text_hash"]: hit["_id"] for hit in reversed(hits)}
        others = [each for each in text_hashes if each not in found]
        if len(hits) < PAGE or not others:
            return found
        filters = [{"bool": {"filter": [{"term": {"text_hash": each}}]}} for each in others]
        rows = self._cluster.first_hits(self._index, filters)
        return found | {each: row["_id"] for each, row in zip(others, rows, strict=True) if row}

    def delete(self, row_ids: Collection[str]) -> None:
        operations = [({"delete": {"_id": row_id}}, None) for row_id in sorted(set(row_ids))]
        rejected = self._cluster.bulk(self._index, operations)
        if rejected:
            raise RowsRejected("Elasticsearch", rejected)

    def search(
        self, question: str, *, limit: int, where: Filter, without: Collection[str] = ()
    ) -> list[Hit]:
        terms = list(dict.fromkeys(analyze(question)))
        codes = list(identifiers(question))
        if limit < 1 or not (terms or codes):
            return []
        permitted = [] if isinstance(where, Everything) else [to_elasticsearch(where)]
        if without:
            left_out = {"terms": {"revision": sorted(without)}}
            permitted.append({"bool": {"must_not": [left_out]}})
        hits: dict[str, Hit] = {}
        if codes:
            holds = {"terms": {"identifiers": codes}}
            lane = _lane(terms, [*permitted, holds], must=False)
            hits = {hit.row_id: replace(hit, exact=True) for hit in self._best(lane, limit)}
        for hit in self._best(_lane(terms, permitted, must=True), limit):
            hits.setdefault(hit.row_id, hit)
        return list(hits.values())[:limit]

    def publish(self) -> None:
        self._cluster.refresh(self._index)

    def scan(self, *, after: str = "", limit: int = 1000) -> list[RowRef]:
        self.publish()
        return _refs(self._pages({"match_all": {}}, after=after, limit=limit, source=REF))

    def count(self) -> int:
        self.publish()
        return int(self._cluster.call(lambda c: c.count(index=self._index))["count"])

    def drop(self) -> None:
        self._cluster.drop([self._index])
        self._rows.forget()

    def close(self) -> None:
        self._cluster.close()

    def _pages(self, query: dict[str, Any], **options: Any) -> Iterable[dict[str, Any]]:
        return self._cluster.pages(self._index, query=query, sort="row_id", **options)

    def _best(self, query: dict[str, Any], limit: int) -> list[Hit]:
        """The first hits by score, equal ones by row_id.

        Sorting by row_id too would have Elasticsearch score every match in place of those that can
        still come in, which takes three times as long. So it sorts only where more hits are as good
        as the last one than are asked for beyond it, and which of them come in is open.
        """
        size = limit + TIES
        if size <= MOST_HITS:
            hits = self._search(query, size)
            if len(hits) < size or hits[-1].score < hits[limit - 1].score:
                return sorted(hits, key=lambda hit: (-hit.score, hit.row_id))[:limit]
        return self._search(query, min(limit, MOST_HITS), sort=["_score", {"row_id": "asc"}])

    def _search(self, query: dict[str, Any], size: int, **options: Any) -> list[Hit]:
        answer = self._cluster.call(
            lambda c: c.search(
                index=self._index,
                query=query,
                size=size,
                # Columns alone: most hits are never read, and `fetch` knows many that are.
                source=False,
                stored_fields="_none_",
                docvalue_fields=["row_id", "doc_id"],
                track_total_hits=False,
                allow_partial_search_results=False,  # hits of a shard that is away would be missed
                **options,
            )
        )
        return [_hit(hit["fields"], hit["_score"]) for hit in answer["hits"]["hits"]]


def _hit(fields: dict[str, Any], score: float | None) -> Hit:
    (row_id,), (doc_id,) = fields["row_id"], fields["doc_id"]
    return Hit(row_id=row_id, doc_id=doc_id, revision=token_of(row_id), score=float(score or 0.0))


def _lane(terms: list[str], filters: list[dict[str, Any]], *, must: bool) -> dict[str, Any]:
    match = {"match": {"terms": {"query": " ".join(terms)}}}
    clause = "must" if must else "should"
    return {"bool": {clause: [match] if terms else [], "filter": filters}}


def _source(row: TextRow) -> dict[str, Any]:
    chunk = row.chunk
    return {
        **elasticsearch_fields(row.labels),
        "row_id": chunk.row_id,
        "doc_id": chunk.doc_id,
        "revision": chunk.revision,
        "ordinal": chunk.ordinal,
        "text_hash": chunk.text_hash,
        "identifiers": list(chunk.identifiers),
        "terms": " ".join(
            analyze(embedded_text(chunk.header, chunk.text), codes=chunk.identifiers)
        ),
        "chunk": codec.chunk_to_json(chunk),
    }


def _refs(hits: Iterable[dict[str, Any]]) -> list[RowRef]:
    return [RowRef(**{name: hit["_source"][name] for name in REF}) for hit in hits]
