"""What the graph gives: to whoever asked, and from its one half to the other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from quarry.records import Answer, Evidence, StageRecord
from serve.answering.answer import Checked
from serve.answering.generate import Delta
from serve.explaining.locate import Located
from serve.stage import Run


@dataclass(frozen=True, slots=True, kw_only=True)
class Final:
    """The whole answer; where it differs from the deltas, it is what counts."""

    answer: Answer


Event: TypeAlias = Delta | Final


@dataclass(frozen=True, slots=True, kw_only=True)
class Gathered:
    """All that an answer is written from."""

    question: str
    evidence: tuple[Evidence, ...]
    generation: str
    degraded: tuple[str, ...]
    trace: tuple[StageRecord, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Examined:
    """What was gathered, how it came about, and where expected phrases stand in the documents."""

    gathered: Gathered
    results: Mapping[str, Any]
    """What each stage gave, by its name."""
    located: tuple[Located, ...]


def final(checked: Checked, gathered: Gathered, run: Run) -> Final:
    """The answer with what all its stages took, left out and did without."""
    timings: dict[str, float] = {}
    for record in run.trace:
        timings[record.stage] = timings.get(record.stage, 0.0) + record.ms
    timings["total"] = round(run.deadline.elapsed() * 1000, 3)
    answer = Answer(
        status=checked.status,
        text=checked.text,
        citations=checked.citations,
        generation=gathered.generation,
        doubts=checked.doubts,
        cut=checked.cut,
        degraded=tuple(run.degraded),
        timings_ms=timings,
        trace=tuple(run.trace),
    )
    return Final(answer=answer)
