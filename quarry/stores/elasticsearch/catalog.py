"""The catalog in Elasticsearch: realtime multi-get, compare-and-set by sequence number."""

from __future__ import annotations

import secrets
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from quarry.errors import Conflict, RowsRejected
from quarry.ids import digest
from quarry.ports import CommitResult
from quarry.records import DocState, Document, Kept, SourceEntry
from quarry.stores import codec
from quarry.stores.elasticsearch import mappings
from quarry.stores.elasticsearch.client import PAGE, Cluster
from quarry.stores.elasticsearch.known import KnownRows
from quarry.stores.snapshots import replaced_after

KEPT = "kept"
"""Id of the entry that holds what `keep` was given; those of addresses are digests."""
_NAME = "Elasticsearch"
VERSION_CONFLICT = "version_conflict_engine_exception"
"""Elasticsearch's name for a lost compare-and-set."""


class ElasticsearchCatalog:
    """Catalog of one generation.

    A row keeps its own history in `_source`, because Elasticsearch writes one document atomically
    and no two: a snapshot can then never be missing or left over. Without a `retention` a commit
    drops what it replaces.
    """

    def __init__(self, cluster: Cluster, generation: str, *, retention: timedelta) -> None:
        self._cluster = cluster
        self._retention = retention
        self._documents = cluster.index(generation, "documents")
        self._entries = cluster.index(generation, "entries")
        self._rows = KnownRows(
            cluster,
            self._documents,
            lambda source: codec.document_from_json(source["row"]),
            size=cluster.settings.known_rows,
            without=["history"] if retention else [],  # without one it is empty
        )

    def ensure(self) -> None:
        settings = self._cluster.settings
        self._cluster.ensure(self._documents, mappings.body(mappings.DOCUMENTS, settings))
        self._cluster.ensure(self._entries, mappings.body(mappings.ENTRIES, settings))
        # An index of an earlier version lacks the latest fields.
        fields = mappings.DOCUMENTS
        self._cluster.call(
            lambda c: c.indices.put_mapping(index=self._documents, properties=fields)
        )

    def get(self, doc_ids: Collection[str]) -> dict[str, Document]:
        return self._rows.read(doc_ids)

    def commit(self, document: Document) -> Document:
        (result,) = self.commit_many([document])
        if isinstance(result, Document):
            return result
        raise result

    def commit_many(self, documents: Sequence[Document]) -> list[CommitResult]:
        results: list[CommitResult] = []
        for batch in _without_repeats(documents):
            results += self._commit_batch(batch)
        return results

    def _commit_batch(self, documents: Sequence[Document]) -> list[CommitResult]:
        """Compare-and-set of different documents in one bulk request."""
        stored = self._mget([document.doc_id for document in documents])
        mark = secrets.token_hex(8)
        results: dict[str, CommitResult] = {}
        operations = []
        for document in documents:
            try:
                codec.check_text(document, store=_NAME)
            except RowsRejected as error:
                results[document.doc_id] = error
                continue
            old = stored.get(document.doc_id)
            if (old["_source"]["row"]["serial"] if old else 0) != document.serial:
                results[document.doc_id] = _conflict()
                continue
            committed = replace(document, serial=document.serial + 1)
            results[document.doc_id] = committed
            operations.append(self._operation(committed, mark, old))
        self._run(operations, results, mark)
        return [results[document.doc_id] for document in documents]

    def _run(
        self,
        operations: list[tuple[dict[str, Any], Any]],
        results: dict[str, CommitResult],
        mark: str,
    ) -> None:
        rejected = self._cluster.bulk(self._documents, operations)
        # A write that timed out may have arrived: its retry then meets its own work.
        landed = self._mget([key for key in rejected if rejected[key] == VERSION_CONFLICT])
        for doc_id, reason in rejected.items():
            if reason != VERSION_CONFLICT:
                results[doc_id] = RowsRejected(_NAME, {doc_id: reason})
            elif doc_id not in landed or landed[doc_id]["_source"]["commit"] != mark:
                results[doc_id] = _conflict()
        if any(source["series"] for _, source in operations):
            # Readers look for the other versions of a series by search, and must see this one.
            self._cluster.refresh(self._documents)

    def _operation(self, committed: Document, mark: str, old: Any) -> tuple[dict[str, Any], Any]:
        history = _snapshots(old) if old and self._retention else []
        source = {
            "doc_id": committed.doc_id,
            "source": committed.source,
            "address": committed.address,
            "state": committed.state.value,
            "series": committed.series,
            "live": bool(committed.revision),
            "commit": mark,
            "row": _snapshot(committed),
            **_history_fields([*history, _snapshot(committed)]),
        }
        action: dict[str, Any] = {"_id": committed.doc_id}
        if old is None:
            return {"create": action}, source
        return {"index": action | _guard(old)}, source

    def series(self, names: Collection[str]) -> dict[str, list[Document]]:
        if not names:
            return {}
        query = {
            "bool": {
                "filter": [{"terms": {"series": sorted(set(names))}}, {"term": {"live": True}}]
            }
        }
        # The search only finds ids; what a row says now comes from the realtime read.
        ids = [hit["_id"] for hit in self._pages(query, source=False)]
        found: dict[str, list[Document]] = {}
        for document in self.get(ids).values():
            if document.revision and document.series in names:
                found.setdefault(document.series, []).append(document)
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
        terms = {"source": source, "address": address, "state": state.value if state else ""}
        query = {"bool": {"filter": [{"term": {k: v}} for k, v in terms.items() if v]}}
        self._cluster.refresh(self._documents)
        hits = self._pages(query, after=after, limit=limit, source=["row"])
        return [codec.document_from_json(hit["_source"]["row"]) for hit in hits]

    def counts(self, *, source: str = "") -> dict[DocState, int]:
        states = {"terms": {"field": "state", "size": len(DocState)}}
        query = {"term": {"source": source}} if source else {"match_all": {}}
        buckets = self._aggregated(self._documents, states, query)["buckets"]
        return {DocState(bucket["key"]): bucket["doc_count"] for bucket in buckets}

    def history(self, doc_id: str) -> list[Document]:
        return self.histories([doc_id]).get(doc_id, [])

    def histories(self, doc_ids: Collection[str]) -> dict[str, list[Document]]:
        stored = self._mget(sorted(set(doc_ids)))
        return {
            doc_id: [codec.document_from_json(row) for row in _snapshots(hit)]
            for doc_id, hit in stored.items()
        }

    def members(self, series: Collection[str]) -> set[str]:
        if not series:
            return set()
        query = {"terms": {"members": sorted(set(series))}}
        return {hit["_id"] for hit in self._pages(query, source=False)}

    def expired(self, before: datetime, *, after: str = "", limit: int = 1000) -> list[str]:
        self._cluster.refresh(self._documents)
        query = {"range": {"replaced": {"lt": before.isoformat()}}}
        hits = self._pages(query, after=after, limit=limit, source=False)
        return [hit["_id"] for hit in hits]

    def trim_history(self, doc_ids: Collection[str], *, before: datetime) -> int:
        """Leaves out rows that move meanwhile: their next trimming will do."""
        trimmed: dict[str, int] = {}
        operations = []
        for doc_id, stored in self._mget(sorted(set(doc_ids))).items():
            rows = _snapshots(stored)
            kept = _replaced_after(rows, before)
            if len(kept) < len(rows):
                trimmed[doc_id] = len(rows) - len(kept)
                source = {**stored["_source"], **_history_fields(kept)}
                operations.append(({"index": {"_id": doc_id} | _guard(stored)}, source))
        moved = self._cluster.bulk(self._documents, operations)
        if trimmed:
            self._cluster.refresh(self._documents)  # `members` are looked for by search
        return sum(count for doc_id, count in trimmed.items() if doc_id not in moved)

    def kept(self) -> Kept:
        body = self._entry(KEPT)
        return codec.kept_from_json(body) if body else Kept()

    def keep(self, kept: Kept) -> None:
        document = {"key": KEPT, "source": "", "entry": codec.kept_to_json(kept)}
        self._cluster.call(lambda c: c.index(index=self._entries, id=KEPT, document=document))

    def sources(self) -> list[str]:
        found: list[str] = []
        after: dict[str, Any] = {}
        while True:
            names = {"size": PAGE, "sources": [{"name": {"terms": {"field": "source"}}}], **after}
            page = self._aggregated(self._entries, {"composite": names}, {"match_all": {}})
            found += [bucket["key"]["name"] for bucket in page["buckets"]]
            if "after_key" not in page:
                return sorted(name for name in found if name)
            after = {"after": page["after_key"]}

    def entries(self, source: str) -> Iterator[SourceEntry]:
        self._cluster.refresh(self._entries)
        pages = self._cluster.pages(self._entries, query={"term": {"source": source}}, sort="key")
        for hit in pages:
            yield codec.entry_from_json(hit["_source"]["entry"])

    def entry(self, source: str, address: str) -> SourceEntry | None:
        body = self._entry(digest(source, address))
        return codec.entry_from_json(body) if body else None

    def _entry(self, key: str) -> dict[str, Any] | None:
        found = next(self._cluster.mget(self._entries, [{"_id": key}]), None)
        return found["_source"]["entry"] if found else None

    def put_entry(self, entry: SourceEntry) -> None:
        key = digest(entry.source, entry.address)
        document = {"key": key, "source": entry.source, "entry": codec.entry_to_json(entry)}
        self._cluster.call(lambda c: c.index(index=self._entries, id=key, document=document))

    def delete_entry(self, source: str, address: str) -> None:
        key = digest(source, address)
        self._cluster.bulk(self._entries, [({"delete": {"_id": key}}, None)])

    def drop(self) -> None:
        self._cluster.drop([self._documents, self._entries])
        self._rows.forget()

    def close(self) -> None:
        self._cluster.close()

    def _pages(self, query: Mapping[str, Any], **options: Any) -> Iterator[dict[str, Any]]:
        return self._cluster.pages(self._documents, query=query, sort="doc_id", **options)

    def _aggregated(
        self, index: str, aggregation: dict[str, Any], query: dict[str, Any]
    ) -> dict[str, Any]:
        """One aggregation over these rows of an index, written a moment ago too."""
        self._cluster.refresh(index)
        answer = self._cluster.call(
            lambda c: c.search(
                index=index,
                size=0,
                query=query,
                aggs={"all": aggregation},
                allow_partial_search_results=False,  # a shard that is away is no empty one
            )
        )
        found: dict[str, Any] = answer["aggregations"]["all"]
        return found

    def _mget(self, ids: Sequence[str]) -> dict[str, Any]:
        """Realtime read of stored rows, by id."""
        hits = self._cluster.mget(self._documents, [{"_id": key} for key in ids])
        return {hit["_id"]: hit for hit in hits}


def _guard(stored: Any) -> dict[str, int]:
    """Makes a write a compare-and-set against what was read."""
    return {"if_seq_no": stored["_seq_no"], "if_primary_term": stored["_primary_term"]}


def _snapshot(document: Document) -> dict[str, Any]:
    return codec.document_to_json(document)


def _history_fields(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """What the last of these rows replaced, and what it can be found by."""
    return {
        "members": sorted({row["series"] for row in rows} - {""}),
        "replaced": rows[1]["committed_at"] if len(rows) > 1 else None,
        "history": {"rows": rows[:-1]},
    }


def _snapshots(stored: Any) -> list[dict[str, Any]]:
    """The rows that were replaced, oldest first, and the one that stands."""
    source = stored["_source"]
    return [*source["history"]["rows"], source["row"]]


def _conflict() -> Conflict:
    return Conflict("The catalog row was changed since it was read; read it again.")


def _without_repeats(documents: Sequence[Document]) -> Iterator[list[Document]]:
    """Batches in order, cut wherever a document comes again."""
    batch: list[Document] = []
    seen: set[str] = set()
    for document in documents:
        if document.doc_id in seen:
            yield batch
            batch, seen = [], set()
        batch.append(document)
        seen.add(document.doc_id)
    if batch:
        yield batch


def _replaced_after(rows: Sequence[dict[str, Any]], before: datetime) -> list[dict[str, Any]]:
    def committed_at(row: dict[str, Any]) -> datetime | None:
        at = row["committed_at"]
        return None if at is None else datetime.fromisoformat(at)

    return replaced_after(rows, before, committed_at=committed_at)
