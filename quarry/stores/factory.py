"""Opens the stores that the settings name. Vendor packages are imported here, when needed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial

from quarry.errors import MissingExtra
from quarry.ports import Catalog, Registry, TextStore, VectorStore
from quarry.settings import Settings


def utc_now() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True)
class Stores:
    """The three stores of one generation."""

    catalog: Catalog
    text: TextStore
    vectors: VectorStore
    retention: timedelta = timedelta(0)
    """How long rows of replaced revisions are kept."""
    clock: Callable[[], datetime] = utc_now
    """Stamps commits."""
    retain_deleted: bool = False
    """Whether that holds for deleted documents too."""
    dimension: int = 0
    """Of the vectors of a live generation; 0: not known."""

    def ensure(self, dimension: int) -> None:
        """Creates what is missing; does nothing if it is there."""
        self.catalog.ensure()
        self.text.ensure()
        self.vectors.ensure(dimension)

    def need(self) -> None:
        """Raises StoreLost if text rows or vectors are gone as a whole, whatever they held."""
        self.text.scan(limit=1)
        self.vectors.present([""])

    def close(self) -> None:
        self.catalog.close()
        self.text.close()
        self.vectors.close()


def open_registry(settings: Settings) -> Registry:
    """Raises MissingExtra, StoreError."""
    kind = settings.stores.text
    if kind == "memory":
        from quarry.stores.memory import MemoryRegistry

        return MemoryRegistry()
    if kind == "sqlite":
        from quarry.stores.sqlite import open_database
        from quarry.stores.sqlite_registry import SqliteRegistry

        return SqliteRegistry(open_database(settings.data_dir))
    _need_elasticsearch()
    from quarry.stores.elasticsearch.registry import ElasticsearchRegistry

    return ElasticsearchRegistry(settings.stores.elasticsearch)


def open_stores(settings: Settings, generation: str) -> Stores:
    """Opens the stores of a generation, without creating it.

    Memory stores are new and empty each time. Vectors of Milvus Lite are reached through their
    owner (`quarry.stores.milvus_lite.vector_server`). Raises MissingExtra, StoreError.
    """
    retention = timedelta(days=settings.stores.retention_days)
    catalog, text = open_texts(settings, generation)
    return Stores(
        catalog,
        text,
        _open_vectors(settings, generation),
        retention,
        retain_deleted=settings.stores.retain_deleted,
    )


def open_catalog(settings: Settings, generation: str) -> Catalog:
    """The catalog alone, for who lists documents. Raises as open_stores."""
    return open_texts(settings, generation)[0]


def open_texts(settings: Settings, generation: str) -> tuple[Catalog, TextStore]:
    """The catalog and the text rows, for who needs no vectors. Raises as open_stores."""
    retention = timedelta(days=settings.stores.retention_days)
    kind = settings.stores.text
    if kind == "memory":
        from quarry.stores.memory import MemoryCatalog, MemoryTextStore

        return MemoryCatalog(retention=retention), MemoryTextStore()
    if kind == "sqlite":
        from quarry.stores.sqlite import open_database
        from quarry.stores.sqlite_catalog import SqliteCatalog
        from quarry.stores.sqlite_text import SqliteTextStore

        database = open_database(settings.data_dir)
        return (
            SqliteCatalog(database, generation, retention=retention),
            SqliteTextStore(database, generation),
        )
    _need_elasticsearch()
    from quarry.stores.elasticsearch.catalog import ElasticsearchCatalog
    from quarry.stores.elasticsearch.client import Cluster
    from quarry.stores.elasticsearch.text import ElasticsearchText

    cluster = Cluster(settings.stores.elasticsearch)
    return (
        ElasticsearchCatalog(cluster, generation, retention=retention),
        ElasticsearchText(cluster, generation),
    )


def _open_vectors(settings: Settings, generation: str) -> VectorStore:
    if settings.stores.vectors == "memory":
        from quarry.stores.memory import MemoryVectorStore

        return MemoryVectorStore()
    from quarry.stores.milvus import MilvusVectorStore
    from quarry.stores.milvus_lite import server_address

    milvus = settings.stores.milvus
    if milvus.uri:
        return MilvusVectorStore(milvus, generation)
    return MilvusVectorStore(milvus, generation, address=partial(server_address, settings))


def _need_elasticsearch() -> None:
    try:
        import elasticsearch  # noqa: F401
    except ImportError as error:
        raise MissingExtra("elasticsearch", "elasticsearch") from error
