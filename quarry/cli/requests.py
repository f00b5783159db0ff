"""What a server makes of the JSON of a question, for the commands that work without one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from quarry import past
from quarry.records import Message, Mode, Principal, SearchRequest
from quarry.settings import Settings

if TYPE_CHECKING:
    from quarry.access.principals import Users


class Askers:
    """The users file, read once. Raises ConfigError for one that cannot be read."""

    def __init__(self, settings: Settings) -> None:
        self._users = users_of(settings)

    def named(self, user: str, groups: Sequence[str] | None) -> Principal:
        """The person with these groups in place of their own, if any are given; else nobody."""
        principal = self._users.named(user) if user else Principal()
        return principal if groups is None else replace(principal, groups=tuple(groups))

    def of(self, body: Mapping[str, Any]) -> Principal:
        return self.named(body.get("as", ""), body.get("groups"))


def users_of(settings: Settings) -> Users:
    """Raises ConfigError for a users file that cannot be read."""
    from quarry.access.principals import NOBODY_KNOWN, load_users

    path = settings.access.users_file
    return load_users(path) if path else NOBODY_KNOWN


def request_of(
    settings: Settings,
    body: Mapping[str, Any],
    principal: Principal,
    *,
    deadline_s: float | None = None,
) -> SearchRequest:
    """Keys that are left out are as the settings have them. Raises UsageError for a bad time."""
    as_of = body.get("as_of")
    return SearchRequest(
        question=body["question"],
        principal=principal,
        mode=Mode(body.get("mode", Mode.HYBRID)),
        top_k=body.get("top_k") or settings.retrieval.top_k,
        filter=body.get("filter", ""),
        all_versions=body.get("all_versions", False),
        as_of=past.parse_time(as_of, datetime.now(UTC)) if as_of is not None else None,
        rerank=body.get("rerank", True),
        conversation=tuple(Message(**turn) for turn in body.get("conversation", ())),
        deadline_s=settings.serve.deadline_s if deadline_s is None else deadline_s,
    )
