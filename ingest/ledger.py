"""The driver's books: how documents ended, when an address is complete, what a run adds up to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from ingest.plan import Recipe
from ingest.summary import Failure, RunSummary
from ingest.work import SERVED, Done, End, Task
from quarry.errors import QuarryError
from quarry.records import DocState, SourceEntry

_TAKEN = "Another writer changed it at the same time, twice; run it again."


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """One address whose documents have all ended."""

    task: Task
    end: End
    conflict: bool
    """Another writer took some of its documents; it must be read again."""
    state: DocState
    reason: str
    documents: int
    """Those that it holds now; what a person deleted is none of them."""

    def entry(self, recipe: Recipe) -> SourceEntry:
        item = self.task.item
        return SourceEntry(
            source=item.source,
            address=item.address,
            tag=item.tag,
            recipe=recipe.of(self.state),
            state=self.state,
            documents=self.documents,
            reason=self.reason,
        )


@dataclass(slots=True)
class _Account:
    task: Task
    end: End | None = None
    rows: int = 0
    unchanged: int = 0
    indexed: int = 0
    states: Counter[DocState] = field(default_factory=Counter)
    away: Counter[DocState] = field(default_factory=Counter)
    """Those among `states` that stay deleted by hand."""
    reason: str = ""
    failures: list[Failure] = field(default_factory=list)
    conflicts: list[Failure] = field(default_factory=list)

    def add(self, row: Done) -> None:
        self.rows += 1
        if row.conflict:
            self.conflicts.append(Failure(uri=row.uri, state=DocState.FAILED, reason=_TAKEN))
            return
        self.states[row.state] += 1
        self.away[row.state] += row.away
        self.reason = self.reason or row.reason
        self.unchanged += row.unchanged
        self.indexed += row.state in SERVED and not row.unchanged
        if row.away and row.state is not DocState.FAILED:
            return  # it says nothing; a store's refusal of what it says now is worth a word
        if row.state is not DocState.INDEXED and not row.unchanged:
            self.failures.append(Failure(uri=row.uri, state=row.state, reason=row.reason))

    @property
    def documents(self) -> int:
        return self.rows - self.away.total()

    def outcome(self) -> tuple[DocState, str]:
        """One state for the address: that of its documents, or partial if they differ."""
        if self.end and self.end.state is not DocState.INDEXED:
            return self.end.state, self.end.reason
        if not self.states:  # all that it holds was deleted by hand
            return DocState.INDEXED, ""
        if len(self.states) == 1:
            return next(iter(self.states)), self.reason
        return DocState.PARTIAL, self.reason


class Ledger:
    """Adds up rows that arrive in any order, and knows at the end if one is missing."""

    def __init__(self) -> None:
        self._open: dict[int, _Account] = {}
        self._indexed_before: Counter[int] = Counter()
        self._last = False
        self.seen = 0
        """Documents that came to an end in any pass, for who watches."""
        self.addresses = 0
        self.bytes = 0
        self.documents = 0
        self.unchanged = 0
        self.indexed = 0
        self.states: Counter[DocState] = Counter()
        self.embedded = 0
        self.reused = 0
        self.deleted: list[str] = []
        """Uris of the documents that were taken out."""
        self.deleted_chunks = 0
        self.failures: list[Failure] = []

    @property
    def failed(self) -> int:
        return sum(
            count
            for state, count in self.states.items()
            if state not in SERVED and state is not DocState.DELETED
        )

    def expect(self, tasks: Sequence[Task], *, last: bool) -> None:
        """Opens the books for a pass over these addresses; after the `last` a conflict stays."""
        self._open = {task.number: _Account(task) for task in tasks}
        self._last = last

    def add(self, rows: Iterable[Done | End]) -> list[Address]:
        """Counts rows and gives the addresses that are complete with them.

        Raises QuarryError if a row is of no address that is open.
        """
        touched: dict[int, None] = {}
        for row in rows:
            account = self._open.get(row.task)
            if account is None or (isinstance(row, End) and account.end):
                raise QuarryError("A row left the pipeline twice; report this as a fault.")
            touched[row.task] = None
            if isinstance(row, End):
                account.end = row
            else:
                account.add(row)
                self.seen += 1
                self.embedded += row.embedded
                self.reused += row.reused
                self.deleted_chunks += row.deleted
        return [found for number in touched if (found := self._closed(number))]

    def check(self) -> None:
        """Raises QuarryError if an address did not come to its end."""
        if self._open:
            raise QuarryError(f"{len(self._open)} addresses were not read; run it again.")

    def add_deleted(self, uri: str, chunks: int) -> None:
        self.deleted.append(uri)
        self.deleted_chunks += chunks
        self.states[DocState.DELETED] += 1

    def name_taken(self, uri: str) -> None:
        """A document that could not be deleted, since another writer keeps changing it."""
        self.failures.append(Failure(uri=uri, state=DocState.FAILED, reason=_TAKEN))

    def summary(
        self, *, run_id: str, source: str, unread: Counter[DocState], seconds: float
    ) -> RunSummary:
        """`unread`: documents of the addresses that did not have to be read, by state."""
        return RunSummary(
            run_id=run_id,
            source=source,
            listed=unread.total() + self.documents,
            unchanged=unread.total() + self.unchanged,
            indexed=self.indexed,
            deleted=len(self.deleted),
            deleted_uris=tuple(sorted(self.deleted)),
            failed=self.failed,
            by_state=self.states + unread,
            embedded=self.embedded,
            reused=self.reused,
            deleted_chunks=self.deleted_chunks,
            seconds=seconds,
            failures=tuple(sorted(self.failures, key=lambda failure: failure.uri)),
        )

    def _closed(self, number: int) -> Address | None:
        account = self._open[number]
        if account.end is None or account.rows < account.end.documents:
            return None
        if account.rows > account.end.documents:
            raise QuarryError("A row left the pipeline twice; report this as a fault.")
        del self._open[number]
        conflict = bool(account.conflicts)
        if conflict and not self._last:
            self._indexed_before[number] += account.indexed
        else:
            self._count(account)
        state, reason = account.outcome()
        return Address(
            task=account.task,
            end=account.end,
            conflict=conflict,
            state=state,
            reason=reason,
            documents=account.documents,
        )

    def _count(self, account: _Account) -> None:
        # What an earlier pass over the address indexed, this one found unchanged.
        earlier = min(self._indexed_before[account.task.number], account.unchanged)
        self.addresses += 1
        self.bytes += account.task.item.size
        self.documents += account.documents
        self.unchanged += account.unchanged - earlier
        self.indexed += account.indexed + earlier
        self.states += account.states - account.away
        self.states[DocState.FAILED] += len(account.conflicts)
        self.failures += [*account.failures, *account.conflicts]
