"""A small Milvus collection with label fields, for tests of filters."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

TEXTS = ("source", "tenant", "series", "version_key", "status")


@contextmanager
def filled_collection(
    uri: str, rows: Mapping[str, Mapping[str, Any]]
) -> Iterator[Callable[[str], set[str]]]:
    """Gives a function from an expression to the ids that match it."""
    from pymilvus import DataType, MilvusClient

    client = MilvusClient(uri)
    name = f"filters_{uuid.uuid4().hex[:8]}"
    schema = client.create_schema(auto_id=False, enable_dynamic_field=False)
    schema.add_field("row_id", DataType.VARCHAR, max_length=64, is_primary=True)
    schema.add_field("vector", DataType.FLOAT_VECTOR, dim=2)
    for field in TEXTS:
        schema.add_field(field, DataType.VARCHAR, max_length=1024)
    schema.add_field("effective", DataType.INT64)
    for field in ("acl", "metadata"):
        schema.add_field(field, DataType.JSON)
    params = client.prepare_index_params()
    params.add_index("vector", index_type="FLAT", metric_type="IP")
    client.create_collection(name, schema=schema, index_params=params, consistency_level="Strong")
    try:
        stored = [{"row_id": row, "vector": [1, 0], **fields} for row, fields in rows.items()]
        client.insert(name, stored[: len(stored) // 2])
        client.flush(name)  # half of the rows lie in a sealed segment, half are fresh
        client.insert(name, stored[len(stored) // 2 :])
        client.load_collection(name)

        def find(expression: str) -> set[str]:
            found = client.query(name, filter=expression, output_fields=["row_id"], limit=len(rows))
            return {row["row_id"] for row in found}

        yield find
    finally:
        client.drop_collection(name)
        client.close()
