"""Searches settings on the tuning half of a set and reports the best ones on the held-out half.

The held-out half is asked of two settings only: those that are in force and those that won. What is
reported there was therefore not picked for being high there.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from statistics import fmean
from typing import Any, TypeAlias

import yaml
from pydantic import ValidationError

from evals.compare import Comparison, compare
from evals.datasets.questions import Case, first_error
from evals.evaluate import OpenSystem
from evals.measuring.results import CaseResult
from evals.measuring.retrieval import Depths, alike
from evals.running.observe import Variant
from evals.running.run import Plan, run_set
from quarry.errors import UsageError
from quarry.ids import digest
from quarry.settings import Settings

MOST = 64
"""Settings that are tried in one call."""
SEARCH = Variant(answers=False)
LOWER_IS_BETTER = ("search_ms",)
"""Figures to bring down; of all others of a search more is better."""

Opening: TypeAlias = Callable[[Settings], OpenSystem]
Tried: TypeAlias = Callable[["Trial", int, int], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """One combination of values, and what it reached on the tuning half."""

    changed: Mapping[str, Any]
    """By dotted name; empty for the settings in force."""
    settings: Settings
    value: float = 0.0

    @property
    def label(self) -> str:
        changes = (f"{name}={value}" for name, value in self.changed.items())
        return ", ".join(changes) or "as it is"


@dataclass(frozen=True, slots=True, kw_only=True)
class Tuned:
    measure: str
    tuning: int
    """Cases of the tuning half."""
    trials: Sequence[Trial]
    """The settings in force first."""
    best: Trial
    """The first of those with the best value."""
    held_out: Comparison
    """The best against those in force, on the held-out half."""
    split_by_id: bool
    """No case was marked as held out, so that half of them were picked by their ids."""


def tune(
    cases: Sequence[Case],
    trials: Sequence[Trial],
    opening: Opening,
    *,
    measure: str,
    tried: Tried | None = None,
) -> Tuned:
    """Raises UsageError for a half without judged cases or a figure that cannot be tuned for."""
    tuning, held_out, split = halves([case for case in cases if case.judged])
    depths = alike([_depths(trial.settings) for trial in trials])
    ask = [_Asking(t.settings, each, opening) for t, each in zip(trials, depths, strict=True)]
    done: list[Trial] = []
    for number, trial in enumerate(trials, start=1):
        value = _value(ask[number - 1](tuning), measure)
        done.append(replace(trial, value=value))
        if tried:
            tried(done[-1], number, len(trials))
    best = max(range(len(done)), key=lambda number: _goodness(measure, done[number].value))
    pair = [(done[number].label, ask[number](held_out)) for number in (0, best)]
    return Tuned(
        measure=measure,
        tuning=len(tuning),
        trials=done,
        best=done[best],
        held_out=compare(*pair),
        split_by_id=split,
    )


def halves(cases: Sequence[Case]) -> tuple[list[Case], list[Case], bool]:
    """The tuning half, the held-out half, and whether ids decided. Raises UsageError."""
    held_out = [case for case in cases if case.held_out]
    by_id = not held_out
    if by_id:
        held_out = [case for case in cases if int(digest(case.id, size=2), 16) % 2]
    kept = {case.id for case in held_out}
    tuning = [case for case in cases if case.id not in kept]
    if not tuning or not held_out:
        raise UsageError("The set is too small to be halved; tuning needs cases to hold out.")
    return tuning, held_out, by_id


def grid(settings: Settings, choices: Mapping[str, Sequence[Any]]) -> list[Trial]:
    """Every combination, the settings in force first. Raises UsageError for a name or value that
    is none, and for more than `MOST` of them."""
    made = [Trial(changed={}, settings=settings)]
    for values in product(*choices.values()):
        changed = dict(zip(choices, values, strict=True))
        trial = Trial(changed=changed, settings=changed_settings(settings, changed))
        if trial.settings != settings:
            made.append(trial)
    if len(made) > MOST:
        raise UsageError(f"These are {len(made)} settings to try; {MOST} are the most at once.")
    return made


def parse_choices(texts: Sequence[str]) -> dict[str, list[Any]]:
    """`retrieval.rrf_k=20,60`, values as in YAML. Raises UsageError."""
    choices: dict[str, list[Any]] = {}
    for text in texts:
        name, sign, values = text.partition("=")
        if not (sign and name and values):
            raise UsageError(f"'{text}' is not NAME=VALUE,VALUE, such as retrieval.rrf_k=20,60.")
        choices[name.strip()] = [yaml.safe_load(value) for value in values.split(",")]
    return choices


def changed_settings(settings: Settings, changed: Mapping[str, Any]) -> Settings:
    """The settings with some of their values replaced, and checked. Raises UsageError."""
    raw = settings.model_dump()
    for name, value in changed.items():
        *sections, key = name.split(".")
        inner: Any = raw
        for section in sections:
            inner = inner.get(section) if isinstance(inner, dict) else None
        if not isinstance(inner, dict) or key not in inner or isinstance(inner[key], dict):
            raise UsageError(f"There is no setting '{name}'; docs/configuration.md lists all.")
        inner[key] = value
    try:
        return Settings.model_validate(raw)
    except ValidationError as error:
        raise UsageError(f"These settings do not hold: {first_error(error)}.") from error


def as_yaml(changed: Mapping[str, Any]) -> str:
    """The changed values as they stand in a settings file."""
    nested: dict[str, Any] = {}
    for name, value in changed.items():
        *sections, key = name.split(".")
        inner = nested
        for section in sections:
            inner = inner.setdefault(section, {})
        inner[key] = value
    return str(yaml.safe_dump(nested, sort_keys=False))


def rows(tuned: Tuned) -> Iterator[tuple[str, str]]:
    """Label and value of each trial, best first."""
    for trial in sorted(tuned.trials, key=lambda each: -_goodness(tuned.measure, each.value)):
        yield trial.label, f"{trial.value:.3f}"


def _depths(settings: Settings) -> Depths:
    return Depths(sent=settings.retrieval.evidence_chunks, reranked=settings.reranker.depth)


@dataclass(frozen=True, slots=True)
class _Asking:
    """A set asked of one trial, at the depths of all of them: else a figure at the depth of one
    would not exist in another."""

    settings: Settings
    depths: Depths
    opening: Opening

    def __call__(self, cases: Sequence[Case]) -> list[CaseResult]:
        plan = Plan(depths=self.depths, variant=SEARCH)
        with self.opening(self.settings)() as system:
            return asyncio.run(run_set(cases, system.ask, plan))


def _goodness(measure: str, value: float) -> float:
    return -value if measure in LOWER_IS_BETTER else value


def _value(results: Sequence[CaseResult], measure: str) -> float:
    """The mean over the cases, as comparisons have it."""
    well = [result for result in results if not result.error]
    if measure in LOWER_IS_BETTER and well:
        return fmean(getattr(result, measure) for result in well)
    values = [result.measures[measure] for result in results if measure in result.measures]
    if not values:
        names = dict.fromkeys(name for result in results for name in result.measures)
        raise UsageError(
            f"'{measure}' is nothing to tune for; use one of "
            f"{', '.join((*names, *LOWER_IS_BETTER))}."
        )
    return fmean(values)
