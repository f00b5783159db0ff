"""Closed mappings: a field not named here is refused, and metadata is one flattened field."""

from __future__ import annotations

from typing import Any

from quarry.settings_stores import ElasticsearchSettings

KEYWORD = {"type": "keyword"}
FILTERED = {"type": "keyword", "doc_values": False}
"""Only ever looked for: no columns of it are written, which sorting and counting would need."""
PAYLOAD = {"type": "object", "enabled": False}
"""Kept in _source and given back, never indexed."""

LABELS: dict[str, Any] = {
    "source": FILTERED,
    "tenant": FILTERED,
    "acl": FILTERED,
    "series": FILTERED,
    "version_key": FILTERED,
    "status": FILTERED,
    "effective": {"type": "integer"},  # yyyymmdd
    "metadata": {"type": "flattened"},
}

CHUNKS: dict[str, Any] = {
    **LABELS,
    "row_id": KEYWORD,  # _id cannot be sorted by
    "doc_id": KEYWORD,
    "revision": FILTERED,
    "ordinal": {"type": "integer"},
    "text_hash": FILTERED,
    "identifiers": FILTERED,
    # Terms come from quarry.text.analyze, joined by spaces: one analysis for every store.
    "terms": {"type": "text", "analyzer": "whitespace", "index_options": "freqs"},
    "chunk": PAYLOAD,
}

DOCUMENTS: dict[str, Any] = {
    "doc_id": KEYWORD,
    "source": KEYWORD,
    "address": KEYWORD,
    "state": KEYWORD,
    "series": KEYWORD,
    "live": {"type": "boolean"},
    "members": KEYWORD,  # every series that a snapshot of the history names
    "replaced": {"type": "date"},  # when the oldest snapshot of the history was
    "commit": KEYWORD,
    "row": PAYLOAD,
    "history": PAYLOAD,
}

ENTRIES: dict[str, Any] = {
    "key": KEYWORD,
    "source": KEYWORD,
    "entry": PAYLOAD,
}

REGISTRY: dict[str, Any] = {"live": KEYWORD, "mark": KEYWORD, "generations": PAYLOAD}


def body(
    properties: dict[str, Any], settings: ElasticsearchSettings, *, shards: int = 1
) -> dict[str, Any]:
    """Arguments of `indices.create`."""
    return {
        "mappings": {"dynamic": "strict", "properties": properties},
        "settings": {
            "number_of_shards": shards,
            "number_of_replicas": settings.replicas,
            # Writers publish by an explicit refresh before a commit; this is only a backstop.
            "refresh_interval": "30s",
        },
    }
