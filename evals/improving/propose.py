"""Drafts of cases from what people asked and how they liked the answers.

A draft is no case before a person has read it: what was answered well becomes a whole case, with
the cited words as its evidence; what was not liked becomes a line that `quarry eval` refuses to
load until somebody has written what a right answer rests on.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from evals.datasets.files import lines_of
from evals.datasets.questions import Case, Kind, first_error
from quarry.errors import SourceNotFound, UsageError
from quarry.ids import digest
from quarry.text import folded

DRAFT = "draft"
"""The slice of every draft; take it out when the case is accepted."""
_LONGEST_PHRASE = 160
_SENTENCE_END = re.compile(r"(?<=[.!?])\s")


class Quoted(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)

    quote: str


class Exchange(BaseModel):
    """One line of a log: a reply of the API with its question, and what was thought of it."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    question: str = Field(min_length=1)
    person: str = ""
    status: Literal["answered", "refused"]
    answer: str = ""
    citations: tuple[Quoted, ...] = ()
    rating: Literal["up", "down", ""] = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Drafts:
    lines: list[str]
    """JSON lines of a question set."""
    whole: int
    """Drafts that only have to be read."""
    unfinished: int
    """Drafts whose evidence a person must write."""
    known: int
    """Questions left out because a case asks them already, or an earlier line did."""


def load_log(path: Path) -> list[Exchange]:
    """Raises SourceNotFound, or UsageError naming the line."""
    if not path.is_file():
        raise SourceNotFound(f"There is no log at {path}.")
    found = []
    for number, line in lines_of(path):
        try:
            found.append(Exchange.model_validate_json(line))
        except ValidationError as error:
            raise UsageError(f"{path}, line {number}: {first_error(error)}.") from error
    return found


def propose(log: Iterable[Exchange], known: Iterable[Case] = ()) -> Drafts:
    """One draft a question that was rated and that no case asks yet, liked ones first."""
    seen = {folded(case.question) for case in known}
    rated = sorted((each for each in log if each.rating), key=lambda each: each.rating == "down")
    lines: list[str] = []
    whole = skipped = 0
    for exchange in rated:
        if folded(exchange.question) in seen:
            skipped += 1
            continue
        seen.add(folded(exchange.question))
        draft = _draft(exchange)
        whole += _is_whole(draft)
        lines.append(json.dumps(draft, ensure_ascii=False))
    return Drafts(lines=lines, whole=whole, unfinished=len(lines) - whole, known=skipped)


def _draft(exchange: Exchange) -> dict[str, Any]:
    liked = exchange.rating == "up"
    answered = exchange.status == "answered"
    # A refusal that was not liked should have been an answer, and an answer that was not liked
    # rests on something else: either way somebody has to write the evidence.
    status = exchange.status if liked else "answered"
    kind = Kind.UNANSWERABLE if status == "refused" else Kind.ANSWERABLE
    evidence = [[_phrase(each.quote)] for each in exchange.citations] if liked and answered else []
    draft: dict[str, Any] = {
        "id": f"draft-{digest(folded(exchange.question), size=4)}",
        "question": exchange.question,
        "kind": kind.value,
        "evidence": [piece for piece in evidence if piece[0]],
        "status": status,
        "slices": [DRAFT],
    }
    return draft | ({"person": exchange.person} if exchange.person else {})


def _is_whole(draft: Mapping[str, Any]) -> bool:
    return draft["status"] == "refused" or bool(draft["evidence"])


def _phrase(quote: str) -> str:
    """The first sentence of a quote, or its beginning up to a word's end: short enough to outlive
    small edits."""
    first = _SENTENCE_END.split(quote.strip(), maxsplit=1)[0]
    if len(first) <= _LONGEST_PHRASE:
        return first
    return first[:_LONGEST_PHRASE].rsplit(" ", 1)[0]
