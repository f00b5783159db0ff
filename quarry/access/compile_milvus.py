"""The filter as a Milvus expression, in the grammar that Milvus 2.3 and Milvus Lite both take.

Both differ in what `not` makes of a comparison that cannot be made: a server says true, Lite says
unknown. So negation is brought down to the comparisons, and each one spells out what else matches.
"""

from __future__ import annotations

import re
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
from quarry.access.labels import (
    COLUMNS,
    LABEL_BYTES,
    ORDERED,
    Key,
    clip,
    date_key,
    is_clipped,
    operand,
    scalar_key,
)
from quarry.access.versions import version_key
from quarry.records import Labels

EVERY = ""
NONE = 'source == ""'
"""Every document has a source."""
_SPELL = {op: op.value for op in Op} | {Op.EQ: "=="}
_PLAIN_KEY = re.compile(r"[A-Za-z0-9_ .-]{1,128}")
_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
_SMALLEST = "-1.7976931348623157e308"


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
        "metadata": {k: _cut(scalar_key(v)) for k, v in labels.metadata.items()},
    }


def to_milvus(filter: Filter) -> str:
    """An expression, "" for every row. Finds all that `matches` finds, and more only where a value
    is longer than LABEL_BYTES or a metadata key is not plain. Raises FilterError for a bad field
    or value.
    """
    return _expression(filter, wanted=True)


def _expression(filter: Filter, *, wanted: bool) -> str:
    """`wanted` False: an expression for all that does not match."""
    if isinstance(filter, Not):
        return _expression(filter.part, wanted=not wanted)
    if isinstance(filter, Everything):
        return EVERY if wanted else NONE
    if isinstance(filter, And | Or):
        parts = [_expression(part, wanted=wanted) for part in filter.parts]
        return _all(parts) if isinstance(filter, And) == wanted else _any(parts)
    if isinstance(filter, ReadableBy):
        return _readable(filter, wanted=wanted)
    if isinstance(filter, In) and filter.field not in COLUMNS:
        equals = [Compare(filter.field, Op.EQ, value) for value in filter.values]
        return _expression(Or(tuple(equals)), wanted=wanted)
    if isinstance(filter, In):
        return _any_of(filter, wanted=wanted)
    if filter.field in COLUMNS:
        return _column(filter, wanted=wanted)
    return _metadata(filter, wanted=wanted)


def _readable(filter: ReadableBy, *, wanted: bool) -> str:
    if not filter.scopes:
        return NONE if wanted else EVERY
    scopes = ", ".join(_text(clip(scope)) for scope in filter.scopes)
    found = f'json_contains_any(acl["scopes"], [{scopes}])'
    return found if wanted else f"not {found}"


def _any_of(filter: In, *, wanted: bool) -> str:
    keys = [operand(filter.field, value) for value in filter.values]
    some = [key for key in keys if key is not None]
    if not some:
        return NONE if wanted else EVERY
    if not wanted and any(_is_cut(key) for key in some):
        return EVERY
    spelled = ", ".join(_literal(_cut(key)) for key in some)
    column = COLUMNS[filter.field]
    return f"{column} in [{spelled}]" if wanted else f"not ({column} in [{spelled}])"


def _column(filter: Compare, *, wanted: bool) -> str:
    """Columns are never null: "" or 0 stands for what a document lacks."""
    key = operand(filter.field, filter.value)
    if key is None:
        return NONE if wanted else EVERY
    column = COLUMNS[filter.field]
    present = f"{column} != {'0' if filter.field == 'effective' else _text('')}"
    if _is_cut(key):
        return _cut_column(column, filter.op, str(key), present) if wanted else EVERY
    test = f"{column} {_SPELL[filter.op]} {_literal(key)}"
    found = test if filter.op is Op.EQ else f"({present} and {test})"
    return found if wanted else f"not ({found})"


def _cut_column(column: str, op: Op, text: str, present: str) -> str:
    """A stored text may be cut, which makes it smaller: lower bounds give way, upper ones hold."""
    if op is Op.EQ:
        return f"{column} == {_text(clip(text))}"
    if op is Op.NE:
        return present
    if op in (Op.GT, Op.GE):
        return f"{column} >= {_text(clip(text, LABEL_BYTES - 8))}"
    return f"({present} and {column} {_SPELL[op]} {_text(text)})"


def _metadata(filter: Compare, *, wanted: bool) -> str:
    key = operand(filter.field, filter.value)
    if key is None or (isinstance(key, bool) and filter.op in ORDERED):
        return NONE if wanted else EVERY
    if not _PLAIN_KEY.fullmatch(filter.field):
        return EVERY  # the server's grammar has no way to spell it
    path = f'metadata["{filter.field}"]'
    if filter.op is Op.NE:
        same = _metadata(Compare(filter.field, Op.EQ, filter.value), wanted=not wanted)
        return _all([_exists(path), same]) if wanted else _any([f"not {_exists(path)}", same])
    if wanted:
        return _found(path, filter.op, key)
    return EVERY if _is_cut(key) else _not_found(path, filter.op, key)


def _found(path: str, op: Op, key: Key) -> str:
    if not _is_cut(key):
        return f"{path} {_SPELL[op]} {_literal(key)}"
    text = str(key)
    if op is Op.EQ:
        return f"{path} == {_text(clip(text))}"
    if op in (Op.GT, Op.GE):
        return f"{path} >= {_text(clip(text, LABEL_BYTES - 8))}"
    return f"{path} {_SPELL[op]} {_text(text)}"


def _not_found(path: str, op: Op, key: Key) -> str:
    """Lacks it, or differs, or is of a kind that has no order with this key."""
    parts = [f"not {_exists(path)}", f"not ({path} {_SPELL[op]} {_literal(key)})"]
    if op is Op.EQ:
        if key in (0, 1):  # in Lite true is 1, so each must find the other one too
            twin = int(key) if isinstance(key, bool) else bool(key)
            parts.append(f"{path} == {_literal(twin)}")
    elif isinstance(key, str):
        parts.append(f"{path} >= {_SMALLEST}")
    else:
        parts += [f'{path} >= ""', f"{path} == true", f"{path} == false"]
    return _any(parts)


def _exists(path: str) -> str:
    return f"(exists {path})"  # a server reads `exists x or y` as `exists (x or y)`


def _literal(key: Key) -> str:
    if isinstance(key, bool):
        return "true" if key else "false"
    return _text(key) if isinstance(key, str) else repr(key)


def _text(text: str) -> str:
    """A string literal; only the escapes that both grammars know."""
    return '"' + "".join(_ESCAPES.get(c, c) for c in text) + '"'


def _cut(key: Key) -> Key:
    return clip(key) if isinstance(key, str) else key


def _is_cut(key: Key) -> bool:
    return isinstance(key, str) and is_clipped(key)


def _all(parts: list[str]) -> str:
    if NONE in parts:
        return NONE
    return _joined(" and ", [part for part in parts if part != EVERY]) or EVERY


def _any(parts: list[str]) -> str:
    if EVERY in parts:
        return EVERY
    return _joined(" or ", [part for part in parts if part != NONE]) or NONE


def _joined(word: str, parts: list[str]) -> str:
    return f"({word.join(parts)})" if len(parts) > 1 else "".join(parts)
