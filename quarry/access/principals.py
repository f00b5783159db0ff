"""Who asks, which scopes that gives, and the file of users.

A scope is `public`, a group's name, or `user:NAME`. Names that could be taken for another kind of
scope are refused everywhere, so that no group can stand for a person or for everybody.
"""

from __future__ import annotations

import hmac
import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from quarry.errors import ConfigError, NotSignedIn, UsageError
from quarry.records import PUBLIC, Principal
from quarry.settings_file import drop_empty_sections, line_of, read_yaml

USER_PREFIX = "user:"
MAX_NAME = 128
"""Characters of a user's, group's or tenant's name."""

_NAME = re.compile(r"[^\s\x00-\x1f\x7f,\"'\\]([^\x00-\x1f\x7f,\"'\\]*[^\s\x00-\x1f\x7f,\"'\\])?")

_KEY = re.compile(r"[A-Za-z_]{1,32}")
"""A key that may be shown though it is not known."""


@lru_cache(4096)  # asked for every document that a search finds
def scopes(principal: Principal) -> tuple[str, ...]:
    """What this principal may read by: `public`, its groups, its own name.

    Raises UsageError for a name that is no name, or could be taken for another scope.
    """
    held = [PUBLIC, *(group_name(group) for group in principal.groups)]
    if principal.user:
        held.append(USER_PREFIX + _name(principal.user, "user"))
    return tuple(dict.fromkeys(held))


def group_name(name: str) -> str:
    """The group's scope. Raises UsageError."""
    plain = _name(name, "group")
    if plain.casefold() == PUBLIC or plain.casefold().startswith(USER_PREFIX):
        raise UsageError("A group cannot be called public or start with user:; name it otherwise.")
    return plain


def _name(name: str, kind: str) -> str:
    plain = unicodedata.normalize("NFC", name)
    if len(plain) > MAX_NAME or not _NAME.fullmatch(plain) or not _is_text(plain):
        raise UsageError(
            f"The name of a {kind} has 1 to {MAX_NAME} characters, without commas, quotes, "
            "backslashes, control characters or spaces at its ends."
        )
    return plain


def _is_text(name: str) -> bool:
    return not any(unicodedata.category(c) in ("Cs", "Cc", "Cf", "Zl", "Zp") for c in name)


# -------------------------------------------------------------------------------------- users


@dataclass(frozen=True, slots=True)
class Users:
    """Known people by name, and the hashes of their tokens."""

    principals: Mapping[str, Principal]
    hashes: Mapping[str, str]
    """Hexadecimal SHA-256 of the token, by name, of those who have one."""

    def __len__(self) -> int:
        return len(self.principals)

    def named(self, name: str) -> Principal:
        """A person by name; somebody unknown has a name and no groups."""
        return self.principals.get(name) or Principal(user=name)

    def by_token(self, token: str) -> Principal:
        """Whose token this is, in a time that does not depend on the answer. Raises NotSignedIn."""
        given = token_hash(token)
        found = ""
        for name, known in self.hashes.items():
            if hmac.compare_digest(known, given):
                found = name
        if not found:
            raise NotSignedIn("The token is not known; sign in again.")
        return self.principals[found]


NOBODY_KNOWN = Users(principals={}, hashes={})


def token_hash(token: str) -> str:
    """What the users file holds in place of a token, which must be random."""
    return sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


class _User(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    groups: list[str] = Field(default_factory=list)
    tenant: str = "default"
    token_sha256: str | None = Field(None, pattern="^[0-9a-f]{64}$")


class _File(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    users: dict[str, _User]


def load_users(path: Path) -> Users:
    """Reads `users: {NAME: {groups, tenant, token_sha256}}`.

    Raises ConfigError that names the line and no value, which may be a secret.
    """
    raw = read_yaml(path, named_by="access.users_file")
    drop_empty_sections(_File, raw)
    file = _checked(path, raw)
    principals: dict[str, Principal] = {}
    for name, user in file.users.items():
        principal = Principal(user=name, groups=tuple(user.groups), tenant=user.tenant)
        try:
            scopes(principal)
            _name(user.tenant, "tenant")
        except UsageError as error:
            where = f"{path}{line_of(path, ('users', name))}"
            raise ConfigError(f"{where}: a user is not right: {error}") from None
        principals[name] = principal
    hashes = {name: user.token_sha256 for name, user in file.users.items() if user.token_sha256}
    _check_single(path, hashes, "two users have the same token; give each its own.")
    spellings = {name: unicodedata.normalize("NFC", name) for name in principals}
    _check_single(path, spellings, "two users have one name; give each its own.")
    return Users(principals=principals, hashes=hashes)


def _check_single(path: Path, values: Mapping[str, str], fault: str) -> None:
    """Raises ConfigError with the line of the first user whose value another one has already."""
    seen: set[str] = set()
    for name, value in values.items():
        if value in seen:
            raise ConfigError(f"{path}{line_of(path, ('users', name))}: {fault}")
        seen.add(value)


def _checked(path: Path, raw: Any) -> _File:
    try:
        return _File.model_validate(raw)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        keys = [part for part in first["loc"] if part != "[key]"]
        where = f"{path}{line_of(path, keys)}"
        if first["type"] == "extra_forbidden" and not _KEY.fullmatch(str(keys[-1])):
            # `token_sha256:HASH` without a blank is a key as a whole
            raise ConfigError(f"{where}: a key is not known; check how it is written.") from None
        key = " ".join(".".join(map(str, keys)).split()) or "users"
        raise ConfigError(f"{where}: '{key}' is not right: {first['msg']}.") from None
