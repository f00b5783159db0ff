"""`quarry eval`: how good answers and search are, and whether a change made them better."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from quarry.cli.context import JsonOption, config_path, settings_of
from quarry.cli.evaluating import (
    Documents,
    described,
    judge_of,
    open_remote,
    opening,
    remote_token,
)
from quarry.cli.output import print_json, print_note, print_report
from quarry.errors import UsageError
from quarry.records import Mode
from quarry.settings import Settings

if TYPE_CHECKING:
    from evals.datasets.questions import Case
    from evals.evaluate import Contestant
    from evals.measuring.retrieval import Depths
    from evals.reporting.reports import Report
    from evals.running.observe import Variant
    from evals.running.run import Judge

GATE_FAILED = 4
"""Exit code: everything was measured, and the gate does not let it through."""


class DefaultsToRun(TyperGroup):
    """`quarry eval SET.jsonl` is `quarry eval run SET.jsonl`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if args and args[0] not in self.commands and args[0] not in ctx.help_option_names:
            args = ["run", *args]
        return super().parse_args(ctx, args)


app = typer.Typer(
    cls=DefaultsToRun,
    help="Measure how good answers and search are: quarry eval DATASET.",
    rich_markup_mode=None,
    no_args_is_help=True,
)

SetsArgument = Annotated[
    list[Path],
    typer.Argument(metavar="DATASET...", help="Question sets, one JSON object a line."),
]
DocumentsOption = Annotated[
    list[str] | None,
    typer.Option(
        "--documents",
        metavar="[NAME=]FOLDER",
        help="Index this folder for the evaluation, in an index of its own below data_dir. May be "
        "given several times.",
    ),
]


def run(
    context: typer.Context,
    *,
    datasets: SetsArgument,
    configs: Annotated[
        list[Path] | None,
        typer.Option(
            "--config",
            metavar="FILE",
            help="Settings file. Given twice or more, the first is compared with each other.",
        ),
    ] = None,
    documents: DocumentsOption = None,
    url: Annotated[
        str, typer.Option("--url", metavar="URL", help="Ask this server in place of an index here.")
    ] = "",
    token_file: Annotated[
        Path | None,
        typer.Option("--token-file", metavar="FILE", help="Holds the token for --url."),
    ] = None,
    modes: Annotated[
        list[Mode] | None,
        typer.Option("--mode", help="Ask in this mode. Given twice or more, they are compared."),
    ] = None,
    no_rerank: Annotated[bool, typer.Option("--no-rerank", help="Without the reranker.")] = False,
    no_filters: Annotated[
        bool,
        typer.Option(
            "--no-filters", help="With superseded versions, and without the filters of the cases."
        ),
    ] = False,
    search_only: Annotated[
        bool, typer.Option("--search-only", help="Measure search and ask for no answers.")
    ] = False,
    only: Annotated[
        list[str] | None,
        typer.Option("--slice", metavar="NAME", help="Only the cases of this slice."),
    ] = None,
    repeats: Annotated[
        int, typer.Option("--repeats", min=1, max=100, help="Ask each case so often.")
    ] = 1,
    exact: Annotated[
        bool, typer.Option("--exact", help="Hold the vector index against exact search.")
    ] = False,
    judge: Annotated[
        bool, typer.Option("--judge", help="Have answers judged by the model of judge.model.")
    ] = False,
    gate: Annotated[
        Path | None,
        typer.Option("--gate", metavar="FILE", help="Demands; exit code 4 if one is not met."),
    ] = None,
    baseline: Annotated[
        Path | None,
        typer.Option(
            "--baseline", metavar="FILE", help="A report of --save to compare with, case by case."
        ),
    ] = None,
    save: Annotated[
        Path | None,
        typer.Option("--save", metavar="FILE", help="Write the JSON of --json to a file as well."),
    ] = None,
    as_json: JsonOption = False,
    junit: Annotated[
        Path | None, typer.Option("--junit", metavar="FILE", help="Write JUnit XML as well.")
    ] = None,
    html: Annotated[
        Path | None,
        typer.Option("--html", metavar="FILE", help="Write a report as one HTML file as well."),
    ] = None,
) -> None:
    """Ask the questions of a set and score search and answers.

    Several settings or modes are compared case by case: what flipped, how sure one can be, and
    whether the set is big enough to tell.
    """
    from evals.datasets.questions import load_all
    from evals.evaluate import Options, evaluate
    from evals.gate import load_gate
    from evals.improving import seen
    from evals.reporting.reports import load_baseline

    cases = chosen(load_all(datasets), only or [])
    named: list[Path | None] = [*configs] if configs else [config_path(context, None)]
    settings = [settings_of(context, each, or_defaults=True) for each in named]
    if url and (documents or len(settings) > 1):
        raise UsageError(
            "--url asks a server as it is; leave out --documents and a second --config."
        )
    asked_in = variants(
        modes, rerank=not no_rerank, filters=not no_filters, answers=not search_only
    )
    folders = [Documents.parse(each) for each in documents or []]
    contestants = [
        contestant(
            path,
            each,
            asked_in,
            url=url,
            token_file=token_file,
            documents=folders,
            judge=judge_of(each) if judge else None,
        )
        for path, each in zip(named, settings, strict=True)
    ]
    report = evaluate(
        [set_name(path) for path in datasets],
        cases,
        contestants,
        Options(
            notes=[
                *seen.notes(settings, seen.fingerprints(cases)),
                *_nameless(settings, cases, url),
            ],
            repeats=repeats,
            exact=exact,
            gate=load_gate(gate) if gate else None,
            baseline=load_baseline(baseline, cases) if baseline else None,
            progress=asked,
        ),
    )
    _write(report, as_json=as_json, save=save, junit=junit, html=html)
    if not report.passed:
        raise typer.Exit(GATE_FAILED)


def chosen(cases: list[Case], slices: list[str]) -> list[Case]:
    """The cases of any of these slices; all of them if none is named. Raises UsageError."""
    if not slices:
        return cases
    from evals.measuring.results import CaseResult

    kept = [
        case
        for case in cases
        if not set(slices).isdisjoint(CaseResult(case=case, passed=False).slices)
    ]
    if not kept:
        raise UsageError(f"No case is in the slice '{slices[0]}'.")
    return kept


def set_name(path: Path) -> str:
    """What a set is called in reports: its file, or its folder where the file says nothing."""
    return path.resolve().parent.name if path.stem == "questions" else path.name


def depths(settings: Settings) -> Depths:
    from evals.measuring.retrieval import Depths
    from evals.running.observe import MOST_RESULTS

    reranked = min(settings.reranker.depth, MOST_RESULTS)
    return Depths(sent=settings.retrieval.evidence_chunks, reranked=reranked)


def _nameless(settings: list[Settings], cases: list[Case], url: str) -> list[str]:
    """Says so where people of the cases are known to nobody, and so may read little."""
    if url or all(each.access.users_file for each in settings):
        return []
    people = {case.person for case in cases if case.person}
    if not people:
        return []
    return [f"access.users_file is not set: {len(people)} people of the cases have no groups."]


def variants(modes: list[Mode] | None, **facts: bool) -> dict[str, Variant]:
    from evals.running.observe import Variant

    wanted = list(dict.fromkeys(modes or [Mode.HYBRID]))
    if len(wanted) == 1:
        return {"": Variant(mode=wanted[0], **facts)}
    return {mode.value: Variant(mode=mode, **facts) for mode in wanted}


def contestant(
    path: Path | None,
    settings: Settings,
    variants: dict[str, Variant],
    *,
    url: str,
    token_file: Path | None,
    documents: list[Documents],
    judge: Judge | None = None,
) -> Contestant:
    from evals.evaluate import Contestant

    if url:
        token = remote_token(settings, url, token_file)
        return Contestant(
            label=url,
            settings="",
            open=lambda: open_remote(url, token),
            variants=variants,
            depths=depths(settings),
            judge=judge,
        )
    return Contestant(
        label=path.stem if path else "settings",
        settings=described(settings),
        open=opening(settings, documents),
        variants=variants,
        depths=depths(settings),
        judge=judge,
    )


def _write(
    report: Report, *, as_json: bool, save: Path | None, junit: Path | None, html: Path | None
) -> None:
    if save:
        save.write_text(json.dumps(report.as_json(), ensure_ascii=False, indent=1) + "\n", "utf-8")
    if junit:
        from evals.reporting.junit import junit_xml

        junit.write_bytes(junit_xml(report))
    if html:
        from evals.reporting.html import html_report

        html.write_text(html_report(report), encoding="utf-8")
    if as_json:
        print_json(report.as_json())
        return
    from evals.reporting.report import tables

    print_report(tables(report))


_TOLD_EVERY = 25


def asked(done: int, total: int) -> None:
    if done % _TOLD_EVERY == 0 or done == total:
        print_note(f"{done} of {total} questions asked")
