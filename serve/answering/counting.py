"""Counts tokens as the generator does, and goes on where it cannot be asked."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

import structlog

from quarry.errors import QuarryError
from serve.stage import Deadline, told

_log = structlog.get_logger(__name__)

SHARE = 0.2
"""Of the time that is left, for one count."""

Item = TypeVar("Item")
Count = TypeVar("Count")


def dependable(
    count: Callable[[Sequence[Item]], Awaitable[Count]],
    estimate: Callable[[Sequence[Item]], Count],
    deadline: Deadline,
) -> Callable[[Sequence[Item]], Awaitable[Count]]:
    """The generator's count, or an upper estimate while it cannot be had: then another writes."""

    async def counted(items: Sequence[Item]) -> Count:
        try:
            return await deadline.within(count(items), SHARE)
        except (QuarryError, TimeoutError) as error:
            _log.warning("tokens_estimated", **told(error))
            return estimate(items)

    return counted
