"""The filter as a tree. The language (`language.py`) parses into it, each store compiles from it.

Fields are the labels of a document: `source`, `tenant`, `series`, `version`, `status`, `effective`,
and any other name is a key of its metadata. Versions compare as versions (10 after 9), dates as
dates, numbers as numbers; a field that a document lacks matches no comparison, and so every `not`
of one.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from enum import StrEnum
from typing import TypeAlias

from quarry.records import Scalar

Value: TypeAlias = Scalar | date


class Op(StrEnum):
    EQ = "="
    NE = "!="
    LT = "<"
    LE = "<="
    GT = ">"
    GE = ">="


@dataclass(frozen=True, slots=True)
class Everything:
    """Matches every row."""


@dataclass(frozen=True, slots=True)
class Compare:
    field: str
    op: Op
    value: Value


@dataclass(frozen=True, slots=True)
class In:
    field: str
    values: tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class ReadableBy:
    """Rows whose ACL names one of these scopes."""

    scopes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class And:
    parts: tuple[Filter, ...]


@dataclass(frozen=True, slots=True)
class Or:
    parts: tuple[Filter, ...]


@dataclass(frozen=True, slots=True)
class Not:
    part: Filter


Filter: TypeAlias = Everything | Compare | In | ReadableBy | And | Or | Not
EVERYTHING = Everything()
