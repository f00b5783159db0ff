"""Whether one run is better than another over the same cases, or whether nobody can tell.

Every comparison is paired by case; how sure one can be is in `evals.measuring.significance`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from evals.measuring.results import CaseResult
from evals.measuring.significance import (
    FEWEST_FLIPS,
    FEWEST_PAIRS,
    LEVEL,
    MOST_CASES,
    cases_needed,
    detectable,
    interval,
    sign_test,
)

COST_FIELDS = ("search_ms", "answer_ms", "prompt_tokens", "completion_tokens")
"""Of a result; compared beside quality."""
SAME = 1e-9
"""Values that differ by less are equal: means end in rounding errors."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One figure in both runs, over the cases that have it in both."""

    cases: int
    first: float
    second: float
    low: float | None
    """Of second - first: the 95 % interval; None for too few cases."""
    high: float | None
    better: int
    """Cases in which the second run has the higher value."""
    worse: int
    p: float
    """Sign test, two-sided."""

    @property
    def tells(self) -> bool:
        """Whether the interval leaves out 0."""
        return self.low is not None and self.high is not None and not self.low <= 0 <= self.high

    def span(self, places: int = 3) -> str:
        """The interval as it is shown."""
        if self.low is None or self.high is None:
            return f"none below {FEWEST_PAIRS} cases"
        return f"{self.low:+.{places}f} … {self.high:+.{places}f}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    first: str
    second: str
    cases: int
    compared: tuple[str, ...]
    """Their ids: cases that both runs have and neither holds outdated."""
    gained: tuple[str, ...]
    """Ids that fail in the first run and pass in the second."""
    lost: tuple[str, ...]
    outdated: tuple[str, ...]
    """Ids that pass in the first run and are outdated in the second; not among the compared."""
    differences: Mapping[str, Difference]
    sentence: str
    """Whether the second run is better, in plain words."""


def compare(
    first: tuple[str, Sequence[CaseResult]], second: tuple[str, Sequence[CaseResult]]
) -> Comparison:
    """The second run against the first; a case that is outdated in either is left out."""
    before = {result.case.id: result for result in first[1] if not result.outdated}
    both = [(before[each.case.id], each) for each in second[1] if each.case.id in before]
    pairs = [(a, b) for a, b in both if not b.outdated]
    passes = [(float(a.passed), float(b.passed)) for a, b in pairs]
    return Comparison(
        first=first[0],
        second=second[0],
        cases=len(pairs),
        compared=tuple(b.case.id for _, b in pairs),
        gained=tuple(b.case.id for a, b in pairs if b.passed and not a.passed),
        lost=tuple(b.case.id for a, b in pairs if a.passed and not b.passed),
        outdated=tuple(b.case.id for a, b in both if a.passed and b.outdated),
        differences=_differences(pairs, passes),
        sentence=verdict(second[0], passes),
    )


def _differences(
    pairs: Sequence[tuple[CaseResult, CaseResult]], passes: Sequence[tuple[float, float]]
) -> dict[str, Difference]:
    """Whether cases pass, every figure that some case has in both runs, and costs."""
    columns: dict[str, list[tuple[float, float]]] = {"pass": list(passes)}
    for name in dict.fromkeys(name for _, b in pairs for name in b.measures):
        columns[name] = [
            (a.measures[name], b.measures[name])
            for a, b in pairs
            if name in a.measures and name in b.measures
        ]
    columns |= _costs(pairs)
    return {name: difference(both) for name, both in columns.items() if both}


def _costs(
    pairs: Sequence[tuple[CaseResult, CaseResult]],
) -> dict[str, list[tuple[float, float]]]:
    """Times and tokens of the cases that failed in neither run; lower is better here."""
    well = [(a, b) for a, b in pairs if not a.error and not b.error]
    columns = {
        name: [(getattr(a, name), getattr(b, name)) for a, b in well] for name in COST_FIELDS
    }
    return {name: both for name, both in columns.items() if any(map(any, both))}


def difference(pairs: Sequence[tuple[float, float]]) -> Difference:
    """Of at least one pair."""
    values = np.array(pairs, dtype=np.float64)
    change = values[:, 1] - values[:, 0]
    change[np.abs(change) < SAME] = 0.0
    low, high = interval(change) or (None, None)
    better, worse = int((change > 0).sum()), int((change < 0).sum())
    return Difference(
        cases=len(pairs),
        first=float(values[:, 0].mean()),
        second=float(values[:, 1].mean()),
        low=low,
        high=high,
        better=better,
        worse=worse,
        p=sign_test(better, worse),
    )


def verdict(second: str, passes: Sequence[tuple[float, float]]) -> str:
    """A sentence on whether the set is big enough to tell that `second` is better or worse."""
    better = sum(b > a for a, b in passes)
    worse = sum(b < a for a, b in passes)
    total = len(passes)
    if not total:
        return "The two runs share no case, so nothing can be compared."
    if not better + worse:
        return f"None of the {total} cases changed sides; {_would_show(total)}."
    p = sign_test(better, worse)
    counts = f"{better} of {total} cases gained and {worse} lost (sign test p = {p:.3f})"
    if p < LEVEL:
        word = "better" if better > worse else "worse"
        return f"{second} is {word}: {counts}, which chance alone seldom gives."
    reach = _reach(total, min(better, worse))
    return f"This set cannot tell: {counts}. {reach}; {_needed(better, worse, total)}."


def _would_show(total: int) -> str:
    if total < FEWEST_FLIPS:
        return f"so few can show no difference, for which at least {FEWEST_FLIPS} must"
    return f"this set would show a difference only if at least {FEWEST_FLIPS} did"


def _reach(total: int, against: int) -> str:
    least = detectable(total, against)
    other_way = f" while {against} change the other way" if against else ""
    if least is None:
        return f"{total} cases are too few to show any difference{other_way}"
    points = round(100 * least / total, 1)
    return f"It shows a difference of {points:g} points in the pass rate or more{other_way}"


def _needed(better: int, worse: int, total: int) -> str:
    if better == worse:
        return "here there is none"
    cases = cases_needed(better, worse, total)
    number = f"more than {MOST_CASES}" if cases is None else f"about {cases}"
    return f"for this one {number} cases like these are needed"
