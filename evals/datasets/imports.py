"""Question sets made from what teams have: BEIR folders, TREC topics and judgements, spreadsheets.

Judgements of whole documents become `relevant`; a document is named by its record in a file of
many, else by its uri. Questions without judgements are left out and counted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from evals.datasets.beir import load_beir
from evals.datasets.questions import Case, Kind
from evals.datasets.sheets import from_csv
from evals.datasets.trec import read_qrels, read_topics
from quarry.errors import SourceNotFound, UsageError


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    cases: Sequence[Case]
    unjudged: int
    """Questions left out because nothing says what is right."""


def import_set(path: Path, qrels: Path | None = None, split: str = "test") -> Imported:
    """A BEIR folder, a .csv file, or a file of TREC topics with its qrels.

    Raises SourceNotFound, or UsageError naming file and line, or if no question is judged.
    """
    if path.is_dir():
        made = from_beir(path, split)
    elif not path.is_file():
        raise SourceNotFound(f"There is no file or folder at {path}.")
    elif qrels is not None:
        made = from_trec(path, qrels)
    elif path.suffix.lower() == ".csv":
        cases, unjudged = from_csv(path)
        made = Imported(cases=cases, unjudged=unjudged)
    else:
        raise UsageError(f"{path} is no folder and no .csv file; TREC topics need --qrels FILE.")
    if not made.cases:
        raise UsageError(
            f"Nothing in {path} says what is right for any of its {made.unjudged} questions; "
            "judge some first."
        )
    return made


def from_beir(folder: Path, split: str = "test") -> Imported:
    dataset = load_beir(folder, split)
    made = _imported(dataset.queries, dataset.qrels)
    return Imported(cases=made.cases, unjudged=made.unjudged + dataset.unjudged)


def from_trec(topics: Path, qrels: Path) -> Imported:
    """Topics as `evals.datasets.trec` reads them; every judged one must be there."""
    judged = read_qrels(qrels)
    texts = read_topics(topics)
    unknown = judged.keys() - texts.keys()
    if unknown:
        raise UsageError(f"{qrels} judges topic '{min(unknown)}', which is not in {topics}.")
    return _imported(texts, judged)


def _imported(
    questions: Mapping[str, str], judgements: Mapping[str, Mapping[str, int]]
) -> Imported:
    """A case for each question that something is relevant to."""
    cases = []
    for query, text in questions.items():
        relevant = {name: max(0, grade) for name, grade in judgements.get(query, {}).items()}
        if any(relevant.values()):
            case = Case(
                id=query, question=text, kind=Kind.ANSWERABLE, relevant=relevant, status="answered"
            )
            cases.append(case)
    return Imported(cases=cases, unjudged=len(questions) - len(cases))
