"""Reports as tables on a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from rich.table import Table
from rich.text import Text

from evals.compare import COST_FIELDS, Comparison
from evals.gate import Check
from evals.measuring.metrics import BEIR_MEASURES
from evals.measuring.names import COST_FIGURES
from evals.measuring.results import Figures
from evals.reporting.report import Report, Run
from evals.running.collection import BeirReport

COUNTS = (
    "cases",
    "judged",
    "unjudged",
    "unjudged_answers",
    "outdated",
    "failed",
    "empty",
    "degraded",
    "flaky",
    "leaks",
)


def headlines(runs: Sequence[Run]) -> list[str]:
    """The figures that are shown first, all from 0 to 1."""
    sent = sorted({run.depths.sent for run in runs})
    deep = sorted({*sent, *(run.depths.reranked for run in runs)})
    return list(
        dict.fromkeys(
            (
                "pass_rate",
                "refused_answerable",
                "answered_unanswerable",
                "all_evidence@5",
                *(f"all_evidence@{depth}" for depth in sent),
                *(f"R@{depth}" for depth in deep),
                "RR@10",
                "nDCG@10",
                *(f"returned@{depth}" for depth in sent),
                "citation_precision",
                "citation_coverage",
                "correctness",
                "faithfulness",
                "ann_recall@10",
            )
        )
    )


def shown_slices(run: Run) -> list[str]:
    """Slices that say something that the whole does not."""
    return [name for name, found in run.slices.items() if found.cases < run.whole.cases]


def tables(report: Report) -> Iterator[Table | Text]:
    """The whole report, top down."""
    yield _whole(report)
    for run in report.runs:
        if shown_slices(run):
            yield _slices(run)
    for run in report.runs:
        yield from _failed(run)
    for comparison in report.comparisons:
        yield from _compared(comparison, headlines(report.runs))
    if report.checks:
        yield _gate(report.checks)
    for note in report.notes:
        yield Text(note)


def _table(title: str, columns: Iterable[str]) -> Table:
    table = Table(title=Text(title), title_justify="left", box=None, pad_edge=False)
    for number, column in enumerate(columns):
        table.add_column(Text(column), justify="right" if number else "left")
    return table


def _whole(report: Report) -> Table:
    names = [
        name
        for name in (*headlines(report.runs), *COST_FIGURES)
        if any(name in run.whole.measures for run in report.runs)
    ]
    table = _table(", ".join(report.sets), ["", *(run.label for run in report.runs)])
    for count in COUNTS:
        values = [getattr(run.whole, count) for run in report.runs]
        if count in ("cases", "failed", "leaks") or any(values):
            table.add_row(count, *map(str, values))
    for name in names:
        table.add_row(name, *(value_text(run.whole.measures, name) for run in report.runs))
    return table


def _slices(run: Run) -> Table:
    names = [
        name
        for name in ("pass_rate", "all_evidence@5", f"R@{run.depths.sent}", "RR@10", "nDCG@10")
        if name in run.whole.measures
    ]
    table = _table(f"{run.label}, by slice", ["slice", "cases", *names])
    for slice_name in shown_slices(run):
        found: Figures = run.slices[slice_name]
        figures = (value_text(found.measures, name) for name in names)
        table.add_row(Text(slice_name), str(found.cases), *figures)
    return table


def _failed(run: Run) -> Iterator[Table]:
    bad = [result for result in run.results if not result.passed or result.outdated]
    if not bad:
        return
    table = _table(f"{run.label}, cases that did not pass", ["case", "why"])
    table.columns[1].justify = "left"
    for result in bad:
        why = ["outdated: no current document says it", *result.leaks]
        told = why if result.outdated else result.reasons
        table.add_row(Text(result.case.id), Text("; ".join(told)))
    yield table


def _compared(comparison: Comparison, names: Sequence[str]) -> Iterator[Table | Text]:
    shown = {"pass", *names, *COST_FIELDS}
    table = _table(
        f"{comparison.second} against {comparison.first}, {comparison.cases} cases",
        ["", "before", "after", "difference", "95 % interval", "up", "down", "p"],
    )
    for name, found in comparison.differences.items():
        if name in shown:
            places = 0 if name in COST_FIELDS else 3
            table.add_row(
                name,
                f"{found.first:.{places}f}",
                f"{found.second:.{places}f}",
                f"{found.second - found.first:+.{places}f}",
                found.span(places),
                str(found.better),
                str(found.worse),
                f"{found.p:.3f}",
            )
    yield table
    yield Text(f"gained: {', '.join(comparison.gained) or 'none'}")
    yield Text(f"lost: {', '.join(comparison.lost) or 'none'}")
    if comparison.outdated:
        yield Text(f"passed before and outdated now: {', '.join(comparison.outdated)}")
    yield Text(comparison.sentence)


def _gate(checks: Sequence[Check]) -> Table:
    table = _table("gate", ["demand", "must be", "is", ""])
    for check in checks:
        outcome = "ok" if check.passed else "FAILED"
        table.add_row(Text(check.what), check.demand, Text(check.has), outcome)
    return table


def value_text(measures: Mapping[str, float], name: str) -> str:
    """A figure as it is shown: three places, times and tokens as whole numbers."""
    value = measures.get(name)
    if value is None:
        return "–"
    return f"{value:.0f}" if name in COST_FIGURES else f"{value:.3f}"


def beir_table(report: BeirReport) -> Table:
    """One row a mode; questions that failed, found nothing or lost a stage are shown."""
    table = Table(title=report.dataset, title_justify="left", box=None, pad_edge=False)
    table.add_column("mode")
    for name in (*BEIR_MEASURES, "queries", "failed", "empty", "degraded", "ms/query"):
        table.add_column(name, justify="right")
    for mode, figures in report.modes.items():
        table.add_row(
            mode,
            *(f"{figures.measures[measure]:.3f}" for measure in BEIR_MEASURES),
            *map(str, (figures.queries, figures.failed, figures.empty, figures.degraded)),
            f"{figures.seconds / figures.queries * 1000:.0f}",
        )
    return table
