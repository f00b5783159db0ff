"""Whether the stores and models behind a server answer."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from quarry.errors import QuarryError
from serve.index import Index
from serve.models import SearchModels
from serve.stage import Threads

PROBE_S = 5.0
"""A part that takes longer counts as not ready."""
OK = "ok"
_NOTHING = ["-"]

Probe = Callable[[], Awaitable[Any]]


async def readiness(index: Index, models: SearchModels, threads: Threads) -> dict[str, str]:
    """`ok`, or the code of what is wrong, for each part."""
    rerank = models.rerank
    probes: dict[str, Probe] = {
        "catalog": lambda: threads(index.catalog.get, _NOTHING),
        "text": lambda: threads(index.text.fetch, _NOTHING),
        "vectors": lambda: threads(index.vectors.fetch, _NOTHING),
        "embedder": lambda: models.embed("ready"),
        "generator": lambda: models.count_tokens(["ready"]),
    }
    if rerank is not None:
        probes["reranker"] = lambda: rerank("ready", ["ready"])
    states = await asyncio.gather(*(_state(probe) for probe in probes.values()))
    return dict(zip(probes, states, strict=True))


async def _state(probe: Probe) -> str:
    try:
        await asyncio.wait_for(probe(), PROBE_S)
    except QuarryError as error:
        return error.code
    except TimeoutError:
        return "timed_out"
    return OK
