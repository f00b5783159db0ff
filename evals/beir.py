"""`quarry eval beir FOLDER`: index a collection in a data folder of its own, then score it.

Ingest and search are passed in, since applications never import each other.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from pathlib import Path
from typing import TypeAlias

from evals.datasets.beir import load_beir
from evals.improving.seen import fingerprint, notes
from evals.running.collection import MODES, BeirReport, Progress, Search, run_beir
from evals.running.own_index import own_index
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

    asked = {fingerprint(text) for text in dataset.queries.values()}
    return replace(asyncio.run(run()), notes=notes([settings], asked))


def eval_settings(settings: Settings, folder: Path) -> Settings:
    """The same models and search over an index that only this collection is in."""
    public = {"default": SourceSettings(default_acl=(PUBLIC,))}
    return own_index(settings, [folder], sources=public)
