"""Settings of the stores."""

from __future__ import annotations

from pathlib import Path
from typing import Literal, Self
from urllib.parse import urlsplit

from pydantic import Field, SecretStr, field_validator, model_validator

from quarry.settings_file import Section


class ElasticsearchSettings(Section):
    url: str = Field("http://127.0.0.1:9200", description="Address of the cluster.")
    api_key: SecretStr | None = Field(None, description="API key; better given by environment.")
    ca_certs: Path | None = Field(
        None, description="PEM file of the CA that signed its certificate; unset: the public ones."
    )
    index_prefix: str = Field("quarry", description="First part of every index name.")
    shards: int = Field(1, ge=1, description="Primary shards of the chunk index.")
    replicas: int = Field(1, ge=0, description="Replicas of every index.")
    timeout_s: float = Field(10.0, gt=0, description="Seconds for one request.")
    total_s: float = Field(60.0, gt=0, description="Seconds for one call, retries included.")
    known_rows: int = Field(
        20_000,
        ge=1,
        description="Rows of each index that a process keeps in memory, some 2 KB each; every read "
        "asks whether they are unchanged.",
    )

    @field_validator("url")
    @classmethod
    def _is_an_address(cls, url: str) -> str:
        if not url.startswith(("http://", "https://")):
            raise ValueError("it must begin with http:// or https://")
        if not _has_host_and_port(url):
            raise ValueError("it needs a host and a port, such as http://127.0.0.1:9200")
        return url

    @model_validator(mode="after")
    def _trusts_what_it_asks(self) -> Self:
        if self.ca_certs and not self.url.startswith("https://"):
            raise ValueError("ca_certs needs a url that begins with https://")
        return self


class MilvusSettings(Section):
    uri: str = Field("", description="Address of a Milvus server; empty: Milvus Lite in data_dir.")
    token: SecretStr | None = Field(None, description="`user:password` or API key.")
    ca_certs: Path | None = Field(
        None, description="PEM file of the CA that signed its certificate; unset: the public ones."
    )
    collection_prefix: str = Field("quarry", description="First part of every collection name.")
    index: Literal["FLAT", "HNSW"] = Field("HNSW", description="Index on a server; Lite uses FLAT.")
    hnsw_m: int = Field(16, ge=4, le=64, description="HNSW: links a node.")
    hnsw_ef_construction: int = Field(200, ge=8, description="HNSW: build effort.")
    search_ef: int = Field(256, ge=8, description="HNSW: search effort, at least top_k.")
    tenant_partitions: int = Field(
        0,
        ge=0,
        le=1024,
        description="Partitions of a server by tenant; read when a collection is made. 0: none.",
    )
    timeout_s: float = Field(10.0, gt=0, description="Seconds for one request.")
    total_s: float = Field(60.0, gt=0, description="Seconds for one call, retries included.")

    @model_validator(mode="after")
    def _trusts_what_it_asks(self) -> Self:
        if self.ca_certs and not self.uri.startswith("https://"):
            raise ValueError("ca_certs needs a uri that begins with https://")
        return self


class StoreSettings(Section):
    text: Literal["sqlite", "elasticsearch", "memory"] = Field(
        "sqlite", description="Store of text rows, BM25 and the catalog."
    )
    vectors: Literal["milvus", "memory"] = Field("milvus", description="Store of vectors.")
    elasticsearch: ElasticsearchSettings = ElasticsearchSettings()
    milvus: MilvusSettings = MilvusSettings()
    retention_days: float = Field(
        0.0,
        ge=0,
        le=36_500,
        description="Days that replaced revisions stay readable with --as-of; 0: none.",
    )
    retain_deleted: bool = Field(
        False,
        description="Whether deleted documents stay readable with --as-of as long; false: gone.",
    )


def stores_anchored(stores: StoreSettings, base: Path) -> StoreSettings:
    """Its files made absolute against the folder of the settings file."""
    elasticsearch, milvus = stores.elasticsearch, stores.milvus
    return stores.model_copy(
        update={
            "elasticsearch": elasticsearch.model_copy(
                update={"ca_certs": _absolute(elasticsearch.ca_certs, base)}
            ),
            "milvus": milvus.model_copy(update={"ca_certs": _absolute(milvus.ca_certs, base)}),
        }
    )


def _absolute(path: Path | None, base: Path) -> Path | None:
    return base / path.expanduser() if path else None


def _has_host_and_port(url: str) -> bool:
    """https has a port of its own; http has none that Elasticsearch would listen on."""
    try:
        parts = urlsplit(url)
        return bool(parts.hostname) and (parts.scheme == "https" or parts.port is not None)
    except ValueError:
        return False
