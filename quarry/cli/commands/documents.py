"""`quarry documents`, `quarry status` and `quarry history`: what the catalog says."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any

import typer

from quarry.cli.catalog import NOTHING_YET, find, live_catalog, rows
from quarry.cli.context import ConfigOption, JsonOption, settings_of
from quarry.cli.output import one_line, print_json, print_line, print_note, print_table
from quarry.cli.server import RunningServer
from quarry.errors import UsageError
from quarry.past import NOT_KEPT, Span, spans, visible
from quarry.ports import Catalog
from quarry.records import DocState, Document
from quarry.settings import Settings


def documents(
    context: typer.Context,
    state: Annotated[
        DocState | None, typer.Option("--state", help="Only documents that ended like this.")
    ] = None,
    source: Annotated[
        str, typer.Option("--source", metavar="NAME", help="Only documents of this source.")
    ] = "",
    as_json: JsonOption = False,
    config: ConfigOption = None,
) -> None:
    """List the documents and how each ended.

    Deleted ones are listed by --state deleted only. A document whose last update failed keeps
    serving its last good revision; its state and reason tell of the failure.
    """
    settings = settings_of(context, config)
    with live_catalog(settings) as live:
        found = list(rows(live.catalog, source=source, state=state)) if live else []
    found.sort(key=lambda row: (row.source, row.uri))
    if as_json:
        print_json({"documents": [document_json(row) for row in found]})
        return
    if live is None:
        print_note(NOTHING_YET)
    header = ("state", "source", "uri", "title", "chunks", "readable by", "reason")
    print_table(
        header,
        (
            (
                row.state.value,
                row.source,
                row.uri,
                row.title,
                row.chunk_count,
                ", ".join(row.acl) or "nobody",
                row.error,
            )
            for row in found
        ),
    )


def status(
    context: typer.Context, as_json: JsonOption = False, config: ConfigOption = None
) -> None:
    """Say what is indexed and whether a server runs."""
    settings = settings_of(context, config)
    report = status_report(settings)
    if as_json:
        print_json(report)
        return
    for line in _status_lines(report):
        print_line(line)


def history(
    context: typer.Context,
    document: Annotated[str, typer.Argument(metavar="DOC", help="Its doc_id or its address.")],
    as_json: JsonOption = False,
    config: ConfigOption = None,
) -> None:
    """Show the committed revisions of one document, oldest first.

    Each commit is shown from when to when it stood, and whether search and ask still reach it with
    --as-of (settings stores.retention_days and retain_deleted).
    """
    settings = settings_of(context, config)
    with live_catalog(settings) as live:
        if live is None:
            raise UsageError(NOTHING_YET)
        row = find(live.catalog, document)
        snapshots = live.catalog.history(row.doc_id)
        since = _reaches_back_to(settings, live.catalog)
        reached = _reached(live.catalog, snapshots, since)
    pairs = [(span, span.snapshot.serial in reached) for span in spans(snapshots)]
    if as_json:
        revisions = [_snapshot_json(span, readable) for span, readable in pairs]
        print_json({"doc_id": row.doc_id, "uri": row.uri, "revisions": revisions})
        return
    header = ("committed", "until", "state", "version", "revision", "chunks", "--as-of")
    print_table(
        (*header, "readable by", "reason"),
        (_snapshot_cells(span, since if yes else None) for span, yes in pairs),
    )
    if not settings.stores.retention_days:
        print_note(NOT_KEPT)


def _reaches_back_to(settings: Settings, catalog: Catalog) -> datetime | None:
    """The earliest time that a search may ask for; None if there is none."""
    since, retention = catalog.kept().since, timedelta(days=settings.stores.retention_days)
    return max(since, datetime.now(UTC) - retention) if retention and since else None


def _reached(catalog: Catalog, snapshots: Sequence[Document], since: datetime | None) -> set[int]:
    """Serials of the snapshots that a search of the past still finds something of."""
    if since is None:
        return set()
    still = visible(snapshots, replace(catalog.kept(), since=since))
    return {span.snapshot.serial for span in still if span.snapshot.revision}


def document_json(row: Document) -> dict[str, Any]:
    """The stable shape of `quarry documents --json`."""
    return {
        "doc_id": row.doc_id,
        "source": row.source,
        "uri": row.uri,
        "title": row.title,
        "state": row.state.value,
        "revision": row.revision,
        "chunk_count": row.chunk_count,
        "acl": list(row.acl),
        "reason": row.error,
    }


def status_report(settings: Settings) -> dict[str, Any]:
    """What `quarry status --json` prints."""
    server = RunningServer.find(settings.data_dir)
    with live_catalog(settings) as live:
        counts = live.catalog.counts() if live else {}
        fingerprint = dict(live.generation.fingerprint) if live else {}
    return {
        "generation": live.generation.name if live else None,
        "created_at": live.generation.created_at.isoformat() if live else None,
        "fingerprint": fingerprint,
        "documents": {state.value: count for state, count in sorted(counts.items())},
        "data_dir": str(settings.data_dir),
        "profile": settings.profile,
        "server": server.url if server else None,
    }


def _status_lines(report: dict[str, Any]) -> list[str]:
    documents = report["documents"]
    live = {state: count for state, count in documents.items() if state != DocState.DELETED}
    states = ", ".join(f"{count} {state}" for state, count in live.items())
    deleted = documents.get(DocState.DELETED, 0)
    lines = [
        f"documents   {sum(live.values())}{f' ({states})' if states else ''}"
        f"{f'; {deleted} deleted' if deleted else ''}",
        f"generation  {report['generation'] or 'none yet'}",
        f"data        {one_line(report['data_dir'])} ({report['profile']})",
        f"server      {report['server'] or 'not running (quarry serve)'}",
    ]
    return lines if report["generation"] else [*lines, NOTHING_YET]


def _snapshot_json(span: Span, readable: bool) -> dict[str, Any]:
    snapshot, committed = span.snapshot, span.snapshot.committed_at
    return {
        **document_json(snapshot),
        "version": snapshot.version,
        "status": snapshot.status.value,
        "serial": snapshot.serial,
        "committed_at": committed.isoformat() if committed else None,
        "replaced_at": span.until.isoformat() if span.until else None,
        "as_of": readable,
    }


def _snapshot_cells(span: Span, since: datetime | None) -> tuple[object, ...]:
    """`since`: from when on it may be asked for; None: not at all."""
    snapshot, committed = span.snapshot, span.snapshot.committed_at
    whole = since is not None and committed is not None and committed >= since
    return (
        _time(snapshot.committed_at) or "unknown",
        _time(span.until) or "now",
        snapshot.state.value,
        snapshot.version,
        snapshot.revision or "none",
        snapshot.chunk_count,
        "yes" if whole else f"from {_time(since)}" if since else "no",
        ", ".join(snapshot.acl) or "nobody",
        snapshot.error,
    )


def _time(moment: datetime | None) -> str:
    return f"{moment:%Y-%m-%d %H:%M:%S}" if moment else ""
