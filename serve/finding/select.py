"""Selects among ranked candidates: a calibrated threshold, diversity, one passage a section.

All are off by default. Passages that hold an exact identifier of the question stay in front
whatever their scores, as in every stage.

MMR: Carbonell and Goldstein, "The use of MMR, diversity-based reranking for reordering documents
and producing summaries", SIGIR 1998; next = argmax λ·relevance(d) − (1 − λ)·max similarity(d, s)
over what was taken. Relevance is the score, scaled to 0..1 over the candidates that are reordered;
similarity is the cosine of the stored vectors.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import structlog
from numpy.typing import NDArray

from quarry.calibration import Calibration
from quarry.errors import QuarryError
from quarry.ports import VectorStore
from quarry.records import Candidate, StageRecord, Vector
from quarry.settings import Settings
from quarry.settings_retrieval import SelectSettings
from serve.finding.fuse import NO_LANE, lane
from serve.finding.question import Asked
from serve.stage import Drop, Run, Stopwatch, Threads, told

_log = structlog.get_logger(__name__)

SHARE = 0.3
"""Of the time that is left, for fetching vectors."""
BELOW_THRESHOLD = "below_threshold"
NOT_SCORED = "not_scored"
SAME_SECTION = "same_section"


@dataclass(frozen=True, slots=True, kw_only=True)
class Selected:
    """What goes on, best first, and what does not."""

    kept: tuple[Candidate, ...]
    dropped: tuple[Drop, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """The options of one searcher, with what they need."""

    settings: SelectSettings
    calibration: Calibration | None
    """There is one exactly if there is a threshold."""
    vectors: VectorStore
    threads: Threads
    pool: int
    """Candidates that MMR reorders."""

    @classmethod
    def of(
        cls,
        settings: Settings,
        calibration: Calibration | None,
        vectors: VectorStore,
        threads: Threads,
    ) -> Self:
        return cls(
            settings=settings.retrieval.select,
            calibration=calibration,
            vectors=vectors,
            threads=threads,
            pool=settings.reranker.depth,
        )

    @property
    def wanted(self) -> bool:
        chosen = self.settings
        return chosen.mmr is not None or chosen.threshold is not None or chosen.one_per_section


async def select(
    ranked: Sequence[Candidate], asked: Asked, selection: Selection, run: Run
) -> tuple[Selected, StageRecord]:
    """Threshold, then MMR, then one passage a section.

    A threshold without rerank scores, and MMR without vectors, are left out and named in
    `degraded`.
    """
    watch = Stopwatch("select")
    options = selection.settings
    kept, dropped = list(ranked), list[Drop]()
    detail: dict[str, Any] = {}
    if options.threshold is not None and selection.calibration is not None:
        detail["threshold"] = options.threshold
        kept, dropped = _above(kept, asked, options.threshold, selection.calibration, run)
    if options.mmr is not None:
        detail["mmr"] = options.mmr
        kept = await _diverse(kept, asked, options.mmr, selection, run)
    if options.one_per_section:
        detail["one_per_section"] = True
        kept, repeated = _one_a_section(kept, asked)
        dropped += repeated
    selected = Selected(kept=tuple(kept), dropped=tuple(dropped))
    return selected, watch.done(len(kept), **detail)


def _above(
    ranked: Sequence[Candidate],
    asked: Asked,
    threshold: float,
    calibration: Calibration,
    run: Run,
) -> tuple[list[Candidate], list[Drop]]:
    if ranked and all(c.signals.rerank_score is None for c in ranked):
        run.without("threshold")
        return list(ranked), []
    kept, dropped = list[Candidate](), list[Drop]()
    for candidate in ranked:
        score = candidate.signals.rerank_score
        exact = lane(candidate, asked) != NO_LANE
        if exact or (score is not None and calibration.probability(score) >= threshold):
            kept.append(candidate)
        else:
            dropped.append(Drop(candidate, NOT_SCORED if score is None else BELOW_THRESHOLD))
    return kept, dropped


async def _diverse(
    ranked: Sequence[Candidate], asked: Asked, weight: float, selection: Selection, run: Run
) -> list[Candidate]:
    if not ranked:
        return []
    head, tail = ranked[: selection.pool], ranked[selection.pool :]
    rows = [candidate.chunk.row_id for candidate in head]
    try:
        found = await run.deadline.within(
            selection.threads.apart(selection.vectors.fetch, rows), SHARE
        )
    except (QuarryError, TimeoutError) as error:
        run.without("mmr")
        _log.warning("mmr_left_out", **told(error))
        return list(ranked)
    order = mmr([c.score for c in head], _matrix(rows, found), weight)
    reordered = [head[position] for position in order]
    return [*sorted(reordered, key=lambda c: lane(c, asked)), *tail]


def _matrix(rows: Sequence[str], found: Mapping[str, Vector]) -> NDArray[np.float32]:
    """One row a candidate; zeros, which are like nothing, where the vector is gone."""
    dimension = len(next(iter(found.values()))) if found else 1
    zeros = np.zeros(dimension, np.float32)
    return np.array([found.get(row, zeros) for row in rows], np.float32)


def mmr(relevance: Sequence[float], vectors: NDArray[np.float32], weight: float) -> list[int]:
    """Positions in the order in which they are taken; equal ones keep their order.

    `vectors`: unit length, shape (n, dimension).
    """
    scores = np.asarray(relevance, dtype=np.float64)
    low, high = (scores.min(), scores.max()) if len(scores) else (0.0, 0.0)
    scaled = (scores - low) / (high - low) if high > low else np.zeros_like(scores)
    likeness = vectors @ vectors.T
    nearest = np.zeros(len(scores))
    left, taken = list(range(len(scores))), list[int]()
    while left:
        gains = [weight * scaled[i] - (1 - weight) * nearest[i] for i in left]
        best = left.pop(int(np.argmax(gains)))
        nearest = likeness[best] if not taken else np.maximum(nearest, likeness[best])
        taken.append(best)
    return taken


def _one_a_section(ranked: Sequence[Candidate], asked: Asked) -> tuple[list[Candidate], list[Drop]]:
    """What stands under no heading is of no section, and an exact identifier is never left out."""
    best: dict[tuple[str, tuple[str, ...]], Candidate] = {}
    kept, repeated = list[Candidate](), list[Drop]()
    for candidate in ranked:
        section = candidate.chunk.section
        first = best.setdefault((candidate.document.doc_id, section), candidate)
        if first is candidate or not section or lane(candidate, asked) != NO_LANE:
            kept.append(candidate)
        else:
            repeated.append(Drop(candidate, SAME_SECTION, beside=first.chunk.chunk_id))
    return kept, repeated
