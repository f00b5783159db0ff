"""Ray on a machine that is too slow for it."""

from __future__ import annotations

import pytest

from quarry.errors import QuarryError
from quarry.starting import start_ray


@pytest.mark.parametrize("slow_starts", [1, 2])
def test_a_ray_that_is_too_slow_is_started_once_more(slow_starts: int) -> None:
    """Ray raises a plain exception when its processes are not up in time."""
    tried: list[str] = []

    def start() -> None:
        tried.append("started")
        if tried.count("started") <= slow_starts:
            raise Exception("The current node timed out during startup.")

    def end() -> None:
        tried.append("ended")

    if slow_starts == 1:
        start_ray(start, end)
    else:
        with pytest.raises(QuarryError, match="try again when it is less busy"):
            start_ray(start, end)
    assert tried == ["started", "ended"] * slow_starts + ["started"] * (slow_starts == 1)
