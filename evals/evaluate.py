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
from evals.measuring.retrieval import Depths
from evals.reporting.reports import Report, Run
from evals.running.observe import Variant
from evals.running.run import Judge, Plan, Progress, run_set
from evals.running.system import System, ann_recall

OpenSystem: TypeAlias = Callable[[], AbstractContextManager[System]]

FROM_OUTSIDE = (
    "Asked over HTTP: nobody looked whether cases are outdated, or whether what was shown may be "
    "read by who asked."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Contestant:
    """One system and the ways in which it is asked."""

    label: str
    settings: str
    """What decides its answers, in a line."""
    open: OpenSystem
    variants: Mapping[str, Variant]
    """By what is added to the label; one with an empty name is the only one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    depths: Depths
    repeats: int = 1
    exact: bool = False
    """Whether approximate search is held against exact search."""
    judge: Judge | None = None
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
    outdated: dict[str, list[str]] = {}
    notes = list(options.notes)
    for contestant in contestants:
        with contestant.open() as system:
            if system.inside is None:
                notes.append(FROM_OUTSIDE)
            else:
                outdated |= system.inside.corpus.outdated(cases)
            runs += asyncio.run(_runs(contestant, system, cases, options, outdated))
    report = Report(
        sets=sets,
        created=datetime.now(UTC),
        depths=options.depths,
        runs=runs,
        comparisons=_comparisons(runs, options),
        notes=list(dict.fromkeys((*notes, *_said(cases, outdated)))),
        outdated=outdated,
    )
    return replace(report, checks=_checks(report, options.gate)) if options.gate else report


async def _runs(
    contestant: Contestant,
    system: System,
    cases: Sequence[Case],
    options: Options,
    outdated: Mapping[str, Sequence[str]],
) -> list[Run]:
    runs = []
    for name, variant in contestant.variants.items():
        began = time.monotonic()
        plan = Plan(
            depths=options.depths,
            variant=variant,
            repeats=options.repeats,
            outdated=outdated.keys(),
            judge=options.judge,
            more=await ann_recall(cases, system, variant) if options.exact else {},
        )
        if system.inside is not None:
            plan = replace(plan, unreadable=system.inside.unreadable)
        results = await run_set(cases, system.ask, plan, options.progress)
        label = " ".join(part for part in (contestant.label, name) if part)
        seconds = time.monotonic() - began
        runs.append(Run.of(label, results, settings=contestant.settings, seconds=seconds))
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


def _said(cases: Sequence[Case], outdated: Mapping[str, Sequence[str]]) -> list[str]:
    held_out = sum(case.held_out for case in cases)
    notes = []
    if held_out:
        notes.append(
            f"{held_out} of {len(cases)} cases are held out: settings must not be tuned on them, "
            "and figures over all cases mix both halves (see the slices)."
        )
    if outdated:
        notes.append(
            f"Outdated and in no figure: {len(outdated)} of the cases; write them anew: "
            f"{', '.join(outdated)}."
        )
    return notes
