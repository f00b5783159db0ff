"""Question sets: one JSON object a line, in the form of `schema.json` beside this file.

Evidence is given as phrases of the documents and never as chunk ids, so that a set outlives every
change of chunking.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator

from evals.datasets.files import lines_of
from quarry.errors import SourceNotFound, UsageError
from quarry.ids import digest
from quarry.text import folded


class Kind(StrEnum):
    """What a case tests."""

    ANSWERABLE = "answerable"
    TWO_PART = "two_part"
    PARAPHRASE = "paraphrase"
    IDENTIFIER = "identifier"
    CURRENT_VERSION = "current_version"
    REGION = "region"
    UNANSWERABLE = "unanswerable"
    FORBIDDEN = "forbidden"
    INJECTION = "injection"
    FOLLOW_UP = "follow_up"


def _compiles(pattern: str) -> str:
    try:
        re.compile(pattern)
    except re.error as error:
        raise ValueError(f"'{pattern}' is not a regular expression: {error}") from error
    return pattern


Pattern = Annotated[str, Field(min_length=1), AfterValidator(_compiles)]
Phrase = Annotated[str, Field(min_length=1)]


class Turn(BaseModel):
    """One earlier message of the conversation."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    role: Literal["user", "assistant"]
    content: str


class Case(BaseModel):
    """One question, who asks it, and what a right answer rests on, holds and leaves out."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    id: str = Field(min_length=1, description="Unique in its set and stable: flips are by id.")
    person: str = Field("", description="Who asks, a name of the users file; empty: nobody.")
    groups: tuple[str, ...] = Field((), description="Groups of the asker, if no person is named.")
    conversation: tuple[Turn, ...] = Field((), description="What was said before, oldest first.")
    question: str = Field(min_length=1, description="The question as it is typed.")
    filter: str = Field("", description="A filter in Quarry's filter language.")
    kind: Kind = Field(description="What the case tests.")
    evidence: tuple[tuple[Phrase, ...], ...] = Field(
        (),
        description="Pieces of evidence that are all needed; each is a list of phrases, any of "
        "which marks a chunk that holds the piece.",
    )
    relevant: dict[str, Annotated[int, Field(ge=0)]] = Field(
        default_factory=dict,
        description="Judged documents in place of evidence, as collections have them: the uri, or "
        "the record's name in a file of many, and its grade; 0: judged and not relevant.",
    )
    must: tuple[Pattern, ...] = Field(
        (), description="Regular expressions; each must match the answer, case ignored."
    )
    must_not: tuple[Pattern, ...] = Field(
        (), description="Regular expressions; none may match the answer, case ignored."
    )
    status: Literal["answered", "refused"] = Field(description="Expected status of the answer.")
    slices: tuple[str, ...] = Field((), description="Names of groups of cases to report apart.")
    held_out: bool = Field(False, description="Never used for tuning, only for reporting.")

    @model_validator(mode="after")
    def _consistent(self) -> Case:
        if self.person and self.groups:
            raise ValueError("name a person or groups, not both")
        if not all(self.evidence):
            raise ValueError("a piece of evidence needs at least one phrase")
        if self.evidence and self.relevant:
            raise ValueError("give evidence or relevant documents, not both")
        if self.status == "answered" and not (self.evidence or self.relevant or self.must):
            raise ValueError("an answered case needs evidence, relevant documents or 'must'")
        if self.status == "refused" and (self.evidence or self.relevant or self.must):
            raise ValueError("a refused case has no evidence, no documents and no 'must'")
        return self

    @property
    def judged(self) -> bool:
        """Whether the case says what a search should find; 0 alone is no such thing."""
        return bool(self.evidence) or any(self.relevant.values())

    @property
    def mark(self) -> str:
        """Another one where other things are asked, or others are right. Who asks, and where it is
        looked for, may be just what is compared."""
        return digest(self.model_dump_json(include=_ASKED_AND_RIGHT), size=6)


_ASKED_AND_RIGHT = {
    *("question", "conversation", "status"),
    *("evidence", "relevant", "must", "must_not"),
}


def load_questions(path: Path) -> list[Case]:
    """The cases of a set, in file order.

    Raises SourceNotFound, or UsageError naming the line that does not fit.
    """
    if not path.is_file():
        raise SourceNotFound(f"There is no question set at {path}.")
    cases: dict[str, Case] = {}
    for number, line in lines_of(path):
        try:
            case = Case.model_validate_json(line)
        except ValidationError as error:
            raise UsageError(f"{path}, line {number}: {first_error(error)}.") from error
        if case.id in cases:
            raise UsageError(f"{path}, line {number}: the id '{case.id}' was used before.")
        cases[case.id] = case
    if not cases:
        raise UsageError(f"{path} holds no questions.")
    return list(cases.values())


def load_all(paths: Sequence[Path]) -> list[Case]:
    """The cases of several sets as one. Raises as `load_questions`, and for an id in two sets."""
    cases: dict[str, Case] = {}
    for path in paths:
        for case in load_questions(path):
            if case.id in cases:
                raise UsageError(f"{path}: the id '{case.id}' is in another set as well.")
            cases[case.id] = case
    return list(cases.values())


def write_questions(cases: Iterable[Case], path: Path) -> int:
    """Writes a set, without the keys that are left at their default; gives how many cases."""
    lines = [case.model_dump_json(exclude_defaults=True) + "\n" for case in cases]
    path.write_text("".join(lines), encoding="utf-8")
    return len(lines)


def json_schema() -> dict[str, Any]:
    """The JSON schema of one line, as published in `schema.json`."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **Case.model_json_schema(mode="validation"),
    }


def evidence_ranks(case: Case, texts: Sequence[str]) -> list[int | None]:
    """For each piece of evidence the 1-based rank of the first text that holds it, or None.

    Texts and phrases are compared after cleaning, with white space and case ignored.
    """
    held = [folded(text) for text in texts]
    return [
        next(
            (
                rank
                for rank, text in enumerate(held, start=1)
                if any(folded(phrase) in text for phrase in phrases)
            ),
            None,
        )
        for phrases in case.evidence
    ]


def first_error(error: ValidationError) -> str:
    """The first thing that is wrong, with the key it is wrong in; never the value."""
    first = error.errors(include_input=False, include_url=False)[0]
    place = ".".join(str(part) for part in first["loc"])
    return f"'{place}' is not right: {first['msg']}" if place else str(first["msg"])
