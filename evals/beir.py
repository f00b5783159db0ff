"""`quarry eval beir FOLDER`: index a collection in a data folder of its own, then score it.

Ingest and search are passed in, since applications never import each other.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import TypeAlias

from evals.datasets.beir import load_beir
from evals.runner import MODES, BeirReport, Progress, Search, run_beir
from quarry.ids import digest
from quarry.records import PUBLIC
from quarry.settings import Settings, SourceSettings

Ingest: TypeAlias = Callable[[Settings, Path], object]
"""Brings the index of these settings up to date with one file; reads nothing if nothing changed."""
OpenSearch: TypeAlias = Callable[[Settings], AbstractAsyncContextManager[Search]]
"""The search over the index of these settings, closed on leaving."""


def evaluate_beir(
    folder: Path,
    *,
    settings: Settings,
    ingest: Ingest,
    open_search: OpenSearch,
    modes: Sequence[str] = MODES,
    progress: Progress | None = None,
) -> BeirReport:
    """Scores every mode on a BEIR folder; the index of the caller's settings is not touched.

    The collection's index is kept in `data_dir/evals`, so that a second run only searches. Raises
    SourceNotFound or UsageError if the folder does not hold a collection.
    """
    dataset = load_beir(folder)
    own = eval_settings(settings, folder)
    ingest(own, dataset.corpus)

    async def run() -> BeirReport:
        async with open_search(own) as search:
            return await run_beir(dataset, search, modes=modes, progress=progress)

    return asyncio.run(run())


def eval_settings(settings: Settings, folder: Path) -> Settings:
    """The same models and search over an index that only this collection is in.

    Where it is depends on what decides the index: collection, embedder and chunking.
    """
    home = folder.resolve()
    parts = settings.embedder.model_dump_json(), settings.chunking.model_dump_json()
    name = f"{home.name}-{digest(str(home), *parts, size=4)}"
    stores = settings.stores
    elasticsearch = stores.elasticsearch.model_copy(
        update={"index_prefix": f"{stores.elasticsearch.index_prefix}-eval-{name}".lower()}
    )
    milvus = stores.milvus.model_copy(
        update={"collection_prefix": f"{stores.milvus.collection_prefix}_eval_{name[-8:]}"}
    )
    return settings.model_copy(
        update={
            "data_dir": settings.data_dir / "evals" / name,
            "sources": {"default": SourceSettings(default_acl=(PUBLIC,))},
            "stores": stores.model_copy(update={"elasticsearch": elasticsearch, "milvus": milvus}),
        }
    )
