"""`quarry ingest` and `quarry delete`: what goes into the index, and what leaves it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from quarry.cli.catalog import need_index
from quarry.cli.context import ConfigOption, JsonOption, settings_of
from quarry.cli.interrupt import interruptible
from quarry.cli.output import one_line, print_json, print_line
from quarry.cli.progress import Standing, duration, progress_display

if TYPE_CHECKING:
    from ingest.summary import RunSummary

_SHOWN_FAILURES = 20
_SHOWN_DELETED = 5


def ingest(
    context: typer.Context,
    *,
    targets: Annotated[
        list[str], typer.Argument(metavar="PATH_OR_URI...", help="Files or folders to read.")
    ],
    source: Annotated[
        str | None,
        typer.Option("--source", metavar="NAME", help="Name of the source; else the folder's."),
    ] = None,
    moved: Annotated[
        bool,
        typer.Option(
            "--moved",
            help="The source was read from another place until now: delete what is not here.",
        ),
    ] = False,
    allow_mass_delete: Annotated[
        bool,
        typer.Option(
            "--allow-mass-delete",
            help="Delete what is gone from the source even if that is suspiciously much.",
        ),
    ] = False,
    as_json: JsonOption = False,
    config: ConfigOption = None,
) -> None:
    """Read files and folders into the index.

    Running it again reads only what has changed, and takes out what is no longer there. One file
    that cannot be read never stops a run: it is named in the summary, and the exit code is 3.
    """
    settings = settings_of(context, config)
    from ingest.sync import run_sync

    with progress_display() as show, interruptible() as check:

        def shown(standing: Standing) -> None:
            check()
            show(standing)

        summary = run_sync(
            settings,
            targets,
            source=source,
            moved=moved,
            allow_mass_delete=allow_mass_delete,
            progress=shown,
        )
        check()
    if as_json:
        print_json(summary.to_json())
    else:
        for line in summary_lines(summary):
            print_line(line)
    raise typer.Exit(summary.exit_code)


def summary_lines(summary: RunSummary) -> Iterator[str]:
    """What a run did, in words; every failure has its name and reason."""
    if not (summary.listed or summary.deleted or summary.failures or summary.left_out):
        yield f"{one_line(summary.source)}: there is no document to read; check the path."
        return
    counts = ((summary.indexed, "indexed"), (summary.unchanged, "unchanged"))
    rarer = ((summary.deleted, "deleted"), (summary.failed, "failed"))
    parts = [f"{count} {word}" for count, word in counts]
    parts += [f"{count} {word}" for count, word in rarer if count]
    yield (
        f"{one_line(summary.source)}: {summary.listed} documents listed: {', '.join(parts)}, "
        f"in {duration(summary.seconds)}."
    )
    if summary.embedded or summary.reused or summary.deleted_chunks:
        yield (
            f"Chunks: {summary.embedded} embedded, {summary.reused} reused, "
            f"{summary.deleted_chunks} deleted."
        )
    if summary.failures:
        yield "Not searchable, or only in part:"
    for failure in summary.failures[:_SHOWN_FAILURES]:
        yield f"  {failure.state.value:<12} {one_line(failure.uri)}  {one_line(failure.reason)}"
    more = len(summary.failures) - _SHOWN_FAILURES
    if more > 0:
        yield f"  and {more} more; quarry documents lists all."
    if summary.deleted_uris:
        yield "Deleted, since they are gone from the source:"
        yield from _deleted(summary)
    if summary.left_out:
        yield "Left out, since they are no documents:"
    for omission in summary.left_out:
        yield f"  {one_line(omission.uri)}  {one_line(omission.reason)}"


def _deleted(summary: RunSummary) -> Iterator[str]:
    for uri in summary.deleted_uris[:_SHOWN_DELETED]:
        yield f"  {one_line(uri)}"
    more = len(summary.deleted_uris) - _SHOWN_DELETED
    if more > 0:
        yield f"  and {more} more; quarry documents --state deleted lists all."


def delete(
    context: typer.Context,
    names: Annotated[
        list[str],
        typer.Argument(metavar="DOC_OR_URI...", help="A doc_id, a uri, or a listed address."),
    ],
    as_json: JsonOption = False,
    config: ConfigOption = None,
) -> None:
    """Delete documents from the index.

    They are gone for readers at once. Their files stay, and come back into the index when they
    change and are ingested again.
    """
    settings = settings_of(context, config)
    need_index(settings)
    from ingest.sync import delete_documents

    summary = delete_documents(settings, doc_ids_or_uris=names)
    if as_json:
        print_json(summary.to_json())
    else:
        documents = "1 document" if summary.deleted == 1 else f"{summary.deleted} documents"
        chunks = "1 chunk" if summary.deleted_chunks == 1 else f"{summary.deleted_chunks} chunks"
        print_line(f"Deleted {documents} with {chunks}.")
        if summary.deleted:
            print_line("What a file still holds stays out until its content changes.")
        for failure in summary.failures:
            print_line(f"  {failure.state.value:<12} {one_line(failure.uri)}  {failure.reason}")
    raise typer.Exit(summary.exit_code)
