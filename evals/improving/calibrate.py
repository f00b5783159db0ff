"""Fits how probable evidence is at a rerank score, on labelled questions.

Platt, "Probabilistic outputs for support vector machines and comparisons to regularized likelihood
methods", 1999: a logistic curve over one score. Passages of questions that nothing answers count
as no evidence, so that the curve knows what the best of nothing scores.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from evals.datasets.questions import Case
from evals.running.observe import MOST_RESULTS, Ask, Variant, search_body
from quarry.errors import UsageError
from quarry.text import folded, holds_any

LEAST = 10
"""Passages of each kind that a fit needs."""
THRESHOLDS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5)


@dataclass(frozen=True, slots=True)
class Scored:
    """One passage of one question."""

    score: float
    evidence: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    slope: float
    intercept: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """What a threshold keeps of the passages of the fit."""

    threshold: float
    evidence_kept: float
    """Share, from 0 to 1."""
    others_kept: float


def teaching(cases: Iterable[Case]) -> list[Case]:
    """Without those that are held out, or that name documents instead of phrases."""
    return [
        case for case in cases if not case.held_out and (case.evidence or case.status == "refused")
    ]


async def collect(cases: Iterable[Case], ask: Ask) -> list[Scored]:
    """The rerank scores of what a search of each teaching case finds, with what is evidence
    among it."""
    scored: list[Scored] = []
    for case in teaching(cases):
        found = await ask("search", search_body(case, Variant(), MOST_RESULTS))
        phrases = [folded(phrase) for piece in case.evidence for phrase in piece]
        scored += _scored(found["results"], phrases)
    return scored


def _scored(results: Sequence[Mapping[str, Any]], phrases: Sequence[str]) -> list[Scored]:
    return [
        Scored(float(score), holds_any(str(result["text"]), phrases))
        for result in results
        if (score := result["signals"]["rerank_score"]) is not None
    ]


def fit(scored: Sequence[Scored]) -> Curve:
    """Raises UsageError where there is too little to learn from, or nothing."""
    from sklearn.linear_model import LogisticRegression

    scores = np.array([each.score for each in scored], dtype=np.float64)
    labels = np.array([each.evidence for each in scored], dtype=bool)
    if labels.sum() < LEAST or (~labels).sum() < LEAST:
        raise UsageError(
            f"A calibration needs at least {LEAST} passages that are evidence and {LEAST} others; "
            f"these questions give {labels.sum()} and {(~labels).sum()}. Label more questions."
        )
    center, spread = scores.mean(), scores.std() or 1.0
    model = LogisticRegression().fit(((scores - center) / spread).reshape(-1, 1), labels)
    slope = float(model.coef_[0, 0] / spread)
    if slope <= 0:
        raise UsageError(
            "The reranker scores evidence no higher than other passages of these questions, so no "
            "threshold can tell them apart; use another reranker."
        )
    return Curve(slope=slope, intercept=float(model.intercept_[0] - slope * center))


def cuts(scored: Sequence[Scored], curve: Curve) -> list[Cut]:
    """What each of `THRESHOLDS` would keep."""
    scores = np.array([each.score for each in scored], dtype=np.float64)
    labels = np.array([each.evidence for each in scored], dtype=bool)
    probable = 1.0 / (1.0 + np.exp(-(curve.slope * scores + curve.intercept)))
    return [
        Cut(
            threshold=threshold,
            evidence_kept=float((probable[labels] >= threshold).mean()),
            others_kept=float((probable[~labels] >= threshold).mean()),
        )
        for threshold in THRESHOLDS
    ]
