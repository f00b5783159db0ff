"""The sources of an answer: all that may be read, where that is wanted and fits, or the best."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from quarry.models import estimate
from quarry.records import Candidate, StageRecord
from quarry.settings import Settings
from serve.answering.counting import dependable
from serve.answering.everything import choose_everything
from serve.answering.evidence import Budget, Chosen, around_of, choose
from serve.answering.prompt import limits_of, overhead_tokens, room_for_sources
from serve.finding.question import Asked
from serve.index import Index
from serve.models import CountTokens
from serve.stage import Run, Threads

NO_SOURCE_FITS = "evidence"
"""In `degraded`: something was found, and the generator's context has no room for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What the sources of one searcher are read and counted with."""

    index: Index
    threads: Threads
    count_tokens: CountTokens
    settings: Settings


async def choose_sources(
    ranked: Sequence[Candidate], asked: Asked, reading: Reading, run: Run
) -> tuple[Chosen, StageRecord]:
    """Raises QuestionError where the question leaves no room for an answer."""
    budget = await _budget(asked, reading, run)
    options = reading.settings.retrieval.select
    if options.long_context:
        everything = await choose_everything(
            ranked, asked, index=reading.index, threads=reading.threads, budget=budget, run=run
        )
        if everything is not None:
            return everything
    around = around_of(reading.index.text, reading.threads, run)
    chosen, record = await choose(ranked, budget=budget, around=around, widen=options.widen)
    if ranked and not chosen.evidence:
        run.without(NO_SOURCE_FITS)
    return chosen, record


async def _budget(asked: Asked, reading: Reading, run: Run) -> Budget:
    count = dependable(reading.count_tokens, estimate.tokens, run.deadline)
    used = await overhead_tokens(asked.question, count)
    return Budget(
        sources=min(asked.top_k, reading.settings.retrieval.evidence_chunks),
        tokens=room_for_sources(limits_of(reading.settings.generator), used),
        count=count,
    )
