"""How probable evidence is at a score, learnt from labelled questions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from evals.datasets.questions import Case, Kind
from evals.improving.calibrate import Scored, collect, cuts, fit
from quarry.errors import UsageError


def case(name: str, **facts: Any) -> Case:
    facts.setdefault("status", "answered")
    return Case.model_validate({"id": name, "question": name, "kind": Kind.ANSWERABLE, **facts})


def sample(size: int, slope: float, intercept: float) -> list[Scored]:
    random = np.random.default_rng(7)
    scores = random.uniform(-1, 1, size)
    probable = 1 / (1 + np.exp(-(slope * scores + intercept)))
    return [
        Scored(float(s), bool(random.random() < p)) for s, p in zip(scores, probable, strict=True)
    ]


def test_the_curve_that_made_the_labels_is_found_again() -> None:
    curve = fit(sample(20_000, 6.0, -2.0))
    assert curve.slope == pytest.approx(6.0, rel=0.1)
    assert curve.intercept == pytest.approx(-2.0, rel=0.15)


def test_the_scale_of_the_scores_does_not_matter() -> None:
    """Logits of 1e3 and cosines of 1e-3 give the same probabilities."""
    plain = sample(2000, 6.0, -2.0)
    curves = {k: fit([Scored(each.score * k, each.evidence) for each in plain]) for k in (1, 1e3)}
    for score in (-0.5, 0.0, 0.7):
        one, thousand = (curves[k].slope * score * k + curves[k].intercept for k in (1, 1e3))
        assert one == pytest.approx(thousand, abs=1e-3)


def test_what_thresholds_keep_falls_as_they_rise() -> None:
    scored = sample(2000, 6.0, -2.0)
    kept = cuts(scored, fit(scored))
    assert [cut.evidence_kept for cut in kept] == sorted(
        (cut.evidence_kept for cut in kept), reverse=True
    )
    assert all(cut.evidence_kept >= cut.others_kept for cut in kept)
    assert kept[0].evidence_kept > 0.99


@pytest.mark.parametrize(
    ("scored", "said"),
    [
        ([Scored(0.5, True)] * 9 + [Scored(0.1, False)] * 99, "at least 10"),
        ([Scored(0.5, True)] * 99 + [Scored(0.1, False)] * 9, "at least 10"),
        ([], "at least 10"),
        ([Scored(n / 20, n < 10) for n in range(20)], "no higher"),
        ([Scored(0.5, n < 10) for n in range(20)], "no higher"),
    ],
)
def test_nothing_to_learn_from_is_an_error(scored: list[Scored], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        fit(scored)


async def test_passages_are_labelled_by_phrases_and_held_out_cases_are_not_used() -> None:
    asked: list[dict[str, Any]] = []

    async def ask(endpoint: str, body: dict[str, Any]) -> dict[str, Any]:
        asked.append(body)
        texts = {"Store  CREDIT only.": 0.9, "Nothing of it.": 0.2, "Not reranked.": None}
        return {
            "results": [
                {"text": text, "signals": {"rerank_score": score}} for text, score in texts.items()
            ]
        }

    cases = [
        case("refund", evidence=[["store credit"], ["within 60 days"]], person="mei"),
        case("nowhere", status="refused", kind=Kind.UNANSWERABLE),
        case("secret", evidence=[["store credit"]], held_out=True),
        case("judged", relevant={"d1": 1}),
    ]
    scored = await collect(cases, ask)
    assert [body["question"] for body in asked] == ["refund", "nowhere"]
    assert asked[0]["as"] == "mei"
    assert scored == [
        Scored(0.9, True),
        Scored(0.2, False),
        Scored(0.9, False),
        Scored(0.2, False),
    ]
    assert all(math.isfinite(each.score) for each in scored)
