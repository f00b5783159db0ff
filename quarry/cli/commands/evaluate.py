"""`quarry eval`: how good answers and search are, and whether a change made them better."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass
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
    from evals.reporting.report import Report
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

ConfigsOption = Annotated[
    list[Path] | None,
    typer.Option(
        "--config",
        metavar="FILE",
        help="Settings file. Given twice or more, the first is compared with each other.",
    ),
]
UrlOption = Annotated[
    str, typer.Option("--url", metavar="URL", help="Ask this server in place of an index here.")
]
TokenOption = Annotated[
    Path | None,
    typer.Option("--token-file", metavar="FILE", help="Holds the token for --url."),
]
ModesOption = Annotated[
    list[Mode] | None,
    typer.Option("--mode", help="Ask in this mode. Given twice or more, they are compared."),
]
NoRerankOption = Annotated[bool, typer.Option("--no-rerank", help="Without the reranker.")]
NoFiltersOption = Annotated[
    bool,
    typer.Option(
        "--no-filters", help="With superseded versions, and without the filters of the cases."
    ),
]
SearchOnlyOption = Annotated[
    bool, typer.Option("--search-only", help="Measure search and ask for no answers.")
]
SlicesOption = Annotated[
    list[str] | None,
    typer.Option("--slice", metavar="NAME", help="Only the cases of this slice."),
]
RepeatsOption = Annotated[
    int, typer.Option("--repeats", min=1, max=100, help="Ask each case so often.")
]
ExactOption = Annotated[
    bool, typer.Option("--exact", help="Hold the vector index against exact search.")
]
JudgeOption = Annotated[
    bool, typer.Option("--judge", help="Have answers judged by the model of judge.model.")
]
GateOption = Annotated[
    Path | None,
    typer.Option("--gate", metavar="FILE", help="Demands; exit code 4 if one is not met."),
]
BaselineOption = Annotated[
    Path | None,
    typer.Option(
        "--baseline", metavar="FILE", help="A report of --save to compare with, case by case."
    ),
]
SaveOption = Annotated[
    Path | None,
    typer.Option("--save", metavar="FILE", help="Write the JSON of --json to a file as well."),
]
JunitOption = Annotated[
    Path | None, typer.Option("--junit", metavar="FILE", help="Write JUnit XML as well.")
]
HtmlOption = Annotated[
    Path | None,
    typer.Option("--html", metavar="FILE", help="Write a report as one HTML file as well."),
]


def run(
    context: typer.Context,
    *,
    datasets: SetsArgument,
    configs: ConfigsOption = None,
    documents: DocumentsOption = None,
    url: UrlOption = "",
    token_file: TokenOption = None,
    modes: ModesOption = None,
    no_rerank: NoRerankOption = False,
    no_filters: NoFiltersOption = False,
    search_only: SearchOnlyOption = False,
    only: SlicesOption = None,
    repeats: RepeatsOption = 1,
    exact: ExactOption = False,
    judge: JudgeOption = False,
    gate: GateOption = None,
    baseline: BaselineOption = None,
    save: SaveOption = None,
    as_json: JsonOption = False,
    junit: JunitOption = None,
    html: HtmlOption = None,
) -> None:
    """Ask the questions of a set and score search and answers.

    Several settings or modes are compared case by case: what flipped, how sure one can be, and
    whether the set is big enough to tell.
    """
    from evals.datasets.questions import load_all
    from evals.evaluate import Options, evaluate
    from evals.gate import load_gate
    from evals.improving import seen
    from evals.reporting.baseline import load_baseline

    cases = chosen(load_all(datasets), only or [])
    named: list[Path | None] = [*configs] if configs else [config_path(context, None)]
    settings = [settings_of(context, each, or_defaults=True) for each in named]
    asked_in = variants(
        modes, rerank=not no_rerank, filters=not no_filters, answers=not search_only
    )
    options = Options(
        notes=[
            *seen.notes(settings, seen.fingerprints(cases)),
            *_nameless(settings, cases, url),
        ],
        repeats=repeats,
        exact=exact,
        gate=load_gate(gate) if gate else None,
        baseline=load_baseline(baseline, cases) if baseline else None,
        progress=asked,
    )
    files = Files(save=save, junit=junit, html=html)
    judges = [_judge(each) if judge else None for each in settings]
    folders = [Documents.parse(each) for each in documents or []]
    if url:
        if folders or len(settings) > 1:
            raise UsageError(
                "--url asks a server as it is; leave out --documents and a second --config."
            )
        token = remote_token(settings[0], url, token_file)
        contestants = [remote(url, token, settings[0], asked_in, judges[0])]
    else:
        contestants = [
            contestant(label, each, asked_in, folders, its_judge)
            for label, each, its_judge in zip(labels(named), settings, judges, strict=True)
        ]
    report = evaluate([set_name(path) for path in datasets], cases, contestants, options)
    files.write(report)
    _print(report, as_json=as_json)
    if report.failure:
        raise report.failure
    if not report.passed:
        raise typer.Exit(GATE_FAILED)


def chosen(cases: list[Case], slices: list[str]) -> list[Case]:
    """The cases of any of these slices; all of them if none is named. Raises UsageError for one
    that no case is in."""
    if not slices:
        return cases
    from evals.evaluate import members

    known = members(cases)
    for name in slices:
        if name not in known:
            raise UsageError(
                f"No case is in the slice '{name}'; there are: {', '.join(sorted(known))}."
            )
    wanted = set[str]().union(*(known[name] for name in slices))
    return [case for case in cases if case.id in wanted]


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


def labels(paths: Sequence[Path | None]) -> list[str]:
    """What each settings file is called: its name, with as much of its folder as tells it from the
    others, or its number where the same one is named twice."""
    whole = [path.resolve().with_suffix("").parts if path else ("settings",) for path in paths]
    for depth in range(1, max(map(len, whole)) + 1):
        names = ["/".join(parts[-depth:]) for parts in whole]
        if len(set(names)) == len(names):
            return names
    return [f"{parts[-1]} {number}" for number, parts in enumerate(whole, start=1)]


def contestant(
    label: str,
    settings: Settings,
    variants: dict[str, Variant],
    documents: list[Documents],
    judge: Judge | None = None,
) -> Contestant:
    """The index of the settings, or one of the documents, in this process."""
    from evals.evaluate import Contestant

    return Contestant(
        label=label,
        settings=described(settings),
        open=opening(settings, documents),
        variants=variants,
        depths=depths(settings),
        judge=judge,
    )


def remote(
    url: str, token: str, settings: Settings, variants: dict[str, Variant], judge: Judge | None
) -> Contestant:
    """A server; how deep it is looked into is up to the settings here."""
    from evals.evaluate import Contestant

    return Contestant(
        label=url,
        settings="",
        open=lambda: open_remote(url, token),
        variants=variants,
        depths=depths(settings),
        judge=judge,
        inside=False,
    )


def _judge(settings: Settings) -> Judge:
    """The judge of the settings. Raises ModelError if it cannot be asked, before a run counts on
    it."""
    judge = judge_of(settings)
    asyncio.run(judge.check())
    return judge


@dataclass(frozen=True, slots=True, kw_only=True)
class Files:
    """Where a report is written to beside the output. Raises UsageError where there is no folder
    for it, before anything is asked."""

    save: Path | None
    junit: Path | None
    html: Path | None

    def __post_init__(self) -> None:
        for path in (self.save, self.junit, self.html):
            if path and not path.resolve().parent.is_dir():
                raise UsageError(f"There is no folder for {path}; make it, or name another file.")

    def write(self, report: Report) -> None:
        if self.save:
            text = json.dumps(report.as_json(), ensure_ascii=False, indent=1)
            self.save.write_text(text + "\n", encoding="utf-8")
        if self.junit:
            from evals.reporting.junit import junit_xml

            self.junit.write_bytes(junit_xml(report))
        if self.html:
            from evals.reporting.html import html_report

            self.html.write_text(html_report(report), encoding="utf-8")


def _print(report: Report, *, as_json: bool) -> None:
    if as_json:
        print_json(report.as_json())
        return
    from evals.reporting.tables import tables

    print_report(tables(report))


_TOLD_EVERY = 25


def asked(done: int, total: int) -> None:
    if done % _TOLD_EVERY == 0 or done == total:
        print_note(f"{done} of {total} questions asked")
