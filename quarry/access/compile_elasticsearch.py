"""The filter as an Elasticsearch query, and labels as the fields that it asks about.

Metadata is one `flattened` field, which holds text only. `elasticsearch_fields` therefore writes
each value with a letter for its kind before it, numbers in a form that sorts by size, so that
numbers compare as numbers and 5 is not "5".
"""

from __future__ import annotations

import re
import struct
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
from quarry.access.labels import (
    COLUMNS,
    Key,
    clip,
    date_key,
    is_clipped,
    loosened,
    operand,
    scalar_key,
)
from quarry.access.versions import version_key
from quarry.ids import digest
from quarry.records import Labels

Query: TypeAlias = dict[str, Any]

EVERY: Query = {"match_all": {}}
NONE: Query = {"match_none": {}}
_RANGE = {Op.LT: "lt", Op.LE: "lte", Op.GT: "gt", Op.GE: "gte"}
_PLAIN_KEY = re.compile(r"[A-Za-z0-9_-]{1,64}")


def elasticsearch_fields(labels: Labels) -> dict[str, Any]:
    """Labels as the fields that `to_elasticsearch` asks about."""
    return {
        "source": clip(labels.source),
        "tenant": clip(labels.tenant),
        "acl": [clip(scope) for scope in labels.acl],
        "series": clip(labels.series),
        "version_key": version_key(labels.version),
        "status": labels.status.value,
        "effective": date_key(labels.effective) or None,
        "metadata": {flat_key(k): flat_value(scalar_key(v)) for k, v in labels.metadata.items()},
    }


def flat_key(name: str) -> str:
    """A metadata key that a flattened field takes: no dots, no NUL, bounded."""
    return name if _PLAIN_KEY.fullmatch(name) else f"~{digest(name)}"


def flat_value(key: Key, *, cut: bool = True) -> str:
    """A metadata value as text that sorts like it within its kind."""
    if isinstance(key, bool):
        return "bt" if key else "bf"
    if isinstance(key, str):
        return "s" + (clip(key) if cut else key)
    (bits,) = struct.unpack(">Q", struct.pack(">d", key + 0.0))
    ordered = bits ^ (0xFFFF_FFFF_FFFF_FFFF if bits >> 63 else 1 << 63)
    return f"n{ordered:016x}"


def to_elasticsearch(filter: Filter) -> Query:
    """A query for filter context. Finds all that `matches` finds, and more only where a value is
    longer than LABEL_BYTES. Raises FilterError for a bad field or value.
    """
    return _query(filter, wanted=True)


def _query(filter: Filter, *, wanted: bool) -> Query:
    """`wanted` False: all that does not match. Negation goes down to the comparisons, because the
    opposite of a query that finds too much would find too little."""
    if isinstance(filter, Not):
        return _query(filter.part, wanted=not wanted)
    if isinstance(filter, Everything):
        return EVERY if wanted else NONE
    if isinstance(filter, And | Or):
        parts = [_query(part, wanted=wanted) for part in filter.parts]
        return _all(parts) if isinstance(filter, And) == wanted else _any(parts)
    if isinstance(filter, ReadableBy):
        found: Query = {"terms": {"acl": [clip(scope) for scope in filter.scopes]}}
        return found if wanted else _without(found)
    found, exact = _any_of(filter) if isinstance(filter, In) else _comparison(filter)
    if wanted:
        return found
    return _without(found) if exact else EVERY


def _any_of(filter: In) -> tuple[Query, bool]:
    field = _field(filter.field)
    keys = [operand(filter.field, value) for value in filter.values]
    wanted = [key for key in keys if key is not None]
    terms = [_term(filter.field, key) for key in wanted]
    exact = not any(isinstance(key, str) and is_clipped(key) for key in wanted)
    return ({"terms": {field: terms}} if terms else NONE), exact


def _comparison(filter: Compare) -> tuple[Query, bool]:
    """A query, and whether it is exact: if not, it finds too much."""
    field, key = _field(filter.field), operand(filter.field, filter.value)
    if key is None:
        return NONE, True
    exact = not (isinstance(key, str) and is_clipped(key))
    if filter.op is Op.EQ:
        return {"term": {field: _term(filter.field, key)}}, exact
    if filter.op is Op.NE:
        present = {"range": {field: _present(filter.field)}}
        other = _without({"term": {field: _term(filter.field, key)}})
        return (_all([present, other]) if exact else present), exact
    if isinstance(key, bool):
        return NONE, True
    return {"range": {field: _bounds(filter, key, exact=exact)}}, exact


def _field(name: str) -> str:
    return COLUMNS.get(name) or f"metadata.{flat_key(name)}"


def _term(name: str, key: Key) -> int | str:
    if name == "effective":
        return int(key)
    return clip(str(key)) if name in COLUMNS else flat_value(key)


def _present(name: str) -> Query:
    """The range of all that a document may hold in a field; "" stands for nothing in columns."""
    if name == "effective":
        return {"gt": 0}
    return {"gt": ""} if name in COLUMNS else {"gte": "b", "lt": "t"}


def _bounds(filter: Compare, key: Key, *, exact: bool) -> Query:
    low, high = _kind_bounds(filter.field, key)
    op, bound = (filter.op, key) if exact else loosened(filter.op, str(key))
    spelled = bound if filter.field in COLUMNS else flat_value(bound, cut=False)
    if op in (Op.LT, Op.LE):
        return {**low, _RANGE[op]: spelled}
    return {_RANGE[op]: spelled, **high}


def _kind_bounds(name: str, key: Key) -> tuple[Query, Query]:
    """Both ends of the values of this key's kind; a flattened range needs them."""
    if name in COLUMNS:
        return _present(name), {}
    first, past = ("s", "t") if isinstance(key, str) else ("n", "o")
    return {"gte": first}, {"lt": past}


def _all(parts: list[Query]) -> Query:
    return {"bool": {"filter": parts}} if parts else EVERY


def _any(parts: list[Query]) -> Query:
    return {"bool": {"should": parts, "minimum_should_match": 1}} if parts else NONE


def _without(query: Query) -> Query:
    return {"bool": {"must_not": [query]}}
