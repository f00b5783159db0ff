"""One generation as readers see it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from quarry.ports import Catalog, TextStore, VectorStore
from quarry.settings import Settings
from quarry.stores.factory import Stores, utc_now


def impatient(settings: Settings) -> Settings:
    """The settings with which stores are opened for questions.

    An ingest waits for a store that is away; a question does without it (`serve.store_s`).
    """
    most, stores = settings.serve.store_s, settings.stores
    limited = {
        name: store.model_copy(
            update={
                "timeout_s": min(store.timeout_s, most),
                "total_s": min(store.total_s, most),
            }
        )
        for name, store in (("elasticsearch", stores.elasticsearch), ("milvus", stores.milvus))
    }
    return settings.model_copy(update={"stores": stores.model_copy(update=limited)})


@dataclass(frozen=True, slots=True, kw_only=True)
class Index:
    """The three stores of the live generation, and its name."""

    generation: str
    catalog: Catalog
    text: TextStore
    vectors: VectorStore
    retention: timedelta = timedelta(0)
    """How far back searches may go."""
    clock: Callable[[], datetime] = utc_now

    @classmethod
    def of(cls, generation: str, stores: Stores) -> Index:
        return cls(
            generation=generation,
            catalog=stores.catalog,
            text=stores.text,
            vectors=stores.vectors,
            retention=stores.retention,
            clock=stores.clock,
        )
