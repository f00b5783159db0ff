"""The way to Milvus broken at every step of every scenario."""

from __future__ import annotations

from tests.servers.faults.broken import MILVUS
from tests.servers.faults.cut import CutContract


class TestCutMilvus(CutContract):
    store = MILVUS
