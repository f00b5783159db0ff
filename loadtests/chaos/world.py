"""What all processes of a run share: its folder, its settings, and how its stores are opened."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from multiprocessing.context import ForkServerContext
from pathlib import Path

from loadtests.chaos.pages import SOURCE
from quarry.entries import mark
from quarry.settings import Settings
from quarry.stores.factory import Stores, open_stores

GENERATION = "g1"
DIMENSION = 64
"""Of the fake embedder."""


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """Small, frozen, and safe to send to the processes of a run."""

    folder: Path
    settings: Settings
    seed: int
    documents: int

    @property
    def names(self) -> list[str]:
        return [f"d{number:02d}" for number in range(self.documents)]

    @property
    def journals(self) -> Path:
        return self.folder / "journals"

    def stores(self) -> Stores:
        return open_stores(self.settings, GENERATION)

    @property
    def patient(self) -> World:
        """The same with long time limits, for what must succeed once all is healed."""
        limits = {"timeout_s": 30.0, "total_s": 120.0}
        stores = self.settings.stores
        stores = stores.model_copy(
            update={
                "elasticsearch": stores.elasticsearch.model_copy(update=limits),
                "milvus": stores.milvus.model_copy(update=limits),
            }
        )
        return replace(self, settings=self.settings.model_copy(update={"stores": stores}))

    # Processes are told to end by files, which a kill -9 cannot lock or tear.

    def tell(self, word: str) -> None:
        (self.folder / word).touch()

    def told(self, word: str) -> bool:
        return (self.folder / word).exists()


def prepare(stores: Stores) -> None:
    """Makes the stores, for writers that are runs without an end: they write no entries."""
    stores.ensure(DIMENSION)
    stores.catalog.put_entry(mark(SOURCE, unfinished=True))


def settings_of(
    folder: Path, *, elasticsearch: str, milvus: str, timeout_s: float, total_s: float
) -> Settings:
    """Short time limits, so that an outage becomes an error soon."""
    limits = {"timeout_s": timeout_s, "total_s": total_s}
    return Settings.model_validate(
        {
            "profile": "cluster",
            "data_dir": str(folder),
            "stores": {
                "text": "elasticsearch",
                "elasticsearch": {"url": elasticsearch, "replicas": 0, **limits},
                "milvus": {"uri": milvus, **limits},
            },
            "embedder": {"model": "fake"},
            "reranker": {"kind": "none"},
            "generator": {"kind": "fake"},
        }
    )


def fork_context(modules: Sequence[str]) -> ForkServerContext:
    """Processes are forked from one that has imported everything and opened nothing.

    Importing takes seconds, and writers are started again all the time.
    """
    # Both are read when a library is first used; gRPC and forks do not go together.
    os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    context = multiprocessing.get_context("forkserver")
    stores = ("elasticsearch.catalog", "elasticsearch.text", "milvus")
    context.set_forkserver_preload([*modules, *(f"quarry.stores.{name}" for name in stores)])
    return context
