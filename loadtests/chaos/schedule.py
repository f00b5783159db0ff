"""What is broken when, drawn from the seed: the same seed gives the same faults in the same order.

How they meet the writers' and readers' calls depends on the machine, and so differs.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum


class FaultKind(StrEnum):
    KILL = "kill"
    """kill -9, and started again."""
    CUT = "cut"
    """All connections are reset, new ones refused."""
    CUT_WITHIN = "cut_within"
    """The same, in the middle of a request."""
    HOLD = "hold"
    """Nothing passes and nothing is reset."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    wait_s: float
    """Time of peace before it."""
    kind: FaultKind
    lasts_s: float
    sent: int = 0
    """Bytes that still reach the server, for `cut_within`."""


_WEIGHTS = {
    FaultKind.KILL: 3,
    FaultKind.CUT: 4,
    FaultKind.CUT_WITHIN: 4,
    FaultKind.HOLD: 2,
}


def server_faults(seed: int, server: str) -> Iterator[Fault]:
    """Faults of one server and the way to it, without end."""
    chance = random.Random(f"{seed}-{server}")  # noqa: S311
    while True:
        (kind,) = chance.choices(list(_WEIGHTS), weights=list(_WEIGHTS.values()))
        shortest, longest = chance.choice(((0.1, 0.1), (0.2, 2.0), (2.0, 8.0)))
        yield Fault(
            wait_s=round(chance.uniform(2.0, 12.0), 2),
            kind=kind,
            lasts_s=round(chance.uniform(shortest, longest), 2),
            sent=chance.randrange(6000),
        )


def writer_kills(seed: int, writer: int) -> Iterator[float]:
    """Seconds between one kill -9 of a writer and the next, without end."""
    chance = random.Random(f"{seed}-kills-{writer}")  # noqa: S311
    while True:
        yield round(chance.uniform(2.0, 20.0), 2)
