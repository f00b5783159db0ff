"""`quarry eval beir`: how good search is on a collection with judged questions."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from quarry.cli.context import ConfigOption, JsonOption, settings_of
from quarry.cli.evaluating import note_indexed
from quarry.cli.output import print_json, print_note, print_report
from quarry.cli.progress import progress_display
from quarry.settings import Settings

if TYPE_CHECKING:
    from evals.running.collection import Search


def beir(
    context: typer.Context,
    *,
    folder: Annotated[
        Path,
        typer.Argument(
            metavar="FOLDER", help="Holds corpus.jsonl, queries.jsonl and qrels/test.tsv."
        ),
    ],
    modes: Annotated[
        str | None,
        typer.Option(
            "--modes",
            metavar="A,B",
            help="Only these of lexical, dense, hybrid, hybrid+rerank.",
        ),
    ] = None,
    as_json: JsonOption = False,
    config: ConfigOption = None,
) -> None:
    """Score each way of searching on a BEIR folder.

    The collection gets an index of its own below data_dir; yours is not touched, and a second run
    only searches. Without a settings file the defaults hold.
    """
    settings = settings_of(context, config, or_defaults=True)
    from evals.beir import evaluate_beir
    from evals.running.collection import MODES

    chosen = [mode.strip() for mode in modes.split(",")] if modes else list(MODES)
    report = evaluate_beir(
        folder,
        settings=settings,
        ingest=_ingest,
        open_search=_searching,
        modes=chosen,
        progress=_show,
    )
    if as_json:
        print_json(report.as_json())
        return
    from evals.reporting.tables import beir_table

    print_report([beir_table(report), *map(Text, report.notes)])


def _ingest(settings: Settings, corpus: Path) -> None:
    from ingest.sync import run_sync

    with progress_display() as show:
        summary = run_sync(
            settings, [str(corpus)], source=None, allow_mass_delete=True, progress=show
        )
    note_indexed(summary)


@asynccontextmanager
async def _searching(settings: Settings) -> AsyncIterator[Search]:
    from serve.engine import open_engine

    with open_engine(settings) as engine:
        yield engine.search


def _show(mode: str, done: int, queries: int) -> None:
    if done == queries:
        print_note(f"{mode}: {queries} questions asked")
