"""Learned fusion in place of rank fusion, for what the reranker looked at (`quarry.fusion`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from quarry.fusion import Fusion, Item
from quarry.records import Candidate
from serve.finding.fuse import lane
from serve.finding.question import Asked


def weigh(ranked: Sequence[Candidate], asked: Asked, fusion: Fusion) -> list[Candidate]:
    """The reranked candidates by learned weights, the others behind them as they were.

    Equal scores keep their order, and the identifier lane stays in front.
    """
    head = [each for each in ranked if each.signals.rerank_score is not None]
    tail = [each for each in ranked if each.signals.rerank_score is None]
    scores = fusion.scores(asked.question, [Item.of(candidate) for candidate in head])
    weighed = [replace(c, score=score) for c, score in zip(head, scores, strict=True)]
    return [*sorted(weighed, key=lambda c: (lane(c, asked), -c.score)), *tail]
