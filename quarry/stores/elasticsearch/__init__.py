"""Elasticsearch 9: text rows with BM25, the catalog and the registry of a cluster.

    client.py     connection, total time limits, per-item bulk, translation of vendor errors
    mappings.py   closed mappings of the four indices of a generation, and of the registry
    text.py       TextStore
    catalog.py    Catalog (compare-and-set by sequence number)
    registry.py   Registry (one document)

Nothing here needs scripts, `_delete_by_query` or ingest pipelines.
"""
