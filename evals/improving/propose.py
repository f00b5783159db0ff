"""Drafts of cases from what people asked and how they liked the answers.

A draft is no case before a person has read it: what was answered well becomes a whole case, with
the cited words as its evidence; what was not liked, or not rated, becomes a line that `quarry eval`
refuses to load until somebody has written what a right answer rests on.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic import AliasChoices, BaseModel, ConfigDict, Field, ValidationError

from evals.datasets.files import lines_of
from evals.datasets.questions import Case, Kind, Turn, first_error
from quarry.errors import SourceNotFound, UsageError
from quarry.ids import digest
from quarry.text import folded

DRAFT = "draft"
"""The slice of every draft; take it out when the case is accepted."""
_LONGEST_PHRASE = 160
_ORDER = ("up", "down", "")
_SENTENCE_END = re.compile(r"(?<=[.!?])\s")


class Quoted(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)

    quote: str


class Exchange(BaseModel):
    """One line of a log: a reply of the API with its question, and what was thought of it."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    question: str = Field(min_length=1)
    person: str = Field("", validation_alias=AliasChoices("person", "as"))
    groups: tuple[str, ...] | None = None
    conversation: tuple[Turn, ...] = ()
    filter: str = ""
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
    """One draft a question that no case asks yet, liked ones first and those without a rating
    last. The same words after another conversation, or with another filter, are another question.
    """
    seen = {_key(case) for case in known}
    lines: list[str] = []
    whole = skipped = 0
    for exchange in sorted(log, key=lambda each: _ORDER.index(each.rating)):
        key = _key(exchange)
        if key in seen:
            skipped += 1
            continue
        seen.add(key)
        draft = _draft(exchange)
        whole += _is_whole(draft)
        lines.append(json.dumps(draft, ensure_ascii=False))
    return Drafts(lines=lines, whole=whole, unfinished=len(lines) - whole, known=skipped)


def _draft(exchange: Exchange) -> dict[str, Any]:
    liked = exchange.rating == "up"
    answered = exchange.status == "answered"
    # A refusal that was not liked should have been an answer, and an answer that was not liked
    # rests on something else; of what nobody rated nothing is known. So somebody has to write the
    # evidence.
    status = exchange.status if liked else "answered"
    evidence = [[_phrase(each.quote)] for each in exchange.citations] if liked and answered else []
    return {
        "id": f"draft-{digest(*_key(exchange), size=4)}",
        "question": exchange.question,
        "kind": _kind(exchange, status).value,
        "evidence": [piece for piece in evidence if piece[0]],
        "status": status,
        "slices": [DRAFT],
        **_circumstances(exchange),
    }


def _kind(exchange: Exchange, status: str) -> Kind:
    if status == "refused":
        return Kind.UNANSWERABLE
    return Kind.FOLLOW_UP if exchange.conversation else Kind.ANSWERABLE


def _circumstances(exchange: Exchange) -> dict[str, Any]:
    """Who asked, after what, and about which documents; groups stand in place of the person's."""
    asker = {"groups": exchange.groups} if exchange.groups else {"person": exchange.person}
    given = asker | {
        "conversation": [turn.model_dump() for turn in exchange.conversation],
        "filter": exchange.filter,
    }
    return {name: value for name, value in given.items() if value}


def _key(asked: Exchange | Case) -> tuple[str, ...]:
    """What makes two questions one, as parts of a digest."""
    earlier = (folded(turn.content) for turn in asked.conversation)
    filters = (asked.filter,) if asked.filter else ()
    return (folded(asked.question), *earlier, *filters)


def _is_whole(draft: Mapping[str, Any]) -> bool:
    return draft["status"] == "refused" or bool(draft["evidence"])


def _phrase(quote: str) -> str:
    """The first sentence of a quote, or its beginning up to a word's end: short enough to outlive
    small edits."""
    first = _SENTENCE_END.split(quote.strip(), maxsplit=1)[0]
    if len(first) <= _LONGEST_PHRASE:
        return first
    return first[:_LONGEST_PHRASE].rsplit(" ", 1)[0]
