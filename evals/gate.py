"""Gates: figures that a run must reach, written in YAML, so that a change can be stopped.

minimum: {pass_rate: 0.9, all_evidence@5: 0.85}
maximum: {answered_unanswerable: 0, answer_ms_p95: 2000}
leaks: 0
failed: 0
no_lost: [hard, "kind: forbidden"]      # no case of these slices passes before and fails now
slices:
  hard: {minimum: {pass_rate: 1.0}}
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from evals.compare import Comparison
from evals.datasets.questions import first_error
from evals.measuring.results import CaseResult, Figures
from quarry.errors import UsageError
from quarry.settings_file import read_yaml

EVERYTHING = "all"
"""Named in `no_lost`: every case."""


class Limits(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    minimum: dict[str, float] = Field(default_factory=dict)
    maximum: dict[str, float] = Field(default_factory=dict)


class Gate(Limits):
    """What must hold; a count is the most that is let through."""

    leaks: int = Field(0, ge=0)
    failed: int = Field(0, ge=0)
    outdated: int | None = Field(None, ge=0)
    no_lost: tuple[str, ...] = ()
    slices: dict[str, Limits] = Field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One demand of a gate and what the run has."""

    what: str
    demand: str
    has: str
    passed: bool


def load_gate(path: Path) -> Gate:
    """Raises ConfigError for a file that is not YAML, UsageError for one that is no gate."""
    if not path.is_file():
        raise UsageError(f"There is no gate at {path}; check the path.")
    try:
        return Gate.model_validate(read_yaml(path))
    except ValidationError as error:
        raise UsageError(f"{path}: {first_error(error)}.") from error


def check_before(
    gate: Gate,
    *,
    figures: Collection[str],
    slices: Mapping[str, Collection[str]],
    compared: Collection[str] | None,
    inside: bool,
) -> None:
    """Raises UsageError for what a run could never show, before anything is asked: a figure that is
    not among those it may have, a slice that no case is in or of which no case is compared, and
    leaks or outdated cases where nobody can look (`inside` is False).

    `slices` are given with the ids of their cases; `compared` is None without anything to compare.
    """
    for name in (*gate.slices, *gate.no_lost):
        _known(name, slices)
    everything = {case for members in slices.values() for case in members}
    for name in gate.no_lost:
        _comparable(name, everything if name == EVERYTHING else slices[name], compared)
    for name, limits in {"": gate, **gate.slices}.items():
        for figure in (*limits.minimum, *limits.maximum):
            if figure not in figures:
                raise _no_figure(name, figure, figures)
    if not inside and (gate.outdated is not None or "leaks" in gate.model_fields_set):
        raise UsageError(
            "Over HTTP nobody can look whether cases are outdated or documents leak; take leaks "
            "and outdated out of the gate, or leave out --url."
        )


def check_gate(
    gate: Gate,
    *,
    whole: Figures,
    slices: Mapping[str, Figures],
    results: Mapping[str, CaseResult],
    comparison: Comparison | None,
    inside: bool = True,
) -> list[Check]:
    """Every demand with its outcome.

    Raises UsageError for a slice that no case has, a figure that the run does not have, or
    `no_lost` without anything to compare with: a gate that checks nothing must not pass. Where
    nobody could look who may read what (`inside` is False), leaks are those that answers tell.
    """
    checks = list(_limits("", gate, whole))
    for name, limits in gate.slices.items():
        _known(name, slices)
        checks += _limits(name, limits, whole if name == EVERYTHING else slices[name])
    checks += [
        _most("leaks" if inside else "leaks that answers tell", gate.leaks, whole.leaks),
        _most("failed", gate.failed, whole.failed),
    ]
    if gate.outdated is not None:
        checks.append(_most("outdated", gate.outdated, whole.outdated))
    for name in gate.no_lost:
        _known(name, slices)
        if comparison is None:
            raise _nothing_to_compare()
        members = {case for case, each in results.items() if name in (EVERYTHING, *each.slices)}
        checks.append(_no_lost(name, members, comparison))
    return checks


def _limits(slice_name: str, limits: Limits, figures: Figures) -> Iterator[Check]:
    place = f"{slice_name}: " if slice_name else ""
    for sign, wanted in (("≥", limits.minimum), ("≤", limits.maximum)):
        for name, limit in wanted.items():
            has = figures.measures.get(name)
            if has is None:
                raise _no_figure(slice_name, name, figures.measures)
            yield Check(
                what=place + name,
                demand=f"{sign} {limit:g}",
                has=f"{has:.4g}",
                # Means of many cases end in rounding errors; 0.9 is 0.9.
                passed=has >= limit - 1e-9 if sign == "≥" else has <= limit + 1e-9,
            )


def _no_figure(slice_name: str, name: str, known: Collection[str]) -> UsageError:
    place = f"{slice_name}: " if slice_name else ""
    return UsageError(
        f"The gate asks for {place}{name}, which this run does not have; it has "
        f"{', '.join(sorted(known))}."
    )


def _most(what: str, limit: int, has: int) -> Check:
    return Check(what=what, demand=f"≤ {limit}", has=str(has), passed=has <= limit)


def _known(name: str, slices: Collection[str]) -> None:
    if name != EVERYTHING and name not in slices:
        raise UsageError(
            f"The gate names the slice '{name}', which no case is in; there are "
            f"{', '.join([EVERYTHING, *slices])}."
        )


def _nothing_to_compare() -> UsageError:
    return UsageError(
        "The gate has no_lost, which needs something to compare with: give two --config, or "
        "--baseline FILE."
    )


def _comparable(name: str, members: Collection[str], compared: Collection[str] | None) -> None:
    if compared is None:
        raise _nothing_to_compare()
    if not any(case in members for case in compared):
        raise UsageError(
            f"The gate has no_lost: [{name}], of which no case can be compared; compare with a run "
            "over the same set."
        )


def _no_lost(name: str, members: Collection[str], comparison: Comparison) -> Check:
    """A case that passed and is outdated now is lost as well: what it asks for is gone."""
    _comparable(name, members, (*comparison.compared, *comparison.outdated))
    lost = [case for case in comparison.lost if case in members]
    lost += [f"{case} (outdated now)" for case in comparison.outdated if case in members]
    return Check(
        what=f"{name}: lost cases",
        demand="none",
        has=", ".join(lost) or "none",
        passed=not lost,
    )
