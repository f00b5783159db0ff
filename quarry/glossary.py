"""Other words for terms, per tenant: what people here say and what documents say.

    tenants:
      default:
        PTO: [paid time off, vacation]
        laid off: [severance, termination]

A question that holds a term is also searched for its other words.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import regex
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from quarry.errors import ConfigError
from quarry.settings import Settings
from quarry.settings_file import read_yaml
from quarry.text import analyze, clean

MOST_EXPANSIONS = 20
"""Other words of one question at most; more would drown it."""

_Words = Annotated[list[Annotated[str, Field(min_length=1, max_length=200)]], Field(min_length=1)]


class _File(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    tenants: dict[str, dict[str, _Words]]


@dataclass(frozen=True, slots=True)
class _Term:
    name: str
    tokens: tuple[str, ...]
    """Analysed; empty for a term of stop words, such as IT."""
    words: tuple[str, ...]

    def is_in(self, question: str, tokens: Sequence[str]) -> bool:
        if not self.tokens:  # as it is written: IT is a department, it is not
            return bool(regex.search(rf"\b{regex.escape(self.name)}\b", question))
        width = len(self.tokens)
        return any(
            tuple(tokens[start : start + width]) == self.tokens
            for start in range(len(tokens) - width + 1)
        )


@dataclass(frozen=True, slots=True)
class Glossary:
    terms: Mapping[str, tuple[_Term, ...]]
    """By tenant."""

    def expansions(self, question: str, tenant: str) -> tuple[str, ...]:
        """Other words for the terms of a cleaned question that it does not hold already."""
        tokens = analyze(question, codes=())
        found = [
            word
            for term in self.terms.get(tenant, ())
            if term.is_in(question, tokens)
            for word in term.words
            if not set(analyze(word)) <= set(tokens)
        ]
        return tuple(dict.fromkeys(found))[:MOST_EXPANSIONS]


def glossary_of(settings: Settings) -> Glossary | None:
    """What the settings name, if anything. Raises ConfigError as load_glossary."""
    path = settings.retrieval.rewrite.glossary_file
    return load_glossary(path) if path else None


def load_glossary(path: Path) -> Glossary:
    """Raises ConfigError for a file that cannot be read or is no glossary."""
    try:
        file = _File.model_validate(read_yaml(path, named_by="retrieval.rewrite.glossary_file"))
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        key = ".".join(str(part) for part in first["loc"]) or "tenants"
        raise ConfigError(f"{path}: '{key}' is not right: {first['msg']}.") from None
    return Glossary({tenant: _terms(path, terms) for tenant, terms in file.tenants.items()})


def _terms(path: Path, terms: Mapping[str, Sequence[str]]) -> tuple[_Term, ...]:
    if not all(clean(name) for name in terms):
        raise ConfigError(f"{path}: a term is empty; write the words that people ask with.")
    return tuple(
        _Term(clean(name), tuple(analyze(clean(name), codes=())), tuple(map(clean, words)))
        for name, words in terms.items()
    )
