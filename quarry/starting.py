"""Starting what a busy machine may be too slow for."""

from __future__ import annotations

from collections.abc import Callable

import structlog

from quarry.errors import QuarryError

_log = structlog.get_logger(__name__)


def start_ray(start: Callable[[], object], end: Callable[[], object]) -> None:
    """Calls `start`, and once more after `end` if it fails.

    Both come from the caller, since nothing in this package knows Ray. Raises QuarryError if the
    second start fails too.
    """
    for last in (False, True):
        try:
            start()
        except Exception as error:  # Ray raises plain exceptions when a busy machine is too slow
            end()
            if last:
                raise QuarryError(
                    "Ray did not start on this machine; try again when it is less busy."
                ) from error
            _log.warning("ray_starts_again", error=str(error))
        else:
            return
