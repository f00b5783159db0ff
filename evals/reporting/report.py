"""The report of one evaluation: its runs, what changed between them, and what the gate says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from typing import Any

from evals.compare import Comparison
from evals.gate import Check
from evals.measuring.names import FAILED_DOCUMENTS
from evals.measuring.results import CaseResult, Figures, by_slice, figures
from evals.measuring.retrieval import Depths
from quarry.errors import QuarryError
from quarry.records import Document

FORMAT = 3
"""Of the JSON; raised when a reader of older reports would misread it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asking:
    """How the questions of a run were asked."""

    depths: Depths
    repeats: int = 1
    answers: bool = True
    """False: only search was measured."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One way to answer the set, with everything that came of it."""

    label: str
    settings: str
    """Models and numbers that decide the outcome, in a line."""
    asking: Asking
    results: Sequence[CaseResult]
    whole: Figures
    slices: Mapping[str, Figures]
    seconds: float = 0.0
    unread: Sequence[Document] | None = None
    """Documents that failed to be indexed, or are there in part only; None: nobody could look."""

    @classmethod
    def of(
        cls,
        label: str,
        results: Sequence[CaseResult],
        asking: Asking,
        *,
        settings: str = "",
        seconds: float = 0.0,
        unread: Sequence[Document] | None = None,
    ) -> Run:
        """`unread` is None where nobody could look into the index; then there is no figure of
        it."""
        whole = figures(results)
        if unread is not None:
            measures = {**whole.measures, FAILED_DOCUMENTS: float(len(unread))}
            whole = replace(whole, measures=measures)
        return cls(
            label=label,
            settings=settings,
            asking=asking,
            results=results,
            whole=whole,
            slices=by_slice(results),
            seconds=seconds,
            unread=unread,
        )

    @property
    def inside(self) -> bool:
        """Whether somebody could look which cases are outdated and what the askers may read."""
        return self.unread is not None

    @property
    def depths(self) -> Depths:
        return self.asking.depths

    @property
    def by_id(self) -> dict[str, CaseResult]:
        return {result.case.id: result for result in self.results}


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    sets: Sequence[str]
    """Names of the question sets."""
    created: datetime
    runs: Sequence[Run]
    comparisons: Sequence[Comparison] = ()
    checks: Sequence[Check] = ()
    """Demands of the gate; empty without one."""
    notes: Sequence[str] = ()
    """What a reader must know, such as that nobody looked whether the set is outdated."""
    outdated: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Phrases that no current document holds, by case."""
    failure: QuarryError | None = None
    """What ended the evaluation, or kept the gate from being checked: this is what was done."""

    @property
    def passed(self) -> bool:
        """Whether everything was done, and the gate, if there is one, lets this through."""
        return self.failure is None and all(check.passed for check in self.checks)

    def as_json(self) -> dict[str, Any]:
        """The shape of `quarry eval --json` (docs/api.md)."""
        return {
            "format": FORMAT,
            "sets": list(self.sets),
            "created": self.created.isoformat(timespec="seconds"),
            "passed": self.passed,
            "runs": [_run(run) for run in self.runs],
            "comparisons": [asdict(comparison) for comparison in self.comparisons],
            "gate": [asdict(check) for check in self.checks],
            "notes": list(self.notes),
            "outdated": {case: list(phrases) for case, phrases in self.outdated.items()},
            "failure": str(self.failure) if self.failure else "",
        }


def _run(run: Run) -> dict[str, Any]:
    return {
        "label": run.label,
        "settings": run.settings,
        "depths": {"sent": run.depths.sent, "reranked": run.depths.reranked},
        "repeats": run.asking.repeats,
        "answers": run.asking.answers,
        "seconds": round(run.seconds, 1),
        "figures": _figures(run.whole),
        "failed_documents": [
            {"uri": each.uri, "state": each.state.value, "reason": each.error}
            for each in run.unread or ()
        ],
        "slices": {name: _figures(figures) for name, figures in run.slices.items()},
        "cases": [_case(result) for result in run.results],
    }


def _figures(figures: Figures) -> dict[str, Any]:
    return asdict(figures)


def _case(result: CaseResult) -> dict[str, Any]:
    """Nothing is rounded: what is read back as a baseline must be equal to itself."""
    return {
        "id": result.case.id,
        "mark": result.case.mark,
        "question": result.case.question,
        "slices": list(result.slices),
        "passed": result.passed,
        "flaky": result.flaky,
        "outdated": result.outdated,
        "reasons": list(result.reasons),
        "leaks": list(result.leaks),
        "error": result.error,
        "degraded": list(result.degraded),
        "status": result.status,
        "answer": result.answer,
        "found": list(result.found),
        "measures": dict(result.measures),
        "search_ms": result.search_ms,
        "answer_ms": result.answer_ms,
        "prompt_tokens": result.prompt_tokens,
        "completion_tokens": result.completion_tokens,
    }
