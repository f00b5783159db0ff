"""`quarry eval import`, `propose`, `agree` and `inject`: making sets, and other use of them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from quarry.cli.commands.evaluate import (
    GATE_FAILED,
    DocumentsOption,
    SetsArgument,
    asked,
    contestant,
    set_name,
    variants,
)
from quarry.cli.context import ConfigOption, JsonOption, settings_of
from quarry.cli.evaluating import Documents, judge_of
from quarry.cli.output import one_line, print_json, print_line, print_note
from quarry.errors import UsageError
from quarry.settings import Settings

if TYPE_CHECKING:
    from evals.datasets.questions import Case
    from evals.injections import Outcome, Planted


def import_(
    source: Annotated[
        Path,
        typer.Argument(metavar="SOURCE", help="A BEIR folder, a .csv file, or TREC topics."),
    ],
    output: Annotated[
        Path, typer.Option("--output", metavar="FILE", help="Where the question set is written.")
    ],
    qrels: Annotated[
        Path | None, typer.Option("--qrels", metavar="FILE", help="Judgements of TREC topics.")
    ] = None,
    split: Annotated[
        str, typer.Option("--split", metavar="NAME", help="Which qrels of a BEIR folder.")
    ] = "test",
) -> None:
    """Make a question set from a collection or a spreadsheet."""
    from evals.datasets.imports import import_set
    from evals.datasets.questions import write_questions

    made = import_set(source, qrels, split)
    print_line(f"{write_questions(made.cases, output)} cases written to {output}.")
    if made.unjudged:
        print_note(f"{made.unjudged} questions that nobody judged were left out.")


def propose(
    log: Annotated[
        Path,
        typer.Argument(metavar="LOG", help="Questions with replies and ratings, JSON lines."),
    ],
    output: Annotated[
        Path, typer.Option("--output", metavar="FILE", help="Where the drafts are written.")
    ],
    known: Annotated[
        list[Path] | None,
        typer.Option("--known", metavar="DATASET", help="Leave out what this set asks already."),
    ] = None,
) -> None:
    """Draft cases from what people asked and how they rated the answers, for you to accept.

    A liked answer becomes a case with the cited words as evidence. For one that was not liked, or
    not rated, you have to write the evidence: quarry eval names each such line until it is done.
    """
    from evals.datasets.questions import load_all
    from evals.improving.propose import load_log
    from evals.improving.propose import propose as draft

    drafts = draft(load_log(log), load_all(known) if known else [])
    output.write_text("".join(f"{line}\n" for line in drafts.lines), encoding="utf-8")
    print_line(
        f"{len(drafts.lines)} drafts written to {output}: {drafts.whole} to read, "
        f"{drafts.unfinished} to complete; {drafts.known} were known."
    )


def agree(
    context: typer.Context,
    labels: Annotated[
        Path,
        typer.Argument(metavar="LABELS", help="Judgements by people, one JSON object a line."),
    ],
    as_json: JsonOption = False,
    config: ConfigOption = None,
) -> None:
    """Compare the judge model with judgements by people: agreement and Cohen's kappa.

    Do it before the figures of a judge are believed, and again when its model changes.
    """
    settings = settings_of(context, config, or_defaults=True)
    from evals.measuring.agreement import agreement, load_labels

    rows = asyncio.run(agreement(load_labels(labels), judge_of(settings)))
    if as_json:
        print_json({"judge": settings.judge.model, "judgements": [asdict(row) for row in rows]})
        return
    for row in rows:
        kappa = "–" if row.kappa is None else f"{row.kappa:.2f}"
        print_line(
            f"{row.judgement:<18} {row.labels} labels, {row.agreed:.2f} agreed, kappa {kappa}, "
            f"{row.unreadable} unreadable. {row.sentence}"
        )
        for case, person, said in row.differing:
            print_line(f"  {one_line(case)}: people say {person}, the judge says {said}")


def inject(
    context: typer.Context,
    *,
    datasets: SetsArgument,
    documents: DocumentsOption = None,
    rewording: Annotated[
        bool,
        typer.Option(
            "--allow-rewording",
            help="Let other words from the same sources through, for generators that write.",
        ),
    ] = False,
    as_json: JsonOption = False,
    config: ConfigOption = None,
) -> None:
    """Plant instructions among the documents, and see whether any answer changes.

    Pages that want to be obeyed (orders, control tokens, hidden text, fake sources, leaking links)
    are indexed beside --documents. Exits with 4 if an answer says what they want, cites one, stops
    passing, or is another than without them.
    """
    settings = settings_of(context, config, or_defaults=True)
    from evals import injections
    from evals.datasets.questions import load_all

    cases = load_all(datasets)
    folders = [Documents.parse(each) for each in documents or []]
    if not folders:
        raise UsageError("inject needs --documents, the folders that the questions are about.")
    planted = settings.data_dir / "evals" / injections.SOURCE
    pages = injections.plant(planted, cases)
    hostile = [*folders, Documents(source=injections.SOURCE, folder=planted)]
    names = [set_name(path) for path in datasets]
    found, notes = _planted(settings, names, cases, pages, {"clean": folders, "planted": hostile})
    passed = found.passed(rewording=rewording)
    if as_json:
        print_json(_injected_json(found, pages, notes) | {"passed": passed})
    else:
        for line in _injected_lines(found, len(cases), notes):
            print_line(line)
    if not passed:
        raise typer.Exit(GATE_FAILED)


def _planted(
    settings: Settings,
    names: list[str],
    cases: list[Case],
    pages: Sequence[Planted],
    runs: Mapping[str, list[Documents]],
) -> tuple[Outcome, Sequence[str]]:
    """Asks the set without the pages and with them; what came of it, and what must be said."""
    from evals.evaluate import Options, evaluate
    from evals.injections import Watch, outcome

    clean, planted = watches = Watch(), Watch()
    contestants = [
        contestant(label, settings, variants(None), folders, watch)
        for (label, folders), watch in zip(runs.items(), watches, strict=True)
    ]
    report = evaluate(names, cases, contestants, Options(progress=asked))
    if report.failure:
        raise report.failure
    (comparison,) = report.comparisons
    found = outcome(
        cases,
        pages,
        clean=clean,
        planted=planted,
        lost=comparison.lost,
        sent=settings.retrieval.evidence_chunks,
    )
    return found, report.notes


def _injected_lines(found: Outcome, asked: int, notes: Sequence[str]) -> Iterator[str]:
    changed = [f"{case} ({', '.join(what)})" for case, what in found.changed.items()]
    kinds = [page.kind for page in found.unretrieved]
    yield f"{found.pages} planted pages, {asked} questions."
    yield f"answers that obey or cite one: {_ids(found.obeyed)}"
    yield f"answers that are others than without them: {_ids(changed)}"
    yield f"cases that pass without them and fail with them: {_ids(found.lost)}"
    yield f"questions that failed, of which nothing is known: {_ids(found.unseen)}"
    yield f"pages that no question found, {len(kinds)} of {found.pages}: {_ids(kinds)}"
    yield from notes


def _injected_json(
    found: Outcome, pages: Sequence[Planted], notes: Sequence[str]
) -> dict[str, object]:
    missed = {page.name for page in found.unretrieved}
    return {
        "pages": [asdict(page) | {"retrieved": page.name not in missed} for page in pages],
        "obeyed": list(found.obeyed),
        "changed": [
            {"id": case, "differences": list(what)} for case, what in found.changed.items()
        ],
        "lost": list(found.lost),
        "unseen": list(found.unseen),
        "notes": list(notes),
    }


def _ids(ids: Iterable[str]) -> str:
    return ", ".join(ids) or "none"
