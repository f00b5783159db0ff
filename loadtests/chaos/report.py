"""The counts of a run, judged from its journals; as a line for people and as JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from loadtests.chaos.journal import entries
from loadtests.chaos.judge import Kind, Read, Truth, Violation, fault_in, judge
from quarry.verify_report import VerifyReport

LISTED = 50
"""Violations that are listed one by one; all are counted."""
WRITERS, READERS, BREAKERS = "writer-*.jsonl", "readers.jsonl", "breakers.jsonl"


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    facts: Mapping[str, float]
    """The plan, and how long the whole took."""
    broken: Mapping[str, int]
    """Kills, cuts and holds, by what was broken."""
    changes: Mapping[str, int]
    """Acknowledged changes by kind."""
    conflicts: int
    """Times that a writer was outrun and read again."""
    reads: int
    shown: int
    """Documents shown in all reads."""
    degraded: Mapping[str, int]
    """Reads that went without a leg, by leg."""
    writer_errors: Mapping[str, int]
    reader_errors: Mapping[str, int]
    verify: Mapping[str, int]
    """What verify found after the last sync, by kind."""
    verify_clean: bool
    violations: Mapping[str, int]
    """By kind, those that did not happen too."""
    first: tuple[str, ...]
    """The first violations, in words."""

    @property
    def passed(self) -> bool:
        return self.verify_clean and not any(self.violations.values())

    def as_json(self) -> dict[str, Any]:
        total = sum(self.violations.values())
        return {**asdict(self), "violations_in_all": total, "passed": self.passed}

    @property
    def line(self) -> str:
        """The counts that matter, in one line."""
        broken = sum(self.broken.values())
        counts = ", ".join(f"{kind} {count}" for kind, count in self.violations.items())
        return (
            f"chaos: {broken} faults, {sum(self.changes.values())} changes, "
            f"{self.conflicts} conflicts, {self.reads} reads, "
            f"verify {'clean' if self.verify_clean else dict(self.verify)}, {counts}, "
            f"violations {sum(self.violations.values())}"
        )


def report_of(
    journals: Path,
    *,
    facts: Mapping[str, float],
    made: Mapping[str, int],
    verified: VerifyReport,
) -> Report:
    """Reads the journals twice: what was seen when, then what was wrong with it."""
    truth = Truth()
    truth.learn(entries(journals, BREAKERS))
    truth.learn(entries(journals, WRITERS))
    truth.observe(_reads(journals))
    truth.settle()
    tally = _Tally()
    tally.add(truth.violations)
    for entry in entries(journals, WRITERS):
        tally.count_writing(entry)
    for entry in entries(journals, READERS):
        tally.count_reading(entry, truth)
    return Report(
        facts=facts,
        broken={name: count for name, count in sorted(made.items()) if count},
        changes=dict(sorted(tally.changes.items())),
        conflicts=tally.conflicts,
        reads=tally.reads,
        shown=tally.shown,
        degraded=dict(tally.degraded),
        writer_errors=dict(tally.writer_errors),
        reader_errors=dict(tally.reader_errors),
        verify=dict(verified.found),
        verify_clean=verified.clean and not verified.found,
        violations={kind.value: tally.violations[kind] for kind in Kind},
        first=tuple(tally.first),
    )


def _reads(journals: Path) -> Iterator[Read]:
    for entry in entries(journals, READERS):
        if entry["event"] == "read":
            yield Read.from_json(entry)


class _Tally:
    def __init__(self) -> None:
        self.changes: Counter[str] = Counter()
        self.writer_errors: Counter[str] = Counter()
        self.reader_errors: Counter[str] = Counter()
        self.degraded: Counter[str] = Counter()
        self.violations: Counter[Kind] = Counter()
        self.first: list[str] = []
        self.conflicts = self.reads = self.shown = 0

    def add(self, violations: Iterable[Violation]) -> None:
        for violation in violations:
            self.violations[violation.kind] += 1
            if len(self.first) < LISTED:
                self.first.append(f"{violation.kind} {violation.name}: {violation.detail}")

    def count_writing(self, entry: Mapping[str, Any]) -> None:
        match entry["event"]:
            case "done":
                self.changes[entry["kind"]] += 1
            case "conflict":
                self.conflicts += 1
            case "failed":
                self._error(self.writer_errors, entry)

    def count_reading(self, entry: Mapping[str, Any], truth: Truth) -> None:
        if entry["event"] == "unread":
            self._error(self.reader_errors, entry)
            if entry["last"]:
                detail = f"{entry['error']} when all was healed and at rest"
                self.add([Violation(Kind.MISSING, "", detail)])
            return
        self.reads += 1
        self.degraded.update(entry["degraded"])
        read = Read.from_json(entry)
        self.shown += len(read.seen)
        self.add(judge(truth, read))

    def _error(self, errors: Counter[str], entry: Mapping[str, Any]) -> None:
        errors[entry["error"]] += 1
        if fault := fault_in(entry["error"], entry["message"]):
            self.add([Violation(Kind.UNPLAIN, "", f"{fault}: {entry['message'][:200]}")])
