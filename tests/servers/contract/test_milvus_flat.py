"""A Milvus server keeps the contract of a vector store with exact search."""

from __future__ import annotations

from typing import ClassVar

from tests.servers.contract.milvus_server import MilvusServerContract


class TestFlat(MilvusServerContract):
    index: ClassVar = {"index": "FLAT"}
