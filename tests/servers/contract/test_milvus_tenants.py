"""A Milvus server keeps the contract of a vector store with a partition for some tenants each."""

from __future__ import annotations

from typing import ClassVar

from tests.servers.contract.milvus_server import MilvusServerContract


class TestTenants(MilvusServerContract):
    index: ClassVar = {"tenant_partitions": 4}
