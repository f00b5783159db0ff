"""Whether one run is better than another over the same cases, or whether nobody can tell.

Every comparison is paired by case. Intervals are paired bootstrap percentiles (Efron and
Tibshirani, "An Introduction to the Bootstrap", 1993, chapter 13); the sign test is the exact
binomial test on the cases that changed (Dixon and Mood 1946).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from evals.measuring.results import CaseResult

LEVEL = 0.05
"""A difference that chance gives less often than this counts as one."""
RESAMPLES = 5000
FEWEST_FLIPS = 6
"""Fewer cases that all change in one direction are never enough for the sign test at LEVEL."""
COSTS = ("search_ms", "answer_ms", "prompt_tokens", "completion_tokens")
"""Compared beside quality."""
_SPREADS = 1.96 + 0.84
"""Standard errors that a difference must have to be seen at LEVEL four times out of five."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One figure in both runs, over the cases that have it in both."""

    cases: int
    first: float
    second: float
    low: float
    """Of second - first: the 95 % interval."""
    high: float
    better: int
    """Cases in which the second run has the higher value."""
    worse: int
    p: float
    """Sign test, two-sided."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    first: str
    second: str
    cases: int
    gained: tuple[str, ...]
    """Ids that fail in the first run and pass in the second."""
    lost: tuple[str, ...]
    differences: Mapping[str, Difference]
    sentence: str
    """Whether the second run is better, in plain words."""


def compare(
    first: tuple[str, Sequence[CaseResult]], second: tuple[str, Sequence[CaseResult]]
) -> Comparison:
    """The second run against the first; a case that is outdated in either is left out."""
    ours = {result.case.id: result for result in first[1] if not result.outdated}
    pairs = [
        (ours[result.case.id], result)
        for result in second[1]
        if not result.outdated and result.case.id in ours
    ]
    gained = tuple(b.case.id for a, b in pairs if b.passed and not a.passed)
    lost = tuple(b.case.id for a, b in pairs if a.passed and not b.passed)
    passes = [(float(a.passed), float(b.passed)) for a, b in pairs]
    differences = {"pass": difference(passes)} if pairs else {}
    names = dict.fromkeys(name for _, b in pairs for name in b.measures)
    for name in names:
        both = [
            (a.measures[name], b.measures[name])
            for a, b in pairs
            if name in a.measures and name in b.measures
        ]
        if both:
            differences[name] = difference(both)
    differences |= _costs(pairs)
    return Comparison(
        first=first[0],
        second=second[0],
        cases=len(pairs),
        gained=gained,
        lost=lost,
        differences=differences,
        sentence=verdict(second[0], passes),
    )


def _costs(pairs: Sequence[tuple[CaseResult, CaseResult]]) -> dict[str, Difference]:
    """Times and tokens of the cases that failed in neither run; lower is better here."""
    well = [(a, b) for a, b in pairs if not a.error and not b.error]
    columns = {name: [(getattr(a, name), getattr(b, name)) for a, b in well] for name in COSTS}
    return {
        name: difference(both)
        for name, both in columns.items()
        if any(one or other for one, other in both)
    }


def difference(pairs: Sequence[tuple[float, float]]) -> Difference:
    values = np.array(pairs, dtype=np.float64)
    change = values[:, 1] - values[:, 0]
    low, high = interval(change)
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


def interval(change: np.ndarray[tuple[int], np.dtype[np.float64]]) -> tuple[float, float]:
    """The 95 % interval of the mean of paired differences; the same one for the same numbers."""
    from scipy.stats import bootstrap

    mean = float(change.mean())
    if len(change) < 2 or bool((change == change[0]).all()):
        return mean, mean
    found = bootstrap(
        (change,),
        np.mean,
        n_resamples=RESAMPLES,
        batch=500,
        method="percentile",
        rng=np.random.default_rng(0),
    )
    return float(found.confidence_interval.low), float(found.confidence_interval.high)


def sign_test(better: int, worse: int) -> float:
    """How often chance alone gives changes that are as one-sided, in either direction."""
    from scipy.stats import binomtest

    if better + worse == 0:
        return 1.0
    return float(binomtest(better, better + worse).pvalue)


def verdict(second: str, passes: Sequence[tuple[float, float]]) -> str:
    """A sentence on whether the set is big enough to tell that `second` is better or worse."""
    better = sum(b > a for a, b in passes)
    worse = sum(b < a for a, b in passes)
    total, changed = len(passes), better + worse
    if not total:
        return "The two runs share no case, so nothing can be compared."
    if not changed:
        return (
            f"None of the {total} cases changed sides; this set would show a difference only if at "
            f"least {FEWEST_FLIPS} did."
        )
    p = sign_test(better, worse)
    counts = f"{better} of {total} cases gained and {worse} lost (sign test p = {p:.3f})"
    if p < LEVEL:
        word = "better" if better > worse else "worse"
        return f"{second} is {word}: {counts}, which chance alone seldom gives."
    return f"This set cannot tell: {counts}. {_needed(passes, better - worse)}"


def _needed(passes: Sequence[tuple[float, float]], net: int) -> str:
    change = np.array([b - a for a, b in passes])
    spread, total = float(change.std()), len(change)
    least = _SPREADS * spread / total**0.5
    text = f"It shows a difference of about {least * 100:.0f} points in the pass rate or more"
    if not net:
        return f"{text}; here there is none."
    cases = int(np.ceil((_SPREADS * spread / abs(net / total)) ** 2))
    return f"{text}; for this one about {max(cases, total + 1)} cases like these are needed."
