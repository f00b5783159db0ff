"""`quarry eval DATASET`: a question set asked of one or more systems, compared and held to a gate.

Systems are passed in as contexts that open them, one after the other, so that two models never
have to fit in memory together.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TypeAlias

from evals.compare import Comparison, compare
from evals.datasets.questions import Case
from evals.gate import Check, Gate, check_gate
from evals.measuring.results import CaseResult
from evals.measuring.retrieval import Depths, alike
from evals.reporting.reports import Report, Run
from evals.running.observe import Variant
from evals.running.run import Judge, Plan, Progress, run_set
from evals.running.standing import Standing
from evals.running.system import System, ann_recall

OpenSystem: TypeAlias = Callable[[], AbstractContextManager[System]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Contestant:
    """One system and the ways in which it is asked."""

    label: str
    settings: str
    """What decides its answers, in a line."""
    open: OpenSystem
    variants: Mapping[str, Variant]
    """By what is added to the label; one with an empty name is the only one."""
    depths: Depths
    """What its own settings send and rerank."""
    judge: Judge | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    repeats: int = 1
    exact: bool = False
    """Whether approximate search is held against exact search."""
    gate: Gate | None = None
    baseline: tuple[str, Sequence[CaseResult]] | None = None
    """An earlier run, which the runs are compared with in place of the first one."""
    progress: Progress | None = None
    notes: Sequence[str] = ()
    """What a reader of the report must know."""


def evaluate(
    sets: Sequence[str],
    cases: Sequence[Case],
    contestants: Sequence[Contestant],
    options: Options,
) -> Report:
    """Runs everything and reports it. Raises what opening a system raises, and UsageError for a
    gate that does not fit the set."""
    runs: list[Run] = []
    outdated: list[Mapping[str, Sequence[str]]] = []
    notes = list(options.notes)
    depths = alike([contestant.depths for contestant in contestants])
    for contestant, each in zip(contestants, depths, strict=True):
        with contestant.open() as system:
            standing = Standing.of(system, cases)
            runs += asyncio.run(_runs(contestant, each, system, cases, options, standing))
        outdated.append(standing.outdated)
        notes += standing.notes
    report = Report(
        sets=sets,
        created=datetime.now(UTC),
        depths=depths[-1],
        runs=runs,
        comparisons=_comparisons(runs, options),
        notes=list(dict.fromkeys((*notes, *_said(cases, outdated)))),
        outdated={case: phrases for each in outdated for case, phrases in each.items()},
    )
    return replace(report, checks=_checks(report, options.gate)) if options.gate else report


async def _runs(
    contestant: Contestant,
    depths: Depths,
    system: System,
    cases: Sequence[Case],
    options: Options,
    standing: Standing,
) -> list[Run]:
    runs = []
    for name, variant in contestant.variants.items():
        began = time.monotonic()
        plan = Plan(
            depths=depths,
            variant=variant,
            repeats=options.repeats,
            outdated=standing.outdated.keys(),
            judge=contestant.judge,
            more=await ann_recall(cases, system, variant) if options.exact else {},
        )
        if system.inside is not None:
            plan = replace(plan, unreadable=system.inside.unreadable)
        results = await run_set(cases, system.ask, plan, options.progress)
        label = " ".join(part for part in (contestant.label, name) if part)
        run = Run.of(
            label,
            results,
            settings=contestant.settings,
            seconds=time.monotonic() - began,
            unread=standing.unread,
        )
        runs.append(run)
    return runs


def _comparisons(runs: Sequence[Run], options: Options) -> list[Comparison]:
    if options.baseline:
        return [compare(options.baseline, (run.label, run.results)) for run in runs]
    first, *others = runs
    return [compare((first.label, first.results), (run.label, run.results)) for run in others]


def _checks(report: Report, gate: Gate) -> list[Check]:
    """The gate holds for the last run: the one that is to take the place of the others."""
    run = report.runs[-1]
    return check_gate(
        gate,
        whole=run.whole,
        slices=run.slices,
        results=run.by_id,
        comparison=report.comparisons[-1] if report.comparisons else None,
    )


def _said(cases: Sequence[Case], outdated: Sequence[Mapping[str, Sequence[str]]]) -> list[str]:
    """`outdated` by contestant."""
    held_out = sum(case.held_out for case in cases)
    notes = []
    if held_out:
        notes.append(
            f"{held_out} of {len(cases)} cases are held out: settings must not be tuned on them, "
            "and figures over all cases mix both halves (see the slices)."
        )
    anywhere = list(dict.fromkeys(case for each in outdated for case in each))
    everywhere = [case for case in anywhere if all(case in each for each in outdated)]
    somewhere = [case for case in anywhere if case not in everywhere]
    if everywhere:
        notes.append(
            f"Outdated and in no figure: {len(everywhere)} of the cases; write them anew: "
            f"{', '.join(everywhere)}."
        )
    if somewhere:
        notes.append(
            "Outdated in the index of some of the runs, so in their figures and in comparisons "
            f"with them these do not count: {', '.join(somewhere)}."
        )
    return notes
