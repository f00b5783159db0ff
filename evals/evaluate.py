"""`quarry eval DATASET`: a question set asked of one or more systems, compared and held to a gate.

Systems are passed in as contexts that open them, one after the other, so that two models never
have to fit in memory together.
"""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import TypeAlias

from evals.compare import Comparison, compare
from evals.datasets.questions import Case
from evals.gate import Check, Gate, check_before, check_gate
from evals.measuring.names import figure_names
from evals.measuring.results import CaseResult
from evals.measuring.retrieval import Depths, alike
from evals.reporting.baseline import Baseline
from evals.reporting.report import Asking, Report, Run
from evals.running.observe import Observed, Variant
from evals.running.run import Judge, Plan, Progress, run_set
from evals.running.standing import Standing
from evals.running.system import System, ann_recall
from quarry.errors import QuarryError, UsageError

OpenSystem: TypeAlias = Callable[[], AbstractContextManager[System]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Contestant:
    """One system and the ways in which it is asked."""

    label: str
    """Unlike that of any other."""
    settings: str
    """What decides its answers, in a line."""
    open: OpenSystem
    variants: Mapping[str, Variant]
    """By what is added to the label; one with an empty name is the only one."""
    depths: Depths
    """What its own settings send and rerank."""
    judge: Judge | None = None
    inside: bool = True
    """Whether the index is in this process, so that one can look into it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    repeats: int = 1
    exact: bool = False
    """Whether approximate search is held against exact search."""
    gate: Gate | None = None
    baseline: Baseline | None = None
    """An earlier run, which the runs are compared with in place of the first one."""
    progress: Progress | None = None
    notes: Sequence[str] = ()
    """What a reader of the report must know."""


@dataclass(slots=True, kw_only=True)
class _Done:
    """What there is so far; a failure does not take it away."""

    runs: list[Run] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    outdated: list[Mapping[str, Sequence[str]]] = field(default_factory=list)
    """By contestant."""
    failure: QuarryError | None = None


def evaluate(
    sets: Sequence[str],
    cases: Sequence[Case],
    contestants: Sequence[Contestant],
    options: Options,
) -> Report:
    """Runs everything and reports it.

    Raises UsageError for what does not fit together, and what opening the first system raises. A
    later failure ends the work, and is in the report of what was done before it.
    """
    depths = alike([contestant.depths for contestant in contestants])
    contestants = [replace(c, depths=d) for c, d in zip(contestants, depths, strict=True)]
    _check_before(cases, contestants, options)
    done = _Done(notes=[*options.notes, *(options.baseline.notes if options.baseline else ())])
    for contestant in contestants:
        try:
            _ask(contestant, cases, options, done)
        except QuarryError as error:
            if not done.runs:
                raise
            done.failure = error
        if done.failure:
            break
    report = Report(
        sets=sets,
        created=datetime.now(UTC),
        runs=done.runs,
        comparisons=_comparisons(done.runs, options),
        notes=list(dict.fromkeys((*done.notes, *_said(cases, done.outdated)))),
        outdated={case: phrases for each in done.outdated for case, phrases in each.items()},
        failure=done.failure,
    )
    return _gated(report, options.gate)


def _check_before(
    cases: Sequence[Case], contestants: Sequence[Contestant], options: Options
) -> None:
    """Raises UsageError for all that can be known to fail before anything is asked."""
    if options.exact and not all(each.inside for each in contestants):
        raise UsageError("--exact looks into the index; leave it out, or leave out --url.")
    runs = [(each, variant) for each in contestants for variant in each.variants.values()]
    if options.baseline:
        for each, variant in runs:
            options.baseline.check_alike(_asking(each, variant, options))
    if options.gate:
        last, variant = runs[-1]
        check_before(
            options.gate,
            figures=figure_names(
                last.depths,
                answers=variant.answers,
                judge=last.judge is not None,
                exact=options.exact,
                inside=last.inside,
            ),
            slices=members(cases),
            compared=_to_compare(cases, len(runs), options.baseline),
            inside=last.inside,
        )


def members(cases: Sequence[Case]) -> dict[str, set[str]]:
    """Ids of the cases of every slice."""
    found: dict[str, set[str]] = defaultdict(set)
    for case in cases:
        for name in CaseResult(case=case, passed=False).slices:
            found[name].add(case.id)
    return found


def _to_compare(cases: Sequence[Case], runs: int, baseline: Baseline | None) -> set[str] | None:
    """Ids of the cases that will be compared, if none of them is outdated; None: with nothing."""
    if baseline:
        return {result.case.id for result in baseline.results if not result.outdated}
    return {case.id for case in cases} if runs > 1 else None


def _asking(contestant: Contestant, variant: Variant, options: Options) -> Asking:
    return Asking(depths=contestant.depths, repeats=options.repeats, answers=variant.answers)


def _ask(contestant: Contestant, cases: Sequence[Case], options: Options, done: _Done) -> None:
    """Adds the runs of one system, each as soon as it is finished."""
    with contestant.open() as system:
        standing = Standing.of(system, cases)
        done.notes += standing.notes
        done.outdated.append(standing.outdated)
        for name, variant in contestant.variants.items():
            label = " ".join(part for part in (contestant.label, name) if part)
            turn = _Turn(replace(contestant, label=label), variant, system, standing)
            done.runs.append(asyncio.run(_run(turn, cases, options, done)))
            if done.failure:
                return


@dataclass(frozen=True, slots=True)
class _Turn:
    """One way to ask one system that is open."""

    contestant: Contestant
    variant: Variant
    system: System
    standing: Standing


async def _run(turn: _Turn, cases: Sequence[Case], options: Options, done: _Done) -> Run:
    """One run; exact search and the judge may fail, and what was answered is kept."""
    began = time.monotonic()
    contestant, variant, system = turn.contestant, turn.variant, turn.system
    judging = _Judging(contestant.judge) if contestant.judge else None
    plan = Plan(
        depths=contestant.depths,
        variant=variant,
        repeats=options.repeats,
        outdated=turn.standing.outdated.keys(),
        judge=judging,
        more=await _exact(cases, system, variant, done) if options.exact else {},
    )
    if system.inside is not None:
        plan = replace(plan, unreadable=system.inside.unreadable)
    results = await run_set(cases, system.ask, plan, options.progress)
    if judging and judging.failure:
        done.failure = judging.failure
        done.notes.append("The judge failed on the way: its figures are of the cases before.")
    if results and all(each.error for each in results):
        done.failure = QuarryError(
            f"No question got a reply, the first for {results[0].error}; the lines above say why."
        )
    return Run.of(
        contestant.label,
        results,
        _asking(contestant, variant, options),
        settings=contestant.settings,
        seconds=time.monotonic() - began,
        unread=turn.standing.unread,
    )


class _Judging:
    """A judge whose failure is kept in place of raised; nobody asks it again."""

    def __init__(self, judge: Judge) -> None:
        self.failure: QuarryError | None = None
        self._judge = judge

    async def __call__(self, case: Case, observed: Observed) -> Mapping[str, float]:
        if self.failure:
            return {}
        try:
            return await self._judge(case, observed)
        except QuarryError as error:
            self.failure = error
            return {}


async def _exact(
    cases: Sequence[Case], system: System, variant: Variant, done: _Done
) -> Mapping[str, Mapping[str, float]]:
    try:
        return await ann_recall(cases, system, variant)
    except QuarryError as error:
        done.failure = error
        return {}


def _comparisons(runs: Sequence[Run], options: Options) -> list[Comparison]:
    if options.baseline:
        before = (options.baseline.label, options.baseline.results)
        return [compare(before, (run.label, run.results)) for run in runs]
    first, *others = runs
    return [compare((first.label, first.results), (run.label, run.results)) for run in others]


def _gated(report: Report, gate: Gate | None) -> Report:
    """The gate holds for the last run: the one that is to take the place of the others. It is not
    checked on half of the work."""
    if gate is None or report.failure:
        return report
    try:
        return replace(report, checks=_checks(report, gate))
    except UsageError as error:
        return replace(report, failure=error)


def _checks(report: Report, gate: Gate) -> list[Check]:
    run = report.runs[-1]
    return check_gate(
        gate,
        whole=run.whole,
        slices=run.slices,
        results=run.by_id,
        comparison=report.comparisons[-1] if report.comparisons else None,
        inside=run.inside,
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
