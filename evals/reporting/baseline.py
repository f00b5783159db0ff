"""An earlier report, to compare new runs with, case by case."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evals.datasets.questions import Case
from evals.measuring.results import CaseResult
from evals.measuring.retrieval import Depths
from evals.reporting.report import FORMAT, Asking
from quarry.errors import UsageError


@dataclass(frozen=True, slots=True, kw_only=True)
class Baseline:
    """The last run of a report."""

    label: str
    asking: Asking
    results: Sequence[CaseResult]
    """Of the cases that the set still has as they were."""
    changed: Sequence[str] = ()
    """Ids under which the set has other questions or demands now."""

    @property
    def notes(self) -> list[str]:
        """What a reader of a comparison with it must know."""
        if not self.changed:
            return []
        return [
            f"Changed since the baseline and not compared with it: {len(self.changed)} of the "
            f"cases: {', '.join(self.changed)}."
        ]

    def check_alike(self, asking: Asking) -> None:
        """Raises UsageError for a run that is asked otherwise: its figures mean something else."""
        for what, ours, theirs in zip(_ASKED, _terms(self.asking), _terms(asking), strict=True):
            if ours != theirs:
                raise UsageError(
                    f"The baseline and this run differ in {what} ({ours} and {theirs}), so they "
                    "cannot be compared; make a baseline that is asked as this run is."
                )


_ASKED = ("passages sent", "candidates reranked", "repeats", "what is asked for")


def _terms(asking: Asking) -> tuple[object, ...]:
    kind = "answers" if asking.answers else "search alone"
    return asking.depths.sent, asking.depths.reranked, asking.repeats, kind


def load_baseline(path: Path, cases: Sequence[Case]) -> Baseline:
    """Raises UsageError for a file that is no report."""
    known = {case.id: case for case in cases}
    try:
        report = json.loads(path.read_text(encoding="utf-8"))
        if report["format"] != FORMAT:
            raise UsageError(f"{path} is a report of another version; make a new baseline.")
        run = report["runs"][-1]
        told = {each["id"]: each for each in run["cases"] if each["id"] in known}
        changed = [name for name, each in told.items() if each["mark"] != known[name].mark]
        return Baseline(
            label=f"{path.name}: {run['label']}",
            asking=Asking(
                depths=Depths(**run["depths"]),
                repeats=int(run["repeats"]),
                answers=bool(run["answers"]),
            ),
            results=[
                _result(known[name], each) for name, each in told.items() if name not in changed
            ],
            changed=changed,
        )
    except OSError as error:
        raise UsageError(f"{path} cannot be read; name a file that --save wrote.") from error
    except (ValueError, KeyError, TypeError, IndexError) as error:
        raise UsageError(f"{path} is no report of quarry eval --json.") from error


def _result(case: Case, told: Mapping[str, Any]) -> CaseResult:
    return CaseResult(
        case=case,
        passed=bool(told["passed"]),
        outdated=bool(told["outdated"]),
        leaks=tuple(told["leaks"]),
        error=str(told["error"]),
        status=str(told["status"]),
        measures={name: float(value) for name, value in told["measures"].items()},
        search_ms=float(told["search_ms"]),
        answer_ms=float(told["answer_ms"]),
        prompt_tokens=float(told["prompt_tokens"]),
        completion_tokens=float(told["completion_tokens"]),
    )
