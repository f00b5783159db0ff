"""The filter as a SQLite condition. Values and metadata keys are bound, never spelled out."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any, TypeAlias

from quarry.access.filters import (
    And,
    Compare,
    Everything,
    Filter,
    In,
    Not,
    Op,
    Or,
    ReadableBy,
)
from quarry.access.labels import COLUMNS, ORDERED, Key, date_key, kind, operand, scalar_key
from quarry.access.versions import version_key
from quarry.records import Labels

Sql: TypeAlias = tuple[str, list[Key]]

# S608 below: `table` is a checked name, everything else in the text is a constant of this module.
_TABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_TYPES = {"text": "'text'", "number": "'integer', 'real'", "truth": "'true', 'false'"}
NOTHING: Sql = ("0", [])


def sql_columns(labels: Labels) -> dict[str, Any]:
    """Labels as the columns that `to_sql` asks about."""
    return {
        "source": labels.source,
        "tenant": labels.tenant,
        "series": labels.series,
        "version_key": version_key(labels.version),
        "status": labels.status.value,
        "effective": date_key(labels.effective) or None,
        "acl": json.dumps(labels.acl),
        "metadata": json.dumps({k: scalar_key(v) for k, v in labels.metadata.items()}),
    }


def to_sql(filter: Filter, *, table: str) -> Sql:
    """A condition on the label columns of `table` (a name or alias) and its parameters, in order.

    Exactly as `matches` says. Raises FilterError for a bad field or value.
    """
    if not _TABLE.fullmatch(table):
        raise ValueError(f"not a table name: {table!r}")
    return _condition(filter, table)


def _condition(filter: Filter, table: str) -> Sql:
    if isinstance(filter, Everything):
        return "1", []
    if isinstance(filter, And | Or):
        return _joined(filter, table)
    if isinstance(filter, Not):
        text, values = _condition(filter.part, table)
        return f"NOT coalesce({text}, 0)", values  # NULL is "no" here, so its `not` is "yes"
    if isinstance(filter, ReadableBy):
        marks = _marks(filter.scopes)
        inner = f"SELECT 1 FROM json_each({table}.acl) WHERE value IN ({marks})"  # noqa: S608
        return f"EXISTS ({inner})", list(filter.scopes)
    if isinstance(filter, In):
        return _any_of(filter, table)
    return _comparison(filter, table)


def _joined(filter: And | Or, table: str) -> Sql:
    word, empty = (" AND ", "1") if isinstance(filter, And) else (" OR ", "0")
    parts = [_condition(part, table) for part in filter.parts]
    if not parts:
        return empty, []
    return f"({word.join(text for text, _ in parts)})", [v for _, values in parts for v in values]


def _any_of(filter: In, table: str) -> Sql:
    keys = [operand(filter.field, value) for value in filter.values]
    wanted = [key for key in keys if key is not None]
    if not wanted:
        return NOTHING
    if column := _column(filter.field, table):
        return f"{column} IN ({_marks(wanted)})", wanted
    tests = []
    values: list[Key] = []
    for name, types in _TYPES.items():
        if some := [key for key in wanted if kind(key) == name]:
            tests.append(f"(type IN ({types}) AND value IN ({_marks(some)}))")
            values += some
    return _any_value(filter.field, " OR ".join(tests), values, table)


def _comparison(filter: Compare, table: str) -> Sql:
    wanted = operand(filter.field, filter.value)
    if wanted is None:
        return NOTHING
    column = _column(filter.field, table)
    if column is None:
        return _metadata(filter.field, filter.op, wanted, table)
    empty = "0" if filter.field == "effective" else "''"
    return f"({column} <> {empty} AND {column} {filter.op.value} ?)", [wanted]


def _column(field: str, table: str) -> str | None:
    name = COLUMNS.get(field)
    return f"{table}.{name}" if name else None


def _metadata(field: str, op: Op, wanted: Key, table: str) -> Sql:
    """json_each compares keys as text, so no key can be read as a path."""
    same_kind = f"type IN ({_TYPES[kind(wanted)]})"
    if op in ORDERED and kind(wanted) == "truth":
        return NOTHING
    if op is Op.NE:
        return _any_value(field, f"NOT ({same_kind} AND value = ?)", [wanted], table)
    return _any_value(field, f"{same_kind} AND value {op.value} ?", [wanted], table)


def _any_value(field: str, test: str, values: list[Key], table: str) -> Sql:
    inner = f"SELECT 1 FROM json_each({table}.metadata) WHERE key = ? AND ({test})"  # noqa: S608
    return f"EXISTS ({inner})", [field, *values]


def _marks(values: Sequence[object]) -> str:
    return ", ".join("?" * len(values))
