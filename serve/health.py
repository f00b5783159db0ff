"""Whether the stores and models behind a server answer."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from quarry.errors import QuarryError
from serve.index import Index
from serve.models import SearchModels
from serve.stage import Clock, Threads

PROBE_S = 5.0
"""A part that takes longer counts as not ready."""
REMEMBER_S = 2.0
"""How long an answer holds: a dead part is seen after at most this and a probe."""
OK = "ok"
_NOTHING = ["-"]

Probe = Callable[[], Awaitable[Any]]


async def readiness(index: Index, models: SearchModels, threads: Threads) -> dict[str, str]:
    """`ok`, or the code of what is wrong, for each part."""
    rerank = models.rerank
    probes: dict[str, Probe] = {
        "catalog": lambda: threads(index.catalog.get, _NOTHING),
        "text": lambda: threads(index.text.fetch, _NOTHING),
        "vectors": lambda: threads.apart(index.vectors.fetch, _NOTHING),
        "embedder": lambda: models.embed("ready"),
        "generator": models.check_generator,
    }
    if rerank is not None:
        probes["reranker"] = lambda: rerank("ready", ["ready"])
    states = await asyncio.gather(*(_state(probe) for probe in probes.values()))
    return dict(zip(probes, states, strict=True))


class Remembered:
    """Asks for readiness at most once every few seconds, however often it is called.

    The probes run the models, and who asks need not have signed in.
    """

    def __init__(
        self,
        ready: Callable[[], Awaitable[Mapping[str, str]]],
        *,
        seconds: float = REMEMBER_S,
        clock: Clock = time.monotonic,
    ) -> None:
        self._ready = ready
        self._seconds = seconds
        self._clock = clock
        self._lock = asyncio.Lock()
        self._parts: Mapping[str, str] = {}
        self._asked_at = -math.inf

    async def __call__(self) -> Mapping[str, str]:
        async with self._lock:
            if self._clock() - self._asked_at >= self._seconds:
                self._parts = await self._ready()
                self._asked_at = self._clock()
            return self._parts


def at_once() -> bool:
    """The condition of a server that is ready as soon as its parts are."""
    return True


def once(condition: Callable[[], bool]) -> Callable[[], bool]:
    """Whether it holds or ever held: it is not asked again once it has."""
    held = False

    def holds() -> bool:
        nonlocal held
        held = held or condition()
        return held

    return holds


async def _state(probe: Probe) -> str:
    try:
        await asyncio.wait_for(probe(), PROBE_S)
    except QuarryError as error:
        return error.code
    except TimeoutError:
        return "timed_out"
    return OK
