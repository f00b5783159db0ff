"""How good the ranking of each case is, at every depth that matters.

A case is judged by pieces of evidence or by documents. Evidence: a passage gains as many points as
it holds pieces that no better passage held; a piece that was not found is a point that was missed.
So a passage with both pieces at rank 1 is worth nDCG 1, and a second copy of a piece is worth
nothing. Recall counts pieces, the other measures passages. ir-measures computes all of them but
`all_evidence` and `returned`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from evals.datasets.questions import Case, evidence_ranks
from evals.measuring.metrics import per_question
from evals.running.observe import Passage

MEASURES = ("all_evidence", "R", "hit", "RR", "nDCG", "returned")
"""Each is written with its depth: `all_evidence@5`."""
COMMON_DEPTHS = (5, 10)
_TREC = {"hit": "Success", "RR": "RR", "nDCG": "nDCG"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Depths:
    """How far down lists are looked at."""

    sent: int
    """Passages that the generator reads at most."""
    reranked: int
    """Candidates that the reranker orders."""
    also: tuple[int, ...] = ()
    """Those of the runs that this one is compared with."""

    @property
    def all(self) -> tuple[int, ...]:
        return tuple(sorted({*COMMON_DEPTHS, self.sent, self.reranked, *self.also}))

    @property
    def deepest(self) -> int:
        """How far a search must go for every figure to be of a whole list."""
        return self.all[-1]


def alike(depths: Sequence[Depths]) -> list[Depths]:
    """The same depths, each measured at the depths of the others as well."""
    every = tuple(sorted({depth for each in depths for depth in each.all}))
    return [replace(each, also=every) for each in depths]


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """One case as judgements and a run, in the terms of ir-measures."""

    gains: Mapping[str, int]
    run: Sequence[str]
    """Items of `gains` and others, best first: documents, or passages by their rank."""
    found: Sequence[int | None]
    """Rank of each piece of evidence or relevant document; None: not in the list."""
    returned: int
    """Passages in the list; several may be of one document."""


def judged(case: Case, passages: Sequence[Passage]) -> Judged:
    """Raises ValueError for a case that says nothing of what a search should find."""
    if case.relevant:
        run = list(dict.fromkeys(passage.document for passage in passages))
        ranks = {document: rank for rank, document in enumerate(run, start=1)}
        found = [ranks.get(name) for name, grade in case.relevant.items() if grade > 0]
        return Judged(gains=case.relevant, run=run, found=found, returned=len(passages))
    if not case.evidence:
        raise ValueError(f"nothing is judged in case {case.id}")
    pieces = evidence_ranks(case, [passage.text for passage in passages])
    gains: dict[str, int] = {}
    for number, rank in enumerate(pieces):
        item = str(rank) if rank else f"missed-{number}"
        gains[item] = gains.get(item, 0) + 1
    return Judged(
        gains=gains,
        run=[str(rank) for rank in range(1, len(passages) + 1)],
        found=pieces,
        returned=len(passages),
    )


def measure(cases: Mapping[str, Judged], depths: Iterable[int]) -> dict[str, dict[str, float]]:
    """Every measure of `MEASURES` at every depth, by case and name; empty lists are worth 0."""
    values: dict[str, dict[str, float]] = {case: {} for case in cases}
    for depth in depths:
        for name, column in _at(cases, depth).items():
            for case, value in column.items():
                values[case][f"{name}@{depth}"] = value
    return values


def _at(cases: Mapping[str, Judged], depth: int) -> dict[str, dict[str, float]]:
    gains = {case: each.gains for case, each in cases.items()}
    runs = {case: each.run for case, each in cases.items()}
    columns = {name: per_question(f"{trec}@{depth}", gains, runs) for name, trec in _TREC.items()}
    columns["R"] = _recall(cases, depth)
    columns["all_evidence"] = {
        case: float(all(rank and rank <= depth for rank in each.found))
        for case, each in cases.items()
    }
    columns["returned"] = {case: min(depth, each.returned) / depth for case, each in cases.items()}
    return columns


def _recall(cases: Mapping[str, Judged], depth: int) -> dict[str, float]:
    """Pieces are the items here: those in the first `depth` passages are the whole run."""
    pieces = {
        case: {str(number): 1 for number in range(len(each.found))} for case, each in cases.items()
    }
    runs = {
        case: [str(n) for n, rank in enumerate(each.found) if rank and rank <= depth]
        for case, each in cases.items()
    }
    most = max((len(each.found) for each in cases.values()), default=1)
    return per_question(f"R@{most}", pieces, runs)
