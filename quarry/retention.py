"""The end of the past: how far back it is kept, and sweeping what lies further back.

The catalog says how far back all is whole (`Catalog.kept`), and nobody deletes rows that this
reaches. So the mark is moved first, then rows are swept, then their snapshots forgotten: whatever
stops this in between, no search with `--as-of` finds half of what was, and the next run goes on.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from quarry.attempts import sweep_many
from quarry.ports import Catalog
from quarry.records import Kept
from quarry.settings_stores import StoreSettings
from quarry.stores.factory import Stores

GRACE = timedelta(minutes=10)
"""Rows are kept this much longer than readers may go back, so that none goes under a search."""
PAGE_DOCUMENTS = 500


def due(stores: Stores) -> Kept:
    """How far back the settings want the past to be kept, as of now."""
    held, now = stores.catalog.kept(), stores.clock()
    return _moved(held, now, retention=stores.retention, deleted=stores.retain_deleted)


def advance(stores: Stores) -> Kept:
    """Moves the catalog's mark to what is `due`; called before anything is replaced or swept."""
    stores.catalog.ensure()  # a catalog of an earlier version may lack what this needs
    kept = due(stores)
    stores.catalog.keep(kept)
    return kept


def expire(stores: Stores) -> int:
    """Ends the retention of what lies too far back: rows, then snapshots; gives how many snapshots.

    Works on a page of documents at a time, and only on those that have something to forget.
    """
    before = advance(stores).since or stores.clock()
    forgotten, after = 0, ""
    while names := stores.catalog.expired(before, after=after, limit=PAGE_DOCUMENTS):
        after = names[-1]
        sweep_many(stores, names)
        forgotten += stores.catalog.trim_history(names, before=before)
    return forgotten


def overdue(catalog: Catalog, settings: StoreSettings, *, now: datetime) -> bool:
    """Whether a run that has nothing else to do should `expire`: something lies too far back, or
    the settings have been changed."""
    held, retention = catalog.kept(), timedelta(days=settings.retention_days)
    moved = _moved(held, now, retention=retention, deleted=settings.retain_deleted)
    if _which(held) != _which(moved):
        return True
    return bool(catalog.expired(moved.since or now, limit=1))


def _which(kept: Kept) -> tuple[bool, bool]:
    return kept.since is None, kept.deleted_since is None


def _moved(held: Kept, now: datetime, *, retention: timedelta, deleted: bool) -> Kept:
    if not retention:
        return Kept()
    since = max(held.since, now - retention - GRACE) if held.since else now
    return Kept(since=since, deleted_since=(held.deleted_since or now) if deleted else None)
