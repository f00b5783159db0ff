"""Asks every case of a set and scores what comes back."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import TypeAlias

from evals.datasets.questions import Case
from evals.measuring.results import CaseResult
from evals.measuring.retrieval import Depths, judged, measure
from evals.measuring.scoring import Score, score
from evals.running.observe import Ask, Observed, Variant, observe

Unreadable: TypeAlias = Callable[[Case, Collection[str]], Collection[str]]
"""Those of these documents that the asker of a case may not read."""
Judge: TypeAlias = Callable[[Case, Observed], Awaitable[Mapping[str, float]]]
"""Further figures of one answer, such as those of a judge model; 0 where a failure ended it."""
Progress: TypeAlias = Callable[[int, int], None]
"""Called with the questions done and the questions in all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """How a set is asked and what it is checked against."""

    depths: Depths
    variant: Variant = field(default_factory=Variant)
    repeats: int = 1
    outdated: Collection[str] = frozenset()
    """Cases whose evidence is in no live document."""
    unreadable: Unreadable = lambda _case, _documents: ()
    judge: Judge | None = None
    more: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """Figures by case that were measured beside the run, such as ANN recall."""


async def run_set(
    cases: Sequence[Case], ask: Ask, plan: Plan, progress: Progress | None = None
) -> list[CaseResult]:
    """One result a case, in order. A case that fails is kept with its error; the run goes on."""
    tries: list[list[Observed]] = [[] for _ in cases]
    done, total = 0, len(cases) * plan.repeats
    for _ in range(plan.repeats):
        for position, case in enumerate(cases):
            tries[position].append(await observe(case, ask, plan.variant, plan.depths.deepest))
            done += 1
            if progress:
                progress(done, total)
            await asyncio.sleep(0)  # lets a progress display draw when a system never waits
    return [await _result(case, seen, plan) for case, seen in zip(cases, tries, strict=True)]


async def _result(case: Case, tries: Sequence[Observed], plan: Plan) -> CaseResult:
    ranked = [judged(case, seen.passages) for seen in tries] if case.judged else []
    retrieval = measure({str(n): each for n, each in enumerate(ranked)}, plan.depths.all)
    found = [each.found for each in ranked] or [()] * len(tries)
    scores = [_score(case, seen, ranks, plan) for seen, ranks in zip(tries, found, strict=True)]
    columns = [*retrieval.values(), *(scored.measures for scored in scores)]
    if plan.judge:
        columns += [dict(await plan.judge(case, seen)) for seen in tries]
    return CaseResult(
        case=case,
        passed=all(scored.passed for scored in scores),
        flaky=len({scored.passed for scored in scores}) > 1,
        outdated=case.id in plan.outdated,
        reasons=_all(scored.reasons for scored in scores),
        leaks=_all(scored.leaks for scored in scores),
        error=next((seen.error for seen in tries if seen.error), ""),
        empty=case.judged and any(not seen.passages and not seen.error for seen in tries),
        degraded=_all(seen.degraded for seen in tries),
        status=tries[0].status,
        answer=tries[0].answer,
        found=tuple(found[0]),
        measures=_mean(columns) | dict(plan.more.get(case.id, {})),
        search_ms=fmean(seen.search_ms for seen in tries),
        answer_ms=fmean(seen.answer_ms for seen in tries),
        prompt_tokens=fmean(seen.prompt_tokens for seen in tries),
        completion_tokens=fmean(seen.completion_tokens for seen in tries),
    )


def _score(case: Case, seen: Observed, found: Sequence[int | None], plan: Plan) -> Score:
    shown = {passage.doc_id for passage in seen.passages}
    shown |= {citation.doc_id for citation in seen.citations}
    unreadable = plan.unreadable(case, shown)
    return score(
        case,
        seen,
        sent=plan.depths.sent,
        found=found,
        unreadable=unreadable,
        answers=plan.variant.answers,
    )


def _all(parts: Iterable[Iterable[str]]) -> tuple[str, ...]:
    """What is in any of the repeats, once each."""
    return tuple(dict.fromkeys(each for part in parts for each in part))


def _mean(columns: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """The mean of each figure over the repeats that have it."""
    names = dict.fromkeys(name for column in columns for name in column)
    return {name: fmean(c[name] for c in columns if name in c) for name in names}
