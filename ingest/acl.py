"""Who may read a document, from the one field that says it: how `acl` is found, and what closes.

Closed in doubt: a key that seems to be meant for `acl`, at the top or inside another field, closes
the document where it stands, and so does an `acl` that is no list of scopes. An `acl` nearer to the
text wins over both.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any
from unicodedata import category, normalize

from quarry.access.labels import clean_text

MAX_SCOPES = 64
_MAX_KEY = 80
"""Characters of a key that are looked at and told, from its end."""
_ALMOST_ACL = (
    r"[\W_]*(?:(?:a[\W_]*)+(?:c[\W_]*)+(?:l[\W_]*)+s?"
    r"|acl[\W_]*lists?|acces+(?:[\W_]*control)?[\W_]*lists?)[\W_]*"
)
"""What somebody writes who means `acl`: without effect it would leave open what is to be closed."""
_MEANS_ACL = re.compile(rf"(?:.*[./:])?(?:{_ALMOST_ACL})", re.S)
"""Also the last of nested names that somebody wrote as one: `metadata.acl`."""
_INVISIBLE = frozenset({"Cc", "Cf", "Cs"})
"""Unicode categories: controls, format characters, halves of surrogate pairs."""
_SCOPE = re.compile(r"[^\s\x00-\x1f,\"'\\](?:[^\x00-\x1f,\"'\\]{0,126}[^\s\x00-\x1f,\"'\\])?")


@dataclass(frozen=True, slots=True)
class Closed:
    """In place of the `acl` that was meant and not given as one: nobody reads the document."""

    reason: str
    """One sentence without its beginning, `Nobody may read it:`."""


def visible(text: str) -> str:
    """Without characters that nobody sees: byte order marks, joiners, controls but white space."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(c for c in text if c.isspace() or category(c) not in _INVISIBLE)


def field_name(key: object) -> str:
    """The one spelling that a field has: `ACL`, or one with a mark that nobody sees in it, must not
    be taken for a field of its own."""
    text = str(key)
    return _field_name(text) if len(text) <= _MAX_KEY else _field_name.__wrapped__(text)


def means_acl(key: object) -> bool:
    """Whether a key is `acl` or is meant for it; where records, rows and files are sorted out, such
    a key is never text."""
    text = str(key)
    return _means_acl(text) if len(text) <= _MAX_KEY else _means_acl.__wrapped__(text)


# All records of a file have the same few keys; longer ones are not kept, which bounds the memory.
@lru_cache(maxsize=2048)
def _field_name(key: str) -> str:
    return visible(key).strip().lower()


@lru_cache(maxsize=2048)
def _means_acl(key: str) -> bool:
    name = normalize("NFKC", field_name(key)[-_MAX_KEY:])
    return _MEANS_ACL.fullmatch(name) is not None


def acl_within(fields: Mapping[Any, object]) -> str:
    """The first key that means `acl`, at the top or in what the fields hold, as `outer.key`; empty
    if there is none. Those further out come first."""
    waiting: list[tuple[str, object]] = [("", fields)]
    for outer, value in waiting:
        if isinstance(value, Mapping):
            key = next(filter(means_acl, value), None)
            if key is not None:
                return f"{outer}{field_name(key)}"[-_MAX_KEY:]
            inner = [(f"{outer}{field_name(k)}."[-_MAX_KEY:], each) for k, each in value.items()]
        else:
            inner = [(outer, each) for each in value] if isinstance(value, (list, tuple)) else []
        waiting += [each for each in inner if isinstance(each[1], (Mapping, list, tuple))]
    return ""


def with_acl(fields: Mapping[Any, object]) -> dict[str, object]:
    """One layer of what is known of a document, keys as `field_name` spells them: its `acl`, or
    `Closed` as such if it has none though one is meant."""
    layer = {field_name(key): value for key, value in fields.items()}
    meant = "" if "acl" in layer else acl_within(layer)
    if meant:
        layer["acl"] = Closed(f"its acl is called {meant}; call it acl.")
    return layer


def readers(acl: object) -> tuple[tuple[str, ...], str]:
    """The scopes of a merged `acl`, and why it closes the document, if it does by being wrong."""
    if isinstance(acl, Closed):
        return (), f"Nobody may read it: {acl.reason}"
    scopes = [acl] if isinstance(acl, str) else acl
    if not isinstance(scopes, (list, tuple)) or len(scopes) > MAX_SCOPES:
        return (), "Nobody may read it: its acl must be a list of scopes, such as [public]."
    if not all(isinstance(scope, str) and _is_scope(scope.strip()) for scope in scopes):
        return (), "Nobody may read it: its acl holds something that is not the name of a scope."
    return tuple(dict.fromkeys(scope.strip() for scope in scopes)), ""


def _is_scope(text: str) -> bool:
    """A scope that no store can hold as it is must not become that of somebody else."""
    return bool(_SCOPE.fullmatch(text)) and not text.endswith(":") and clean_text(text) == text
