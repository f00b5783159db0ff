"""The filter as a Milvus expression, in the grammar that Milvus 2.3 and Milvus Lite both take.

Both differ in what `not` makes of a comparison that cannot be made: a server says true, Lite says
unknown. So negation is brought down to the comparisons, and each one spells out what else matches.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from quarry.access import milvus_leaves, milvus_like
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
from quarry.access.labels import COLUMNS, clip, date_key, loosened, operand, scalar_key
from quarry.access.milvus_leaves import (
    EVERY,
    NONE,
    SPELL,
    all_of,
    any_of,
    cut,
    is_cut,
    literal,
    quoted,
)
from quarry.access.versions import version_key
from quarry.records import Labels


def milvus_fields(labels: Labels) -> dict[str, Any]:
    """Labels as the fields that `to_milvus` asks about; acl and metadata are JSON fields."""
    return {
        "source": clip(labels.source),
        "tenant": clip(labels.tenant),
        "series": clip(labels.series),
        "version_key": version_key(labels.version),
        "status": labels.status.value,
        "effective": date_key(labels.effective),
        "acl": {"scopes": [clip(scope) for scope in labels.acl]},  # 2.3 refuses a bare list
        "metadata": {k: cut(scalar_key(v)) for k, v in labels.metadata.items()},
    }


@dataclass(frozen=True)
class _Dialect:
    """How a kind of Milvus is asked about JSON fields: what matches, or all that does not."""

    readable: Callable[[ReadableBy, bool], str]
    metadata: Callable[[Compare, bool], str]


_SERVER = _Dialect(milvus_leaves.readable, milvus_leaves.metadata)
_LITE = _Dialect(milvus_like.readable, milvus_like.metadata)


def to_milvus(filter: Filter, *, lite: bool = False) -> str:
    """An expression, "" for every row. Finds all that `matches` finds, and more only where a value
    is longer than LABEL_BYTES or a metadata key is not plain.

    `lite`: asks about JSON fields in the way that Milvus Lite is fast at; it then finds more also
    where a text holds characters that LIKE gives a meaning, and takes true for 1. Raises
    FilterError for a bad field or value.
    """
    return _expression(filter, _LITE if lite else _SERVER, True)


def _expression(filter: Filter, dialect: _Dialect, wanted: bool) -> str:
    if isinstance(filter, Not):
        return _expression(filter.part, dialect, not wanted)
    if isinstance(filter, Everything):
        return EVERY if wanted else NONE
    if isinstance(filter, And | Or):
        parts = [_expression(part, dialect, wanted) for part in filter.parts]
        return all_of(parts) if isinstance(filter, And) == wanted else any_of(parts)
    if isinstance(filter, ReadableBy):
        return dialect.readable(filter, wanted)
    if isinstance(filter, In) and filter.field not in COLUMNS:
        equals = [Compare(filter.field, Op.EQ, value) for value in filter.values]
        return _expression(Or(tuple(equals)), dialect, wanted)
    if isinstance(filter, In):
        return _any_of(filter, wanted)
    if filter.field in COLUMNS:
        return _column(filter, wanted)
    return dialect.metadata(filter, wanted)


def _any_of(filter: In, wanted: bool) -> str:
    keys = [operand(filter.field, value) for value in filter.values]
    some = [key for key in keys if key is not None]
    if not some:
        return NONE if wanted else EVERY
    if not wanted and any(is_cut(key) for key in some):
        return EVERY
    spelled = ", ".join(literal(cut(key)) for key in some)
    column = COLUMNS[filter.field]
    return f"{column} in [{spelled}]" if wanted else f"not ({column} in [{spelled}])"


def _column(filter: Compare, wanted: bool) -> str:
    """Columns are never null: "" or 0 stands for what a document lacks."""
    key = operand(filter.field, filter.value)
    if key is None:
        return NONE if wanted else EVERY
    column = COLUMNS[filter.field]
    present = f"{column} != {'0' if filter.field == 'effective' else quoted('')}"
    if is_cut(key):
        return _cut_column(column, filter.op, str(key), present) if wanted else EVERY
    test = f"{column} {SPELL[filter.op]} {literal(key)}"
    found = test if filter.op is Op.EQ else f"({present} and {test})"
    return found if wanted else f"not ({found})"


def _cut_column(column: str, op: Op, text: str, present: str) -> str:
    if op is Op.NE:
        return present
    op, text = loosened(op, text)
    test = f"{column} {SPELL[op]} {quoted(text)}"
    return f"({present} and {test})" if op in (Op.LT, Op.LE) else test
