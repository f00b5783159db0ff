"""How sure one can be of a difference between two runs over the same cases.

Intervals are paired bootstrap percentiles (Efron and Tibshirani, "An Introduction to the
Bootstrap", 1993, chapter 13); the sign test is the exact binomial test on the cases that changed
(Dixon and Mood 1946). What a set can show, and how many cases would be needed, follow from the same
test, so that they never contradict it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

LEVEL = 0.05
"""A difference that chance gives less often than this counts as one."""
POWER = 0.8
"""How often a set of the needed size shows a difference that is there."""
RESAMPLES = 5000
FEWEST_PAIRS = 10
"""Fewer differences have no interval: resampling so few gives one that is far too narrow."""
FEWEST_FLIPS = 6
"""Fewer cases that all change in one direction are never enough for the sign test at LEVEL."""
MOST_CASES = 1_000_000
"""Sets that are bigger than this are not looked at: nobody writes them."""


def interval(change: NDArray[np.float64]) -> tuple[float, float] | None:
    """The 95 % interval of the mean of paired differences, the same one for the same numbers; None
    for fewer than `FEWEST_PAIRS`."""
    from scipy.stats import bootstrap

    if len(change) < FEWEST_PAIRS:
        return None
    if bool((change == change[0]).all()):
        return float(change[0]), float(change[0])
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


def detectable(total: int, against: int) -> int | None:
    """The least net change, in cases, that the sign test tells in a set of `total` cases while
    `against` change the other way; None if the set is too small for any."""
    for majority in range(against + 1, total - against + 1):
        if sign_test(majority, against) < LEVEL:
            return majority - against
    return None


def cases_needed(better: int, worse: int, total: int) -> int | None:
    """Cases in a set that shows such a difference with `POWER`, if its cases change sides as often
    as those of this one; None for more than `MOST_CASES` or no net change."""
    if better == worse:
        return None
    rate, share = (better + worse) / total, max(better, worse) / (better + worse)
    low, high = total, total + 1
    while power(high, rate, share) < POWER:
        low, high = high, high * 2
        if high > MOST_CASES:
            return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if power(middle, rate, share) >= POWER else (middle, high)
    return high


def power(cases: int, rate: float, share: float) -> float:
    """How often the sign test tells in a set of so many cases, of which each changes sides with
    probability `rate`, and then in the one direction with probability `share`."""
    from scipy.stats import binom

    # Numbers of flips that are less likely than this add nothing that could be seen.
    least, most = binom.ppf(1e-9, cases, rate), binom.isf(1e-9, cases, rate)
    flips = np.arange(max(1, int(least)), int(most) + 1)
    not_enough = binom.isf(LEVEL / 2, flips, 0.5)
    return float((binom.pmf(flips, cases, rate) * binom.sf(not_enough, flips, share)).sum())
