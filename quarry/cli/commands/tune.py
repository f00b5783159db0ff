"""`quarry tune`: better settings, found on one half of a question set and shown on the other."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from quarry.cli.commands.evaluate import DocumentsOption, set_name
from quarry.cli.context import ConfigOption, JsonOption, settings_of
from quarry.cli.evaluating import Documents, changed, opening
from quarry.cli.output import print_json, print_line, print_note
from quarry.settings import Settings

if TYPE_CHECKING:
    from evals.compare import Difference
    from evals.datasets.questions import Case
    from evals.improving.learn import Learned, Pool
    from evals.improving.tune import Trial, Tuned

app = typer.Typer(
    help="Find better settings on one half of a question set, and show them on the other.",
    rich_markup_mode=None,
    no_args_is_help=True,
)

_DEFAULT_CHOICES = (
    "retrieval.rrf_k=10,60",
    "retrieval.candidates=50,100",
    "reranker.depth=20,50",
)

SetsOrFolders = Annotated[
    list[Path],
    typer.Argument(metavar="DATASET...", help="Question sets, or BEIR folders."),
]


@app.command("settings")
def settings_(
    context: typer.Context,
    *,
    datasets: SetsOrFolders,
    documents: DocumentsOption = None,
    choices: Annotated[
        list[str] | None,
        typer.Option(
            "--try",
            metavar="NAME=A,B",
            help="Values of a setting to try, such as chunking.max_tokens=150,250. May be given "
            "several times; all combinations are tried. Else: " + " ".join(_DEFAULT_CHOICES),
        ),
    ] = None,
    measure: Annotated[
        str,
        typer.Option(
            "--measure",
            metavar="FIGURE",
            help="What to tune for: search_ms, to be low, or a figure of search, to be high.",
        ),
    ] = "nDCG@10",
    as_json: JsonOption = False,
    config: ConfigOption = None,
) -> None:
    """Try combinations of settings on the tuning half, and report the best on the held-out half.

    Cases that are marked held_out are the second half; if none is, half of them by their ids.
    Other chunking or another embedder needs --documents, which indexes them anew for each.
    """
    settings = settings_of(context, config, or_defaults=True)
    from evals.improving.seen import remember
    from evals.improving.tune import grid, halves, parse_choices, tune

    folders = [Documents.parse(each) for each in documents or []]
    cases = cases_of(datasets)
    tuned = tune(
        cases,
        grid(settings, parse_choices(choices or list(_DEFAULT_CHOICES))),
        lambda each: opening(each, folders),
        measure=measure,
        tried=_tried,
    )
    if tuned.best.changed:
        remember(settings, tuned.best.changed, halves([each for each in cases if each.judged])[0])
    if as_json:
        print_json(_tuned_json(tuned))
        return
    _print_tuned(tuned)


def cases_of(datasets: list[Path]) -> list[Case]:
    """The cases of question sets and BEIR folders. Raises UsageError, SourceNotFound."""
    from evals.datasets.imports import from_beir
    from evals.datasets.questions import load_all

    sets = [path for path in datasets if not path.is_dir()]
    cases = load_all(sets) if sets else []
    for folder in (path for path in datasets if path.is_dir()):
        cases += from_beir(folder).cases
    return cases


def _tried(trial: Trial, number: int, total: int) -> None:
    print_note(f"{number} of {total}: {trial.label}: {trial.value:.3f}")


def _print_tuned(tuned: Tuned) -> None:
    from evals.improving.tune import as_yaml, rows

    print_line(f"{tuned.measure} on the tuning half, {tuned.tuning} cases:")
    for label, value in rows(tuned):
        print_line(f"  {value}  {label}")
    if tuned.split_by_id:
        print_line("No case is marked held_out, so half of them were held out by their ids.")
    if not tuned.best.changed:
        print_line("The settings as they are were not beaten.")
        return
    if found := tuned.held_out.differences.get(tuned.measure):
        print_line(
            f"On the {tuned.held_out.cases} held-out cases: {found.first:.3f} as it is, "
            f"{found.second:.3f} with {tuned.best.label}; 95 % interval of the difference "
            f"{found.span()}."
        )
    print_line(tuned.held_out.sentence)
    print_line()
    print_line(as_yaml(tuned.best.changed).rstrip())


def _tuned_json(tuned: Tuned) -> dict[str, object]:
    return {
        "measure": tuned.measure,
        "tuning_cases": tuned.tuning,
        "trials": [
            {"changed": dict(trial.changed), "value": round(trial.value, 6)}
            for trial in tuned.trials
        ],
        "best": dict(tuned.best.changed),
        "held_out": asdict(tuned.held_out),
        "split_by_id": tuned.split_by_id,
    }


@app.command("fusion")
def fusion(
    context: typer.Context,
    *,
    datasets: SetsOrFolders,
    output: Annotated[
        Path, typer.Option("--output", metavar="FILE", help="Where the weights are written.")
    ],
    documents: DocumentsOption = None,
    also: Annotated[
        list[Path] | None,
        typer.Option(
            "--also", metavar="DATASET", help="Another set, on which the weights are shown."
        ),
    ] = None,
    also_documents: Annotated[
        list[str] | None,
        typer.Option(
            "--also-documents",
            metavar="[NAME=]FOLDER",
            help="Its documents, in an index of their own.",
        ),
    ] = None,
    as_json: JsonOption = False,
    config: ConfigOption = None,
) -> None:
    """Learn how to weigh the signals of a search, and write the weights to a file.

    Cross-validated by question; held-out cases are never learned from. Name the file as
    retrieval.fusion_file to use it. With --also the weights are tried on another set and corpus,
    and the command says if they lower it there.
    """
    settings = settings_of(context, config, or_defaults=True)
    from evals.improving.learn import against
    from quarry.fusion import save_fusion

    learned = _learned(settings, datasets, documents)
    measured = {name: round(found.second, 4) for name, found in learned.unseen.items()}
    save_fusion(learned.fusion, output, measured)
    others = {}
    if also:
        others = against(_pools(settings, cases_of(also), also_documents), learned.fusion)
    sentence = _on_others(others, also or [])
    if as_json:
        print_json(_learned_json(learned, others) | {"also_sentence": sentence})
        return
    for name, weight in sorted(learned.fusion.weights.items(), key=lambda each: -abs(each[1])):
        print_line(f"{weight:+8.3f}  {name}")
    print_line(f"Learned from {learned.questions} questions; written to {output}.")
    for said in filter(None, (learned.sentence, sentence)):
        print_line(said)


def _learned(settings: Settings, datasets: list[Path], documents: list[str] | None) -> Learned:
    """The weights, with the questions that they have seen."""
    from evals.improving.learn import learn
    from evals.improving.seen import fingerprints

    cases = [case for case in cases_of(datasets) if case.judged and not case.held_out]
    learned = learn(_pools(settings, cases, documents), [set_name(path) for path in datasets])
    return replace(learned, fusion=replace(learned.fusion, seen=fingerprints(cases)))


def _on_others(others: Mapping[str, Difference], also: list[Path]) -> str:
    """Whether the weights lower another set; empty where there is none."""
    from evals.improving.learn import lowers

    return lowers(others, ", ".join(map(set_name, also))) if others else ""


def _learned_json(learned: Learned, others: Mapping[str, Difference]) -> dict[str, object]:
    return {
        "questions": learned.questions,
        "weights": dict(learned.fusion.weights),
        "unseen": {name: asdict(found) for name, found in learned.unseen.items()},
        "also": {name: asdict(found) for name, found in others.items()},
        "sentence": learned.sentence,
    }


def _pools(settings: Settings, cases: list[Case], documents: list[str] | None) -> list[Pool]:
    from evals.improving.learn import pools
    from evals.running.observe import Variant

    folders = [Documents.parse(each) for each in documents or []]
    with opening(changed(settings, {"fusion_file": None}), folders)() as system:
        return asyncio.run(pools(cases, system.ask, Variant(), _asked))


_TOLD_EVERY = 50


def _asked(done: int, total: int) -> None:
    if done % _TOLD_EVERY == 0 or done == total:
        print_note(f"{done} of {total} questions searched")
