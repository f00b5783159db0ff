"""`quarry verify`: do catalog, text rows and vectors agree?"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from typing import TYPE_CHECKING, Annotated, Any

import typer

from quarry.cli.catalog import need_index
from quarry.cli.context import ConfigOption, JsonOption, settings_of
from quarry.cli.output import one_line, print_json, print_line, print_note
from quarry.cli.progress import duration
from quarry.settings import Settings

if TYPE_CHECKING:
    from quarry.verify_report import Progress, VerifyReport

_SHOWN = 20


def verify(
    context: typer.Context,
    repair: Annotated[
        bool, typer.Option("--repair", help="Mend what can be derived; mark the rest for ingest.")
    ] = False,
    as_json: JsonOption = False,
    config: ConfigOption = None,
) -> None:
    """Compare catalog, text rows and vectors.

    Readers trust only the catalog, so most differences are rows that nobody sees. Exits with 0 if
    nothing differs or all is mended, else with 1.
    """
    settings = settings_of(context, config)
    report = run_verify(settings, repair=repair)
    if as_json:
        print_json(report_json(report))
    else:
        for line in report_lines(report, repair=repair):
            print_line(line)
    raise typer.Exit(0 if report.clean else 1)


def run_verify(settings: Settings, *, repair: bool) -> VerifyReport:
    """Opens the live generation without a model. Raises UsageError, DataDirBusy, StoreError."""
    need_index(settings)
    from quarry.generations import open_live
    from quarry.stores.milvus_lite import vector_server, writer_lock
    from quarry.verify import verify as compare

    with ExitStack() as stack:
        if repair:  # it ends attempts that are under way
            stack.enter_context(writer_lock(settings))
        stack.enter_context(vector_server(settings))
        _, stores = open_live(settings, None)
        stack.enter_context(closing(stores))
        return compare(stores, repair=repair, progress=_stages())


def report_json(report: VerifyReport) -> dict[str, Any]:
    return {"clean": report.clean, **dataclasses.asdict(report)}


def report_lines(report: VerifyReport, *, repair: bool) -> Iterator[str]:
    """Counts, then each kind of difference, then the first differences one by one."""
    from quarry.verify_report import Kind

    yield (
        f"Compared {report.documents} documents, {report.text_rows} text rows and "
        f"{report.vector_rows} vectors in {duration(report.seconds)}."
    )
    for kind, count in report.found.items():
        mended = report.repaired.get(kind, 0)
        by_address = kind in (Kind.LOST_DOCUMENTS, Kind.DOCUMENTS_WITHOUT_ENTRY)
        what = "addresses" if by_address else "documents"
        yield f"  {kind:<23} {count} {what}{f', {mended} mended' if repair else ''}"
    for each in report.differences[:_SHOWN]:
        rows = f"{each.text_rows} text rows, {each.vector_rows} vectors"
        name = one_line(each.uri) or each.doc_id
        yield f"    {each.kind.value:<23} {name}: {rows}{' (mended)' if each.repaired else ''}"
    if report.reread:
        word = "are marked to be" if repair else "must be"
        yield f"{len(report.reread)} addresses {word} read again; run quarry ingest:"
        for entry in report.reread[:_SHOWN]:
            yield f"    {one_line(entry.source)}  {one_line(entry.address)}"
    if report.busy:
        yield f"{report.busy} documents kept changing; run it again."
    if not report.found:
        yield "Nothing differs."
    elif not report.clean and not repair:
        yield "quarry verify --repair mends what can be derived."


def _stages() -> Callable[[Progress], None]:
    """One line at the start of each stage."""
    seen: set[str] = set()

    def show(progress: Progress) -> None:
        if progress.stage not in seen:
            seen.add(progress.stage)
            print_note(f"comparing {progress.stage}: {progress.total}")

    return show
