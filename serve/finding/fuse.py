"""Reciprocal rank fusion of the legs, and the lane for exact identifiers."""

from __future__ import annotations

from dataclasses import replace

from quarry.records import Candidate, Signals, StageRecord
from quarry.text import identifiers
from serve.finding.question import Asked
from serve.finding.retrieve import Found
from serve.finding.rrf import ranks, rrf_score
from serve.stage import Stopwatch

NO_LANE = (0, 0)
"""Where a candidate stands that holds no identifier of the question."""


def fuse(found: Found, asked: Asked, *, rrf_k: int) -> tuple[list[Candidate], StageRecord]:
    """All candidates of both legs, best first, each with its signals.

    Equal scores stand in the order of chunk_id; an empty leg adds nothing. Candidates that hold an
    exact identifier of the question stand first (`lane`).
    """
    watch = Stopwatch("fuse")
    dense, lexical = ranks(found.dense), ranks(found.lexical)
    fused = []
    for chunk_id, candidate in found.candidates.items():
        places = dense.get(chunk_id), lexical.get(chunk_id)
        score = rrf_score(places, k=rrf_k)
        signals = Signals(
            dense_rank=places[0],
            dense_score=found.dense.get(chunk_id),
            lexical_rank=places[1],
            lexical_score=found.lexical.get(chunk_id),
            fused_score=score,
        )
        fused.append(replace(candidate, score=score, signals=signals))
    fused.sort(key=lambda c: (lane(c, asked), -c.score, c.chunk.chunk_id))
    exact = sum(lane(candidate, asked) < NO_LANE for candidate in fused)
    return fused, watch.done(len(fused), rrf_k=rrf_k, exact_identifier=exact)


def lane(candidate: Candidate, asked: Asked) -> tuple[int, int]:
    """Sorts what holds an exact identifier of the question before what does not: `NO_LANE`.

    More identifiers stand before fewer, and a passage that has one in its title or section, and so
    is about it, before one that only mentions it.
    """
    held = asked.lane.intersection(candidate.chunk.identifiers)
    named = held.intersection(identifiers(candidate.chunk.header)) if held else held
    return -len(held), -len(named)
