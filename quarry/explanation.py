"""What an explanation of an answer holds: each stage with what it kept and left out, and where an
expected phrase was lost.

Values without behaviour, as in `quarry.records`. They are made by `serve.explaining.explain` and
hold nothing that the person who asked may not read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from quarry.records import Answer, Candidate, Message, StageRecord


class Lost(StrEnum):
    """Where a passage can be lost, in the order of the path; each value names a stage or a state
    of the index before the first one."""

    DOCUMENTS = "documents"
    """No document that this person may read says it."""
    CHUNKS = "chunks"
    """A document says it, but no chunk holds it whole."""
    CANDIDATES = "candidates"
    """Neither leg found the chunk."""
    CATALOG = "catalog"
    FUSE = "fuse"
    RERANK = "rerank"
    SELECT = "select"
    EVIDENCE = "evidence"
    PROMPT = "prompt"
    ANSWER = "answer"


LOST_ORDER: tuple[Lost, ...] = tuple(Lost)


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """A passage that left a stage."""

    rank: int
    """From 1."""
    chunk_id: str
    score: float | None
    before: int | None = None
    """Its rank when it came in, for stages that reorder."""
    label: str = ""
    """Its number as a source, `S1`."""
    tokens: int | None = None
    """Of a source as it stands in the prompt, in the generator's tokens."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOut:
    """A passage that came into a stage and did not leave it."""

    chunk_id: str
    reason: str
    """A word from a closed set; docs/retrieval.md lists them."""
    beside: str = ""
    """The chunk_id in whose favour it was left out, if there is one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    record: StageRecord
    items: tuple[Item, ...] = ()
    left_out: tuple[LeftOut, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A chunk that holds an expected phrase, and how far it came."""

    chunk_id: str
    lost: Lost | None
    """None: it was cited."""
    reason: str
    """A word from a closed set; docs/retrieval.md lists them."""
    dense_rank: int | None = None
    lexical_rank: int | None = None
    fused_rank: int | None = None
    final_rank: int | None = None
    """Among what the evidence was chosen from."""
    label: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Expectation:
    """One piece of evidence, given as phrases of which any one marks a chunk that holds it."""

    phrases: tuple[str, ...]
    lost: Lost | None
    """The first stage that lost it: where the place that came furthest was lost; None: cited."""
    reason: str
    places: tuple[Place, ...] = ()
    whole: bool = True
    """False: time was up before all documents were looked through, and the phrase may be in one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """The whole way of one question."""

    question: str
    """As the stages saw it, cleaned."""
    stages: tuple[Stage, ...]
    passages: Mapping[str, Candidate]
    """By chunk_id, every passage that a stage or a place names."""
    prompt: tuple[Message, ...]
    """Empty where the generator was not called."""
    answer: Answer
    expected: tuple[Expectation, ...] = ()
