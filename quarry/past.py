"""What may still be seen of the past, decided from a document's history and `Kept` alone.

Who sweeps rows and who reads with `--as-of` ask the same functions, so that what may be read is
there and what may go is never read.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from itertools import zip_longest

from quarry.errors import AsOfError
from quarry.records import DocState, Document, Kept

MINUTES = "%Y-%m-%d %H:%M UTC"
NOT_KEPT = (
    "Replaced revisions are not kept; set stores.retention_days to the days that searches shall "
    "reach back."
)


@dataclass(frozen=True, slots=True)
class Span:
    """A snapshot, and until when it was the document's row; None: it still is."""

    snapshot: Document
    until: datetime | None

    def holds(self, moment: datetime) -> bool:
        began = self.snapshot.committed_at
        return (began is None or began <= moment) and (self.until is None or moment < self.until)


def spans(history: Sequence[Document]) -> list[Span]:
    """The history with its times, oldest first."""
    ends = [row.committed_at for row in history[1:]]
    return [Span(row, until) for row, until in zip_longest(history, ends)]


def visible(history: Sequence[Document], kept: Kept) -> list[Span]:
    """What is kept of a history, oldest first: always the row as it stands, and of what was
    replaced all that `kept` reaches. A deletion that is not kept takes all before it away."""
    found: list[Span] = []
    for span in reversed(spans(history)):
        if span.until is not None and (kept.since is None or span.until < kept.since):
            break
        found.append(span)
        if _ends_the_past(span.snapshot, kept):
            break
    return found[::-1]


def _ends_the_past(row: Document, kept: Kept) -> bool:
    if row.state is not DocState.DELETED or row.revision:
        return False
    deleted, since = row.committed_at, kept.deleted_since
    return since is None or deleted is None or deleted < since


def revisions_of(spans: Iterable[Span]) -> set[str]:
    return {span.snapshot.revision for span in spans} - {""}


def standing(history: Sequence[Document], kept: Kept, moment: datetime) -> Document | None:
    """The row as it stood then, as far as it is kept; it may be one that served nothing."""
    found = reversed(visible(history, kept))
    return next((span.snapshot for span in found if span.holds(moment)), None)


# ------------------------------------------------------------------------------- what was asked


def parse_time(text: str, now: datetime) -> datetime:
    """A date (its end, UTC; now if it is today) or a date and time (UTC unless it has an offset).

    Raises AsOfError.
    """
    try:
        day = date.fromisoformat(text)
    except ValueError:
        return _moment(text)
    if day == now.astimezone(UTC).date():
        return now
    return datetime.combine(day, time.max, tzinfo=UTC)


def _moment(text: str) -> datetime:
    try:
        moment = datetime.fromisoformat(text)
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        raise AsOfError(
            "The time cannot be read; write a date such as 2026-01-31, or 2026-01-31T14:30Z."
        ) from None


def check_time(moment: datetime, *, retention: timedelta, now: datetime) -> None:
    """Whether settings let a reader go back to this time. Raises AsOfError."""
    if not retention:
        raise AsOfError(NOT_KEPT)
    if moment > now:
        raise AsOfError("The time is in the future; name one that has passed.")
    if moment < now - retention:
        raise AsOfError(
            f"Revisions are kept for {retention / timedelta(days=1):g} days "
            "(stores.retention_days); name a later time."
        )


def check_kept(moment: datetime, kept: Kept) -> None:
    """Whether the index still has what was served then. Raises AsOfError."""
    if kept.since is None:
        raise AsOfError("Revisions are kept from the next ingest on; run: quarry ingest FOLDER")
    if moment < kept.since:
        first = kept.since + timedelta(minutes=1)  # so that the time named is one that works
        raise AsOfError(f"Revisions are kept since {first:{MINUTES}} only; name a later time.")
