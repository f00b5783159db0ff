"""Who a request is from: nobody, a user by token, or anyone whom the local token names."""

from __future__ import annotations

import hmac
from collections.abc import Callable, Sequence

from quarry.access.principals import Users, scopes
from quarry.errors import NotSignedIn
from quarry.records import Principal

_SCHEME = "bearer"


class SignIn:
    """`users` gives who is known now. The local token may name any principal; only who can read
    `data_dir` has it."""

    def __init__(self, users: Callable[[], Users], *, local_token: str = "") -> None:
        self._users = users
        self._local_token = local_token.encode()

    def principal(
        self,
        authorization: str | None,
        *,
        as_user: str | None = None,
        groups: Sequence[str] | None = None,
    ) -> Principal:
        """The principal of a request with this Authorization header.

        `as_user` without groups has those of the users file. Raises NotSignedIn for a token that is
        unknown, and for `as_user` or `groups` without the local token; UsageError for bad names.
        """
        named = as_user is not None or groups is not None
        token = _token(authorization)
        if token and self._is_local(token):
            return self._named(as_user or "", groups)
        if named:
            raise NotSignedIn("Only the server's local token may name another person or groups.")
        return self._users().by_token(token) if token else Principal()

    def _is_local(self, token: str) -> bool:
        given = token.encode("utf-8", "surrogatepass")
        return bool(self._local_token) and hmac.compare_digest(given, self._local_token)

    def _named(self, user: str, groups: Sequence[str] | None) -> Principal:
        known = self._users().named(user) if user else Principal()
        held = known.groups if groups is None else tuple(groups)
        principal = Principal(user=user, groups=held, tenant=known.tenant)
        scopes(principal)  # raises for names that are no names
        return principal


def _token(authorization: str | None) -> str:
    """The token of the header, "" if there is no header. Raises NotSignedIn for any other kind."""
    if authorization is None:
        return ""
    scheme, _, token = authorization.partition(" ")
    if scheme.lower() != _SCHEME or not token.strip():
        raise NotSignedIn("The Authorization header must be 'Bearer TOKEN'.")
    return token.strip()
