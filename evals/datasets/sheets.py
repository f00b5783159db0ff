"""Question sets from spreadsheets: a CSV file whose columns are the keys of a case."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from evals.datasets.files import text_of
from evals.datasets.questions import Case, Kind, first_error
from quarry.errors import UsageError

BETWEEN = " | "
"""Between alternative phrases of one piece of evidence, and between a document and its grade."""
_UNANSWERED = (Kind.UNANSWERABLE.value, Kind.FORBIDDEN.value)
_MESSAGE = re.compile(r"(user|assistant):\s*", re.IGNORECASE)


def from_csv(path: Path) -> tuple[list[Case], int]:
    """The cases, `question` at least in each, and how many rows were left out because nothing in
    them says what is right.

    Without an `id` the row's number is one. Without a `status`, rows with evidence, documents or
    `must` are answered, and those of a kind that nothing answers are refused. Raises UsageError
    naming the line.
    """
    cases: list[Case] = []
    unjudged = 0
    rows = csv.DictReader(io.StringIO(text_of(path), newline=""))
    _check_columns(path, rows.fieldnames or [])
    for number, row in enumerate(rows, start=1):
        given = {key: value.strip() for key, value in row.items() if key and value}
        try:
            case = _case(given, number)
            if case is None:
                unjudged += 1
            else:
                cases.append(Case.model_validate(case))
        except ValidationError as error:
            raise UsageError(f"{path}, line {rows.line_num}: {first_error(error)}.") from error
        except ValueError as error:
            raise UsageError(f"{path}, line {rows.line_num}: {error}.") from error
    if not cases and not unjudged:
        raise UsageError(f"{path} holds no questions.")
    return cases, unjudged


def _check_columns(path: Path, columns: Sequence[str]) -> None:
    known = Case.model_fields.keys()
    unknown = [name for name in columns if name not in known]
    if unknown or "question" not in columns:
        raise UsageError(
            f"{path}, line 1: a set has a column 'question' and any of {', '.join(sorted(known))}"
            + (f"; '{unknown[0]}' is none of them." if unknown else ".")
        )


def _case(given: Mapping[str, str], number: int) -> dict[str, Any] | None:
    """The keys of a case; None where nothing says what is right."""
    case: dict[str, Any] = dict(given)
    for key, read in _COLUMNS.items():
        if key in given:
            case[key] = read(given[key])
    case.setdefault("id", f"row-{number}")
    if "status" not in case:
        if case.get("evidence") or case.get("relevant") or case.get("must"):
            case["status"] = "answered"
        elif case.get("kind") in _UNANSWERED:
            case["status"] = "refused"
        else:
            return None
    refused = case["status"] == "refused"
    case.setdefault("kind", (Kind.UNANSWERABLE if refused else Kind.ANSWERABLE).value)
    return case


def _parts(text: str, between: str) -> list[str]:
    return [part for part in map(str.strip, text.split(between)) if part]


def _evidence(text: str) -> list[list[str]]:
    return [[phrase.strip() for phrase in line.split(BETWEEN)] for line in _parts(text, "\n")]


def _relevant(text: str) -> dict[str, int]:
    """A document a line, its grade after a bar, else 1."""
    grades = {}
    for line in _parts(text, "\n"):
        name, bar, grade = line.partition(BETWEEN)
        if bar and not grade.strip().isdigit():
            raise ValueError("'relevant' has a document a line, and a whole number after ' | '")
        grades[name.strip()] = int(grade) if bar else 1
    return grades


def _conversation(text: str) -> list[dict[str, str]]:
    """A message begins with who said it, `user:` or `assistant:`; other lines go on with it."""
    turns: list[dict[str, str]] = []
    for line in text.splitlines():
        begins = _MESSAGE.match(line)
        if begins:
            turns.append({"role": begins[1].lower(), "content": line[begins.end() :]})
        elif turns:
            turns[-1]["content"] += f"\n{line}"
        else:
            raise ValueError("'conversation' begins each message with 'user:' or 'assistant:'")
    return turns


def _separated(between: str) -> Callable[[str], Iterable[str]]:
    return lambda text: _parts(text, between)


_COLUMNS: Mapping[str, Callable[[str], Any]] = {
    "groups": _separated(","),
    "slices": _separated(","),
    "must": _separated("\n"),
    "must_not": _separated("\n"),
    "evidence": _evidence,
    "relevant": _relevant,
    "conversation": _conversation,
}
"""Columns that hold several values."""
