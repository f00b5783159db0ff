"""A Milvus server keeps the contract of a vector store."""

from __future__ import annotations

import numpy as np
import pytest

from quarry.access.filters import ReadableBy
from quarry.settings_stores import MilvusSettings
from quarry.stores.milvus import MilvusVectorStore
from tests.contract.rows import DIMENSION, labels, vector_row
from tests.servers.contract.milvus_server import MilvusServerContract


class TestMilvusServer(MilvusServerContract):
    pass


@pytest.mark.parametrize("flushed", [False, True])
def test_a_search_reaches_k_though_hardly_any_row_matches(
    flushed: bool, milvus_settings: MilvusSettings
) -> None:
    """Rows that are not flushed are searched by a coarse index, which alone finds two of ten."""
    rng = np.random.default_rng(1)
    vectors = rng.normal(size=(8000, DIMENSION)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    few = range(0, len(vectors), 400)
    store = MilvusVectorStore(milvus_settings, "few")
    try:
        store.ensure(DIMENSION)
        store.upsert(
            [
                vector_row(
                    f"r{n:05d}", row, row_labels=labels(acl=("board" if n in few else "staff",))
                )
                for n, row in enumerate(vectors)
            ]
        )
        if flushed:
            store.flush()
        assert store.count() == len(vectors)
        for question in vectors[:5]:
            hits = store.search(question, limit=10, where=ReadableBy(("board",)))
            best = sorted(few, key=lambda n: -float(vectors[n] @ question))[:10]
            assert [hit.row_id.partition(".")[0] for hit in hits] == [f"r{n:05d}" for n in best]
    finally:
        store.drop()
        store.close()
