"""What a session of these suites did, in numbers: for its last lines and for `__main__`."""

from __future__ import annotations

from collections import Counter

from tests.leaks.judge import tally
from tests.leaks.judge import tally_line as leaks_line
from tests.servers.faults.bench import COUNTS

CHAOS = {
    "crashes": "steps crashed at",
    "kills": "kills of servers",
    "killed": "steps that they met",
    "cuts": "steps cut off",
    "interleavings": "interleavings",
    "violations": "violations",
}
COUNTED = {"chaos": COUNTS, "leaks": tally}


def lines() -> list[str]:
    """One for each suite that counted something."""
    return list(filter(None, (chaos_line(), leaks_line())))


def chaos_line() -> str:
    if not COUNTS:
        return ""
    return "chaos: " + ", ".join(f"{words} {COUNTS[name]}" for name, words in CHAOS.items())


def as_json() -> dict[str, dict[str, int]]:
    return {name: dict(counts) for name, counts in COUNTED.items()}


def add(counts: dict[str, dict[str, int]]) -> None:
    """Adds those of another session."""
    for name, more in counts.items():
        COUNTED[name].update(Counter(more))
