"""The filter on one document: the meaning that every compiled form must agree with."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

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
from quarry.access.labels import Key, comparable, kind, operand, stored
from quarry.records import Labels

_ORDER: dict[Op, Callable[[Any, Any], bool]] = {
    Op.LT: operator.lt,
    Op.LE: operator.le,
    Op.GT: operator.gt,
    Op.GE: operator.ge,
}


def matches(filter: Filter, labels: Labels) -> bool:
    """Whether a document with these labels is in. Raises FilterError for a bad field or value.

    A field that the document lacks matches no comparison, not even `!=`; so `not` of any
    comparison of it matches. Values of different kinds (text, number, true or false) are unequal
    and have no order.
    """
    if isinstance(filter, Everything):
        return True
    if isinstance(filter, And):
        return all(matches(part, labels) for part in filter.parts)
    if isinstance(filter, Or):
        return any(matches(part, labels) for part in filter.parts)
    if isinstance(filter, Not):
        return not matches(filter.part, labels)
    if isinstance(filter, ReadableBy):
        return not set(filter.scopes).isdisjoint(labels.acl)
    if isinstance(filter, In):
        return any(_compare(labels, Compare(filter.field, Op.EQ, value)) for value in filter.values)
    return _compare(labels, filter)


def _compare(labels: Labels, compare: Compare) -> bool:
    wanted = operand(compare.field, compare.value)
    held = stored(compare.field, labels)
    if wanted is None or held is None:
        return False
    return holds(held, compare.op, wanted)


def holds(held: Key, op: Op, wanted: Key) -> bool:
    """One comparison of two keys."""
    equal = kind(held) == kind(wanted) and held == wanted
    if op is Op.EQ:
        return equal
    if op is Op.NE:
        return not equal
    return comparable(held, wanted) and _ORDER[op](held, wanted)
