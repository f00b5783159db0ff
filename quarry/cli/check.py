"""One thing that `quarry doctor` has looked at."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Verdict(StrEnum):
    OK = "ok"
    NOTE = "note"
    """Not needed by these settings, or not yet."""
    MISSING = "missing"


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    group: str
    name: str
    verdict: Verdict
    detail: str
    fix: str = ""


def checked(group: str, name: str, good: bool, detail: str, fix: str) -> Check:
    """In order, or missing with what mends it."""
    verdict = Verdict.OK if good else Verdict.MISSING
    return Check(group=group, name=name, verdict=verdict, detail=detail, fix="" if good else fix)
