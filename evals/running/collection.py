"""Runs a collection through an injected search and scores what comes back.

The search is whatever the caller passes: the engine in this process or a client of a server.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import structlog

from evals.datasets.beir import BeirDataset
from evals.measuring.metrics import BEIR_MEASURES, Run, mean
from quarry.errors import QuarryError, UsageError
from quarry.ids import RECORD_SUFFIXES
from quarry.records import Candidate, Mode, Principal, SearchRequest, SearchResult

log = structlog.get_logger(__name__)

Search: TypeAlias = Callable[[SearchRequest], Awaitable[SearchResult]]
Progress: TypeAlias = Callable[[str, int, int], None]
"""Called with the mode, the questions done and the questions in all."""

MODES = ("lexical", "dense", "hybrid", "hybrid+rerank")
_REQUESTS = {
    "lexical": (Mode.LEXICAL, False),
    "dense": (Mode.DENSE, False),
    "hybrid": (Mode.HYBRID, False),
    "hybrid+rerank": (Mode.HYBRID, True),
}

_SUFFIXES = "|".join(map(re.escape, sorted(RECORD_SUFFIXES)))
_RECORD = re.compile(rf"(?:{_SUFFIXES})#(?=.)", re.IGNORECASE | re.DOTALL)

CHUNKS_A_DOCUMENT = 4
"""Chunks asked for in place of one document: a document counts once, at its best chunk."""
DEADLINE_S = 600.0
"""Quality is measured, not speed: no stage is skipped for want of time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModeFigures:
    """Means over all judged questions; failed and empty ones are in them as 0."""

    measures: dict[str, float]
    queries: int
    failed: int
    empty: int
    degraded: int
    """Questions that were answered without one of their stages."""
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class BeirReport:
    dataset: str
    depth: int
    """Documents a question was judged on."""
    modes: dict[str, ModeFigures]
    runs: dict[str, Run] = field(default_factory=dict)
    """Document ids by mode and question, for whoever wants to look at single questions."""
    notes: Sequence[str] = ()
    """What a reader must know, such as that weights were learned from these questions."""

    def as_json(self) -> dict[str, object]:
        """The shape of `quarry eval beir --json`, described in docs/api.md."""
        return {
            "dataset": self.dataset,
            "depth": self.depth,
            "modes": {
                mode: {
                    **figures.measures,
                    "queries": figures.queries,
                    "failed": figures.failed,
                    "empty": figures.empty,
                    "degraded": figures.degraded,
                    "seconds": round(figures.seconds, 1),
                }
                for mode, figures in self.modes.items()
            },
            "notes": list(self.notes),
        }


async def run_beir(
    dataset: BeirDataset,
    search: Search,
    *,
    modes: Sequence[str] = MODES,
    depth: int = 100,
    progress: Progress | None = None,
) -> BeirReport:
    """Asks every judged question in every mode and scores the first `depth` documents.

    A question that fails is counted and worth 0; the run goes on. Raises UsageError for a mode
    that is none of `MODES`.
    """
    unknown = [mode for mode in modes if mode not in _REQUESTS]
    if unknown:
        raise UsageError(f"There is no mode '{unknown[0]}'; use some of {', '.join(MODES)}.")
    figures: dict[str, ModeFigures] = {}
    runs: dict[str, Run] = {}
    for mode in modes:
        figures[mode], runs[mode] = await _run_mode(dataset, search, mode, depth, progress)
    return BeirReport(dataset=dataset.name, depth=depth, modes=figures, runs=runs)


async def _run_mode(
    dataset: BeirDataset, search: Search, mode: str, depth: int, progress: Progress | None
) -> tuple[ModeFigures, Run]:
    begun = time.monotonic()
    run: dict[str, list[str]] = {}
    failed = degraded = 0
    for done, (query_id, text) in enumerate(dataset.queries.items(), start=1):
        try:
            result = await search(_request(mode, text, depth))
        except QuarryError as error:
            failed += 1
            log.warning("question_failed", query=query_id, mode=mode, error=error.code)
        else:
            degraded += bool(result.degraded)
            run[query_id] = best_documents(result.candidates)[:depth]
        if progress:
            progress(mode, done, len(dataset.queries))
        await asyncio.sleep(0)  # lets a progress display draw when the search never waits
    figures = ModeFigures(
        measures={measure: mean(measure, dataset.qrels, run) for measure in BEIR_MEASURES},
        queries=len(dataset.queries),
        failed=failed,
        empty=sum(not documents for documents in run.values()),
        degraded=degraded,
        seconds=time.monotonic() - begun,
    )
    return figures, run


def _request(mode: str, question: str, depth: int) -> SearchRequest:
    legs, rerank = _REQUESTS[mode]
    return SearchRequest(
        question=question,
        principal=Principal(),
        mode=legs,
        top_k=depth * CHUNKS_A_DOCUMENT,
        rerank=rerank,
        deadline_s=DEADLINE_S,
    )


def best_documents(candidates: Iterable[Candidate]) -> list[str]:
    """Names of the documents in the order of their best chunks, each once."""
    return list(dict.fromkeys(record_name(candidate.document.uri) for candidate in candidates))


def record_name(uri: str) -> str:
    """The record in `ADDRESS#RECORD`; the whole uri for a document that is a file of its own.

    Names of files and of records may have a `#` of their own, so it is the one after a suffix that
    files of records have.
    """
    found = _RECORD.search(uri)
    return uri[found.end() :] if found else uri
