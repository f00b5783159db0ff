"""Holds every read against what the writers noted: the ground truth of a run.

A row that was acknowledged before a read began is known: an older one must not be shown any more,
be it that its document was deleted, its ACL narrowed, or its text replaced. What a read shows must
be a row that somebody was committing or had committed by the read's end, with texts of that row's
version and no others, to a person whom that row's ACL names. A document that stands still during a
read must be there, and whole.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple

from loadtests.chaos.journal import Row
from loadtests.chaos.pages import PEOPLE, WORD, allows
from quarry import errors
from quarry.records import Principal


class Kind(StrEnum):
    """What must never happen."""

    LEAKED = "leaked"
    """Somebody saw what they had no right to, or no longer."""
    DELETED = "deleted"
    """A document was shown after its deletion was acknowledged."""
    MIXED = "mixed"
    """Texts of two revisions, or one text twice, of one document in one result."""
    STALE = "stale"
    """An older revision was shown after a newer one was acknowledged or seen."""
    PARTIAL = "partial"
    """A document that stood still was shown without some of its texts."""
    MISSING = "missing"
    """A document that stood still was not found."""
    UNKNOWN = "unknown"
    """A row was shown that no writer ever committed."""
    FORKED = "forked"
    """Two different rows were acknowledged as the same commit."""
    BROKEN_WORD = "broken_word"
    """A write was reported as done, and its row is another one."""
    UNPLAIN = "unplain"
    """An error that is none of Quarry's own, or not one plain sentence."""


class Violation(NamedTuple):
    kind: Kind
    name: str
    detail: str


class Seen(NamedTuple):
    """One document in one result."""

    row: Row
    passages: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    start: float
    end: float
    person: Principal
    seen: Sequence[Seen]
    name: str = ""
    """The document that was asked for; empty: all."""
    whole: bool = False
    """Whether every text of that document had to be found if it stood still."""

    @classmethod
    def from_json(cls, entry: Mapping[str, Any]) -> Read:
        legs = entry["legs"]
        return cls(
            start=entry["start"],
            end=entry["at"],
            person=PEOPLE[entry["person"]],
            seen=[Seen(Row.from_json(row), tuple(passages)) for row, passages in entry["seen"]],
            name=entry["name"],
            whole=bool(entry["name"]) and ("lexical" in legs or (entry["last"] and bool(legs))),
        )


# -------------------------------------------------------------------------------------- the truth


class _Highest:
    """The highest serial by time."""

    def __init__(self) -> None:
        self._noted: list[tuple[float, int]] = []
        self._times: list[float] = []
        self._serials: list[int] = []

    def note(self, at: float, serial: int) -> None:
        self._noted.append((at, serial))

    def settle(self) -> None:
        """Call it when all is noted."""
        highest = 0
        for at, serial in sorted(self._noted):
            highest = max(highest, serial)
            self._times.append(at)
            self._serials.append(highest)
        self._noted.clear()

    def until(self, at: float) -> int:
        position = bisect_right(self._times, at)
        return self._serials[position - 1] if position else 0


@dataclass
class Truth:
    """Built from the journals by `learn`; ask it after `settle`."""

    passages: dict[str, frozenset[str]] = field(default_factory=dict)
    """By version."""
    violations: list[Violation] = field(default_factory=list)
    _tried: dict[Row, float] = field(default_factory=dict)
    """When somebody first tried to commit this row."""
    _kept: dict[tuple[str, int], Row] = field(default_factory=dict)
    _by_number: dict[str, list[Row]] = field(default_factory=dict)
    _attempts: dict[str, _Highest] = field(default_factory=lambda: defaultdict(_Highest))
    _acknowledged: dict[str, _Highest] = field(default_factory=lambda: defaultdict(_Highest))
    _observed: dict[tuple[str, int], _Highest] = field(
        default_factory=lambda: defaultdict(_Highest)
    )
    _outages: list[float] = field(default_factory=list)

    def learn(self, entries: Iterable[Mapping[str, Any]]) -> None:
        """Notes of writers and breakers, any order of files; lines of one file in theirs."""
        for entry in entries:
            match entry["event"]:
                case "page":
                    self.passages[entry["version"]] = frozenset(entry["passages"])
                case "rows":
                    self._try(entry)
                case "kept":
                    rows = self._by_number[entry["number"]]
                    for row, won in zip(rows, entry["won"], strict=True):
                        self._keep(entry["at"], row) if won else None
                case "done":
                    self._done(entry)
                case "outage":
                    self._outages.append(entry["at"])

    def observe(self, reads: Iterable[Read]) -> None:
        """What one read has shown, no later one may take back.

        Only until the catalog's server is killed: it shows a commit shortly before that is durable,
        and one that was never acknowledged may be gone again afterwards.
        """
        self._outages.sort()
        for read in reads:
            for row, _ in read.seen:
                self._observed[row.name, self._epoch(read.end)].note(read.end, row.serial)

    def settle(self) -> None:
        for highest in (*self._attempts.values(), *self._acknowledged.values()):
            highest.settle()
        for highest in self._observed.values():
            highest.settle()

    def _try(self, entry: Mapping[str, Any]) -> None:
        rows = [Row.from_json(values) for values in entry["rows"]]
        self._by_number[entry["number"]] = rows
        for row in rows:
            self._tried[row] = min(entry["at"], self._tried.get(row, entry["at"]))
            self._attempts[row.name].note(entry["at"], row.serial)

    def _keep(self, at: float, row: Row) -> None:
        self._acknowledged[row.name].note(at, row.serial)
        held = self._kept.setdefault((row.name, row.serial), row)
        if held != row:
            detail = f"commit {row.serial} is {held.revision or 'a tombstone'} and {row.revision}"
            self.violations.append(Violation(Kind.FORKED, row.name, detail))

    def _done(self, entry: Mapping[str, Any]) -> None:
        row, wanted = Row.from_json(entry["row"]), entry["wanted"]
        self._keep(entry["at"], row)
        if wanted is None:
            fits = not row.revision
        else:
            fits = bool(row.revision) and [row.version, list(row.acl)] == wanted
        if not fits:
            detail = f"{entry['kind']} ended as commit {row.serial}, which says otherwise"
            self.violations.append(Violation(Kind.BROKEN_WORD, row.name, detail))

    # ---------------------------------------------------------------------------------- questions

    def tried(self, row: Row, until: float) -> bool:
        return self._tried.get(row, until + 1) <= until

    def known(self, name: str, at: float) -> Row | None:
        """The newest row that was acknowledged by then."""
        return self._kept.get((name, self._acknowledged[name].until(at)))

    def observed(self, name: str, at: float) -> int:
        """The highest serial that somebody saw by then, since the last outage."""
        return self._observed[name, self._epoch(at)].until(at)

    def still(self, name: str, start: float, end: float) -> Row | None:
        """The row of a document that nobody tried to change in that time, nor since it stands."""
        row = self.known(name, start)
        return row if row and self._attempts[name].until(end) <= row.serial else None

    def _epoch(self, at: float) -> int:
        return bisect_right(self._outages, at)


# ------------------------------------------------------------------------------------- the verdict


def judge(truth: Truth, read: Read) -> Iterator[Violation]:
    """All that is wrong with one read."""
    times = Counter(seen.row.name for seen in read.seen)
    for name, count in times.items():
        if count > 1:
            yield Violation(Kind.MIXED, name, f"{count} revisions of it in one result")
    for seen in read.seen:
        yield from _shown(truth, read, seen)
    if read.whole:
        yield from _whole(truth, read)


def _shown(truth: Truth, read: Read, seen: Seen) -> Iterator[Violation]:
    row, texts = seen
    if not truth.tried(row, read.end):
        yield Violation(Kind.UNKNOWN, row.name, f"nobody committed {row}")
    if not row.revision or not allows(row.acl, read.person):
        yield Violation(Kind.LEAKED, row.name, f"{row.acl} shown to {read.person}")
    written = truth.passages.get(row.version, frozenset())
    if len(texts) != len(set(texts)) or not set(texts) <= written:
        yield Violation(Kind.MIXED, row.name, f"texts of others than {row.version}: {texts}")
    known = truth.known(row.name, read.start)
    if known and row.serial < known.serial:
        detail = f"commit {row.serial} shown, {known.serial} was acknowledged before"
        yield Violation(_older(known, read.person), row.name, detail)
    elif row.serial < (seen_before := truth.observed(row.name, read.start)):
        detail = f"commit {row.serial} shown, {seen_before} was seen before"
        yield Violation(Kind.STALE, row.name, detail)


def _older(known: Row, person: Principal) -> Kind:
    if not known.revision:
        return Kind.DELETED
    return Kind.STALE if allows(known.acl, person) else Kind.LEAKED


def _whole(truth: Truth, read: Read) -> Iterator[Violation]:
    row = truth.still(read.name, read.start, read.end)
    if row is None or not row.revision or not allows(row.acl, read.person):
        return
    found = {text for seen in read.seen if seen.row == row for text in seen.passages}
    lacking = truth.passages[row.version] - found
    if lacking and not found:
        yield Violation(Kind.MISSING, read.name, f"commit {row.serial} was not found")
    elif lacking:
        detail = f"commit {row.serial} was found without {len(lacking)} of {row.chunks} texts"
        yield Violation(Kind.PARTIAL, read.name, detail)


MOST_CHARACTERS = 300


def fault_in(name: str, message: str) -> str:
    """What is wrong with an error: it must be one of Quarry's own, and say its piece in a line."""
    known = getattr(errors, name, None)
    if not (isinstance(known, type) and issubclass(known, errors.QuarryError)):
        return f"{name} is not an error of Quarry's"
    if "\n" in message or not 0 < len(message) <= MOST_CHARACTERS or WORD in message:
        return f"{name} does not say in one plain sentence what is wrong"
    return ""
