"""One generation as readers see it."""

from __future__ import annotations

from dataclasses import dataclass

from quarry.ports import Catalog, TextStore, VectorStore
from quarry.stores.factory import Stores


@dataclass(frozen=True, slots=True, kw_only=True)
class Index:
    """The three stores of the live generation, and its name."""

    generation: str
    catalog: Catalog
    text: TextStore
    vectors: VectorStore

    @classmethod
    def of(cls, generation: str, stores: Stores) -> Index:
        return cls(
            generation=generation,
            catalog=stores.catalog,
            text=stores.text,
            vectors=stores.vectors,
        )
