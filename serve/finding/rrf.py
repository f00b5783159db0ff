"""Reciprocal rank fusion.

Cormack, Clarke and Büttcher, "Reciprocal rank fusion outperforms Condorcet and individual rank
learning methods", SIGIR 2009; score(d) = Σ over lists of 1 / (k + rank of d).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import TypeVar

Key = TypeVar("Key", bound=Hashable)


def ranks(ordered: Iterable[Key]) -> dict[Key, int]:
    """1-based rank of each key; a repeated key keeps its first place and takes up no other."""
    return {key: rank for rank, key in enumerate(dict.fromkeys(ordered), start=1)}


def rrf_score(places: Iterable[int | None], *, k: int) -> float:
    """Fused score of one key from its rank in each list; None: it is not in it."""
    return sum(1.0 / (k + rank) for rank in places if rank is not None)


def rrf(lists: Sequence[Iterable[Key]], *, k: int) -> dict[Key, float]:
    """Fused score of every key in any list; each list is best first."""
    scores: dict[Key, float] = {}
    for ordered in lists:
        for place, key in enumerate(dict.fromkeys(ordered), start=k + 1):
            scores[key] = scores.get(key, 0.0) + 1.0 / place
    return scores
