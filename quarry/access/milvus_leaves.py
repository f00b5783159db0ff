"""What a Milvus expression can say about one field, in a grammar that 2.3 and Lite both take."""

from __future__ import annotations

import re

from quarry.access.filters import Compare, Op, ReadableBy
from quarry.access.labels import ORDERED, Key, clip, is_clipped, loosened, operand

EVERY = ""
NONE = 'source == ""'
"""Every document has a source."""
SPELL = {op: op.value for op in Op} | {Op.EQ: "=="}
PLAIN_KEY = re.compile(r"[A-Za-z0-9_ .-]{1,128}")
_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
_SMALLEST = "-1.7976931348623157e308"


def readable(filter: ReadableBy, wanted: bool) -> str:
    """Rows that one of the scopes may read; `wanted` False: all others."""
    if not filter.scopes:
        return NONE if wanted else EVERY
    scopes = ", ".join(quoted(clip(scope)) for scope in filter.scopes)
    found = f'json_contains_any(acl["scopes"], [{scopes}])'
    return found if wanted else f"not {found}"


def metadata(filter: Compare, wanted: bool) -> str:
    """Rows with a metadata value that compares so; `wanted` False: all others."""
    key = operand(filter.field, filter.value)
    if key is None or (isinstance(key, bool) and filter.op in ORDERED):
        return NONE if wanted else EVERY
    if not PLAIN_KEY.fullmatch(filter.field):
        return EVERY  # the server's grammar has no way to spell it
    path = f'metadata["{filter.field}"]'
    if filter.op is Op.NE:
        same = metadata(Compare(filter.field, Op.EQ, filter.value), not wanted)
        return all_of([exists(path), same]) if wanted else any_of([f"not {exists(path)}", same])
    if wanted:
        return _found(path, filter.op, key)
    return EVERY if is_cut(key) else _not_found(path, filter.op, key)


def _found(path: str, op: Op, key: Key) -> str:
    if is_cut(key):
        op, key = loosened(op, str(key))
    return f"{path} {SPELL[op]} {literal(key)}"


def _not_found(path: str, op: Op, key: Key) -> str:
    """Lacks it, or differs, or is of a kind that has no order with this key."""
    parts = [f"not {exists(path)}", f"not ({path} {SPELL[op]} {literal(key)})"]
    if op is Op.EQ:
        if key in (0, 1):  # in Lite true is 1, so each must find the other one too
            twin = int(key) if isinstance(key, bool) else bool(key)
            parts.append(f"{path} == {literal(twin)}")
    elif isinstance(key, str):
        parts.append(f"{path} >= {_SMALLEST}")
    else:
        parts += [f'{path} >= ""', f"{path} == true", f"{path} == false"]
    return any_of(parts)


def exists(path: str) -> str:
    return f"(exists {path})"  # a server reads `exists x or y` as `exists (x or y)`


def literal(key: Key) -> str:
    if isinstance(key, bool):
        return "true" if key else "false"
    return quoted(key) if isinstance(key, str) else repr(key)


def quoted(text: str) -> str:
    """A string literal; only the escapes that both grammars know."""
    return '"' + "".join(_ESCAPES.get(c, c) for c in text) + '"'


def cut(key: Key) -> Key:
    return clip(key) if isinstance(key, str) else key


def is_cut(key: Key) -> bool:
    """Whether stores may hold only the first part of it."""
    return isinstance(key, str) and is_clipped(key)


def all_of(parts: list[str]) -> str:
    """The parts joined by `and`, without those that say nothing."""
    if NONE in parts:
        return NONE
    return _joined(" and ", [part for part in parts if part != EVERY]) or EVERY


def any_of(parts: list[str]) -> str:
    """The parts joined by `or`, without those that find nothing."""
    if EVERY in parts:
        return EVERY
    return _joined(" or ", [part for part in parts if part != NONE]) or NONE


def _joined(word: str, parts: list[str]) -> str:
    """In halves of halves: a server reads `a or b or c` as `(a or b) or c`, and refuses a search
    whose expressions lie more than some 48 deep in each other."""
    if len(parts) < 2:
        return "".join(parts)
    half = (len(parts) + 1) // 2
    return f"({_joined(word, parts[:half])}{word}{_joined(word, parts[half:])})"
