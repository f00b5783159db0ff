"""Question sets made from what teams have: BEIR folders, TREC topics and judgements, spreadsheets.

Judgements of whole documents become `relevant`; a document is named by its record in a file of
many, else by its uri. Questions without judgements are left out and counted.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from evals.datasets.beir import load_beir
from evals.datasets.questions import Case, Kind, first_error
from quarry.errors import SourceNotFound, UsageError

LISTS = {"groups": ",", "slices": ",", "must": "\n", "must_not": "\n"}
"""Columns of a CSV file that hold several values, and what is between them."""
ALTERNATIVES = " | "
"""Between alternative phrases of one piece of evidence; pieces are on lines of their own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    cases: Sequence[Case]
    unjudged: int
    """Questions left out because nothing says what is right."""


def import_set(path: Path, qrels: Path | None = None, split: str = "test") -> Imported:
    """A BEIR folder, a .csv file, or a file of TREC topics with its qrels.

    Raises SourceNotFound, or UsageError naming file and line.
    """
    if path.is_dir():
        return from_beir(path, split)
    if not path.is_file():
        raise SourceNotFound(f"There is no file or folder at {path}.")
    if qrels is not None:
        return from_trec(path, qrels)
    if path.suffix.lower() == ".csv":
        return from_csv(path)
    raise UsageError(f"{path} is no folder and no .csv file; TREC topics need --qrels FILE.")


def from_beir(folder: Path, split: str = "test") -> Imported:
    dataset = load_beir(folder, split)
    cases = [_judged(query, text, dataset.qrels[query]) for query, text in dataset.queries.items()]
    return _split(cases, len(cases))


def from_trec(topics: Path, qrels: Path) -> Imported:
    """Topics are lines of `ID<TAB>QUESTION`; qrels lines of `ID ITERATION DOCUMENT GRADE`."""
    if not qrels.is_file():
        raise SourceNotFound(f"There is no file at {qrels}.")
    judged = _trec_qrels(qrels)
    texts = dict(_topics(topics))
    unknown = judged.keys() - texts.keys()
    if unknown:
        raise UsageError(f"{qrels} judges topic '{min(unknown)}', which is not in {topics}.")
    cases = [_judged(topic, text, judged.get(topic, {})) for topic, text in texts.items()]
    return _split(cases, len(texts))


def from_csv(path: Path) -> Imported:
    """One case a row; columns are the keys of a case, `question` at least.

    Without an `id` the row's number is one; without a `status`, rows with evidence, documents or
    `must` are answered and the others refused.
    """
    cases: list[Case] = []
    with path.open(encoding="utf-8-sig", newline="") as file:
        rows = csv.DictReader(file)
        _check_columns(path, rows.fieldnames or [])
        for number, row in enumerate(rows, start=1):
            given = {key: value.strip() for key, value in row.items() if key and value}
            try:
                cases.append(Case.model_validate(_case(given, number)))
            except ValidationError as error:
                raise UsageError(f"{path}, line {rows.line_num}: {first_error(error)}.") from error
    if not cases:
        raise UsageError(f"{path} holds no questions.")
    return Imported(cases=cases, unjudged=0)


def _check_columns(path: Path, columns: Sequence[str]) -> None:
    known = Case.model_fields.keys() - {"conversation", "relevant"}
    unknown = [name for name in columns if name not in known]
    if unknown or "question" not in columns:
        raise UsageError(
            f"{path}, line 1: a set has a column 'question' and any of {', '.join(sorted(known))}"
            + (f"; '{unknown[0]}' is none of them." if unknown else ".")
        )


def _case(given: Mapping[str, str], number: int) -> dict[str, Any]:
    case: dict[str, Any] = dict(given)
    for key, between in LISTS.items():
        if key in given:
            case[key] = [part.strip() for part in given[key].split(between) if part.strip()]
    if "evidence" in given:
        lines = (line.strip() for line in given["evidence"].splitlines())
        case["evidence"] = [
            [phrase.strip() for phrase in line.split(ALTERNATIVES)] for line in lines if line
        ]
    answered = bool(case.get("evidence") or case.get("must"))
    case.setdefault("id", f"row-{number}")
    case.setdefault("status", "answered" if answered else "refused")
    refused = case["status"] == "refused"
    case.setdefault("kind", (Kind.UNANSWERABLE if refused else Kind.ANSWERABLE).value)
    return case


def _judged(query: str, text: str, grades: Mapping[str, int]) -> Case | None:
    relevant = {document: max(0, grade) for document, grade in grades.items()}
    if not any(relevant.values()):
        return None
    return Case(id=query, question=text, kind=Kind.ANSWERABLE, relevant=relevant, status="answered")


def _split(cases: Sequence[Case | None], asked: int) -> Imported:
    kept = [case for case in cases if case is not None]
    return Imported(cases=kept, unjudged=asked - len(kept))


def _topics(path: Path) -> Iterator[tuple[str, str]]:
    for number, line in _lines(path):
        topic, tab, text = line.partition("\t")
        if not (topic.strip() and tab and text.strip()):
            raise UsageError(f"{path}, line {number}: a topic is its id, a tab, and the question.")
        yield topic.strip(), text.strip()


def _trec_qrels(path: Path) -> dict[str, dict[str, int]]:
    judged: dict[str, dict[str, int]] = {}
    for number, line in _lines(path):
        try:
            topic, _, document, grade = line.split()
            judged.setdefault(topic, {})[document] = int(grade)
        except ValueError as error:
            raise UsageError(
                f"{path}, line {number}: a judgement is topic, iteration, document and a whole "
                "number, with blanks between."
            ) from error
    if not judged:
        raise UsageError(f"{path} holds no judgements.")
    return judged


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(path.read_text(encoding="utf-8").split("\n"), start=1):
        if line.strip():
            yield number, line.rstrip("\r")
