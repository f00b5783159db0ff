"""Learns how to weigh the signals of a search from judged questions (`quarry.fusion`).

Plain logistic regression by scikit-learn, cross-validated by question: what is reported was ranked
by weights that had not seen the question.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from evals.compare import Difference, difference
from evals.datasets.questions import Case
from evals.measuring.retrieval import judged, measure
from evals.running.observe import MOST_RESULTS, Ask, Passage, Variant, passage_of, search_body
from quarry.errors import UsageError
from quarry.fusion import FEATURES, Fusion, Item, features
from quarry.records import Signals
from quarry.text import folded

FOLDS = 5
FEWEST = 20
"""Questions below which nothing is learned that would hold for others."""
MARGIN = 0.01
"""A loss of nDCG that is not worth speaking of; below it weights do not lower a ranking."""
REPORTED = ("nDCG@10", "RR@10")

Progress: TypeAlias = Callable[[int, int], None]
Pooling: TypeAlias = Callable[[Sequence[Case]], Awaitable[list["Pool"]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """What a search gave for one question, best first."""

    case: Case
    passages: Sequence[Passage]
    items: Sequence[Item]
    """Of the passages that the reranker looked at, which stand first; only these are weighed."""
    right: Sequence[bool]
    """Whether each of these is right."""
    teaches: Sequence[bool]
    """Whether each of these is learned from. Where documents are judged, only the first passage of
    each is: the others need not be what makes it relevant."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Learned:
    fusion: Fusion
    questions: int
    unseen: Mapping[str, Difference]
    """By figure: as searched now against weights that had not seen the question."""

    @property
    def sentence(self) -> str:
        return _sentence(self.unseen["nDCG@10"], "unseen questions of this set")


async def pools(
    cases: Sequence[Case], ask: Ask, variant: Variant, progress: Progress | None = None
) -> list[Pool]:
    """Searches every judged case as deep as the API gives. Raises what a search raises."""
    found = []
    wanted = [case for case in cases if case.judged]
    for number, case in enumerate(wanted, start=1):
        reply = await ask("search", search_body(case, variant, MOST_RESULTS))
        found.append(pool_of(case, reply["results"]))
        if progress:
            progress(number, len(wanted))
    return found


def pool_of(case: Case, results: Sequence[Mapping[str, Any]]) -> Pool:
    """A pool of the results of the API."""
    passages = [passage_of(result) for result in results]
    items = [_item(result) for result in results if result["signals"]["rerank_score"] is not None]
    return Pool(
        case=case,
        passages=passages,
        items=items,
        right=[_is_right(case, passage) for passage in passages[: len(items)]],
        teaches=_teaching(case, passages[: len(items)]),
    )


def learn(found: Sequence[Pool], names: Sequence[str]) -> Learned:
    """Weights from all pools, and what they are worth on questions that they have not seen.

    Raises UsageError for too few questions.
    """
    if not any(pool.passages for pool in found):
        raise UsageError(
            "No question found a passage that its asker may read; set sources.NAME.default_acl, or "
            "name people in the cases."
        )
    useful = [pool for pool in found if any(pool.right) and not all(pool.right)]
    if len(useful) < FEWEST:
        raise UsageError(
            f"Only {len(useful)} questions have both right and other results; {FEWEST} are the "
            "least to learn from."
        )
    unseen: dict[str, Fusion] = {}
    for fold_number in range(FOLDS):
        rest = [pool for n, pool in enumerate(useful) if n % FOLDS != fold_number]
        weights = _fit(rest, names)
        unseen |= {pool.case.id: weights for pool in useful[fold_number::FOLDS]}
    fusion = _fit(useful, names)
    # Questions from which nothing can be learned are ranked all the same.
    chosen = {pool.case.id: unseen.get(pool.case.id, fusion) for pool in found}
    return Learned(
        fusion=fusion, questions=len(useful), unseen=_compared(found, lambda pool: chosen[pool])
    )


def against(found: Sequence[Pool], fusion: Fusion) -> dict[str, Difference]:
    """As searched now against these weights, on another set."""
    return _compared(found, lambda _case: fusion)


def lowers(found: Mapping[str, Difference], name: str) -> str:
    """A sentence on whether the weights lower the figures of another set."""
    return _sentence(found["nDCG@10"], name)


def _sentence(found: Difference, name: str) -> str:
    told = f"nDCG@10 {found.first:.3f} → {found.second:.3f} on {name}"
    span = f"95 % interval {found.span()}"
    if found.low is None or found.high is None:
        return f"Nobody can tell from so few questions: {told} ({span})."
    if found.low > 0:
        return f"It helps: {told} ({span})."
    if found.high < 0:
        return f"It would LOWER the ranking: {told} ({span}); do not use it there."
    if found.low < -MARGIN:
        return f"It may lower the ranking, this set cannot tell: {told} ({span})."
    return f"It does not lower the ranking by more than {MARGIN}: {told} ({span})."


def _compared(found: Sequence[Pool], weights: Callable[[str], Fusion]) -> dict[str, Difference]:
    now = {pool.case.id: judged(pool.case, pool.passages) for pool in found}
    then = {
        pool.case.id: judged(pool.case, reordered(pool, weights(pool.case.id))) for pool in found
    }
    before, after = measure(now, [10]), measure(then, [10])
    return {
        name: difference([(before[case][name], after[case][name]) for case in before])
        for name in REPORTED
    }


def reordered(pool: Pool, fusion: Fusion) -> list[Passage]:
    """The passages in the order of the weights; equal scores keep the order of the search."""
    scores = fusion.scores(pool.case.question, pool.items)
    order = sorted(range(len(scores)), key=lambda position: -scores[position])
    return [*(pool.passages[position] for position in order), *pool.passages[len(order) :]]


def _fit(found: Sequence[Pool], names: Sequence[str]) -> Fusion:
    from sklearn.linear_model import LogisticRegression

    chosen = [np.array(pool.teaches, dtype=bool) for pool in found]
    rows = np.concatenate(
        [
            features(pool.case.question, pool.items)[keep]
            for pool, keep in zip(found, chosen, strict=True)
        ]
    )
    labels = np.concatenate(
        [np.array(pool.right)[keep] for pool, keep in zip(found, chosen, strict=True)]
    )
    model = LogisticRegression(C=1.0, max_iter=1000).fit(rows, labels)
    weights = {name: float(value) for name, value in zip(FEATURES, model.coef_[0], strict=True)}
    return Fusion(weights=weights, learned_from=", ".join(names))


def _teaching(case: Case, passages: Sequence[Passage]) -> list[bool]:
    if not case.relevant:
        return [True] * len(passages)
    names = [passage.document for passage in passages]
    first = {name: position for position, name in reversed(list(enumerate(names)))}
    return [first[name] == position for position, name in enumerate(names)]


def _item(result: Mapping[str, Any]) -> Item:
    return Item(
        doc_id=str(result["doc_id"]),
        title=str(result["title"]),
        section=str(result["section"]),
        signals=Signals(**result["signals"]),
    )


def _is_right(case: Case, passage: Passage) -> bool:
    if case.relevant:
        return case.relevant.get(passage.document, 0) > 0
    text = folded(passage.text)
    return any(folded(phrase) in text for piece in case.evidence for phrase in piece)
