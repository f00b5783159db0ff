"""How far a judge agrees with people, before anybody believes its figures.

Cohen, "A coefficient of agreement for nominal scales", 1960, computed by scikit-learn.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from evals.datasets.questions import first_error
from evals.measuring.judge import VERDICTS, Material, ModelJudge
from quarry.errors import SourceNotFound, UsageError

USABLE = 0.6
"""Kappa from which a judge's figures say something; below, people and judge differ too often."""
FEWEST = 20
"""Labels of one judgement, with a verdict of the judge, from which kappa is worth a look."""


class Label(BaseModel):
    """One judgement by a person: a line of a labels file."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    id: str = Field(min_length=1)
    judgement: Literal[
        "context_relevance",
        "context_recall",
        "context_precision",
        "faithfulness",
        "answer_relevance",
        "correctness",
    ]
    question: str = ""
    passages: tuple[str, ...] = ()
    answer: str = ""
    reference: tuple[str, ...] = ()
    label: Literal["yes", "partly", "no"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreement:
    judgement: str
    labels: int
    unreadable: int
    """Replies without a verdict; they count as disagreement, and are not in kappa."""
    agreed: float
    """Share of the labels on which both say the same."""
    kappa: float | None
    """None where either says the same of everything: then chance alone agrees."""
    differing: Sequence[tuple[str, str, str]]
    """Id, what the person said, what the judge said."""

    @property
    def sentence(self) -> str:
        return f"{self._unread}{self._verdict}"

    @property
    def _unread(self) -> str:
        """Says so where replies held no verdict: kappa knows nothing of them."""
        if not self.unreadable:
            return ""
        return f"{self.unreadable} of {self.labels} replies held no verdict. "

    @property
    def _verdict(self) -> str:
        read = self.labels - self.unreadable
        if read < FEWEST:
            return f"Too few verdicts to tell: {read}, and {FEWEST} are the least."
        if self.kappa is None:
            return "One of the two says the same of everything; add labels of the other verdicts."
        if self.kappa < USABLE:
            return f"Do not rely on it: kappa is {self.kappa:.2f}, and {USABLE} is the least."
        return f"Usable: kappa is {self.kappa:.2f}."


def load_labels(path: Path) -> list[Label]:
    """Raises SourceNotFound, or UsageError naming the line."""
    if not path.is_file():
        raise SourceNotFound(f"There are no labels at {path}.")
    labels = []
    for number, line in enumerate(path.read_text(encoding="utf-8").split("\n"), start=1):
        if not line.strip():
            continue
        try:
            labels.append(Label.model_validate_json(line))
        except ValidationError as error:
            raise UsageError(f"{path}, line {number}: {first_error(error)}.") from error
    if not labels:
        raise UsageError(f"{path} holds no labels.")
    return labels


async def agreement(labels: Sequence[Label], judge: ModelJudge) -> list[Agreement]:
    """One row a judgement, in the order of the labels. Raises ModelError."""
    said: dict[str, list[tuple[Label, str | None]]] = defaultdict(list)
    for label in labels:
        material = Material(
            question=label.question,
            passages=label.passages,
            answer=label.answer,
            reference=label.reference,
        )
        said[label.judgement].append((label, await judge.verdict(label.judgement, material)))
    return [_agreement(judgement, pairs) for judgement, pairs in said.items()]


def _agreement(judgement: str, pairs: Sequence[tuple[Label, str | None]]) -> Agreement:
    read = [(label.label, verdict) for label, verdict in pairs if verdict is not None]
    return Agreement(
        judgement=judgement,
        labels=len(pairs),
        unreadable=len(pairs) - len(read),
        agreed=sum(person == verdict for person, verdict in read) / len(pairs),
        kappa=kappa(read),
        differing=[
            (label.id, label.label, verdict or "nothing readable")
            for label, verdict in pairs
            if label.label != verdict
        ],
    )


def kappa(pairs: Sequence[tuple[str, str]]) -> float | None:
    """Cohen's kappa; None where it is not defined or means nothing."""
    people = [person for person, _ in pairs]
    judged = [verdict for _, verdict in pairs]
    if len(set(people)) < 2 or len(set(judged)) < 2:
        return None
    from sklearn.metrics import cohen_kappa_score

    return float(cohen_kappa_score(people, judged, labels=list(VERDICTS)))
