"""The report of one evaluation: its runs, what changed between them, and what the gate says."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from evals.compare import Comparison
from evals.datasets.questions import Case
from evals.gate import Check
from evals.measuring.results import CaseResult, Figures, by_slice, figures
from evals.measuring.retrieval import Depths
from quarry.errors import UsageError
from quarry.records import Document

FAILED_DOCUMENTS = "failed_documents"
"""A figure of the whole run: documents that are not in the index, or in part only."""
FORMAT = 1
"""Of the JSON; raised when a reader of older reports would misread it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One way to answer the set, with everything that came of it."""

    label: str
    settings: str
    """Models and numbers that decide the outcome, in a line."""
    results: Sequence[CaseResult]
    whole: Figures
    slices: Mapping[str, Figures]
    seconds: float = 0.0
    unread: Sequence[Document] = ()
    """Documents that failed to be indexed, or are there in part only."""

    @classmethod
    def of(
        cls,
        label: str,
        results: Sequence[CaseResult],
        *,
        settings: str = "",
        seconds: float = 0.0,
        unread: Sequence[Document] | None = None,
    ) -> Run:
        """`unread` is None where nobody could look; then there is no figure of it."""
        whole = figures(results)
        if unread is not None:
            measures = {**whole.measures, FAILED_DOCUMENTS: float(len(unread))}
            whole = replace(whole, measures=measures)
        return cls(
            label=label,
            settings=settings,
            results=results,
            whole=whole,
            slices=by_slice(results),
            seconds=seconds,
            unread=unread or (),
        )

    @property
    def by_id(self) -> dict[str, CaseResult]:
        return {result.case.id: result for result in self.results}


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    sets: Sequence[str]
    """Names of the question sets."""
    created: datetime
    depths: Depths
    runs: Sequence[Run]
    comparisons: Sequence[Comparison] = ()
    checks: Sequence[Check] = ()
    """Demands of the gate; empty without one."""
    notes: Sequence[str] = ()
    """What a reader must know, such as that nobody looked whether the set is outdated."""
    outdated: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Phrases that no current document holds, by case."""

    @property
    def passed(self) -> bool:
        """Whether the gate, if there is one, lets this through."""
        return all(check.passed for check in self.checks)

    def as_json(self) -> dict[str, Any]:
        """The shape of `quarry eval --json` (docs/api.md)."""
        return {
            "format": FORMAT,
            "sets": list(self.sets),
            "created": self.created.isoformat(timespec="seconds"),
            "depths": {"sent": self.depths.sent, "reranked": self.depths.reranked},
            "passed": self.passed,
            "runs": [_run(run) for run in self.runs],
            "comparisons": [asdict(comparison) for comparison in self.comparisons],
            "gate": [asdict(check) for check in self.checks],
            "notes": list(self.notes),
            "outdated": {case: list(phrases) for case, phrases in self.outdated.items()},
        }


def load_baseline(path: Path, cases: Sequence[Case]) -> tuple[str, list[CaseResult]]:
    """The last run of an earlier report, for the cases that the set still has.

    Raises UsageError for a file that is no report.
    """
    known = {case.id: case for case in cases}
    try:
        report = json.loads(path.read_text(encoding="utf-8"))
        if report["format"] != FORMAT:
            raise UsageError(f"{path} is a report of another version; make a new baseline.")
        run = report["runs"][-1]
        results = [
            CaseResult(
                case=known[each["id"]],
                passed=bool(each["passed"]),
                outdated=bool(each["outdated"]),
                measures={name: float(value) for name, value in each["measures"].items()},
            )
            for each in run["cases"]
            if each["id"] in known
        ]
        return f"{path.name}: {run['label']}", results
    except OSError as error:
        raise UsageError(f"{path} cannot be read; name a file that --save wrote.") from error
    except (ValueError, KeyError, TypeError, IndexError) as error:
        raise UsageError(f"{path} is no report of quarry eval --json.") from error


def _run(run: Run) -> dict[str, Any]:
    return {
        "label": run.label,
        "settings": run.settings,
        "seconds": round(run.seconds, 1),
        "figures": _figures(run.whole),
        "failed_documents": [
            {"uri": each.uri, "state": each.state.value, "reason": each.error}
            for each in run.unread
        ],
        "slices": {name: _figures(figures) for name, figures in run.slices.items()},
        "cases": [_case(result) for result in run.results],
    }


def _figures(figures: Figures) -> dict[str, Any]:
    counts = asdict(figures)
    measures = counts.pop("measures")
    return counts | {"measures": _rounded(measures)}


def _case(result: CaseResult) -> dict[str, Any]:
    return {
        "id": result.case.id,
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
        "measures": _rounded(result.measures),
        "search_ms": round(result.search_ms, 1),
        "answer_ms": round(result.answer_ms, 1),
        "prompt_tokens": result.prompt_tokens,
        "completion_tokens": result.completion_tokens,
    }


def _rounded(measures: Mapping[str, float]) -> dict[str, float]:
    return {name: round(value, 6) for name, value in measures.items()}
