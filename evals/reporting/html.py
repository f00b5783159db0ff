"""The report as one HTML file: no script, no other file, nothing that a mail program would strip.

Questions, answers and ids are not ours: the template escapes everything but the plots.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from evals.compare import COST_FIELDS
from evals.measuring.results import CaseResult
from evals.measuring.significance import FEWEST_PAIRS
from evals.reporting import plots
from evals.reporting.report import Report, Run
from evals.reporting.tables import COUNTS, headlines, shown_slices

_MOST_SLICES = 24
"""Drawn in one plot; the table has all."""


def html_report(report: Report) -> str:
    """A complete HTML document, UTF-8."""
    environment = Environment(
        loader=PackageLoader("evals.reporting", "."),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    page: str = environment.get_template("report.html.j2").render(
        report=report,
        headlines=headlines(report.runs),
        counts=COUNTS,
        measures=list(dict.fromkeys(n for run in report.runs for n in run.whole.measures)),
        costs=COST_FIELDS,
        slices=[(run, shown_slices(run)) for run in report.runs],
        plots=[Markup(svg) for svg in _plots(report)],  # noqa: S704 - drawn by us, labels escaped
        unlike=unlike(report.runs),
    )
    return page


def unlike(runs: Sequence[Run]) -> list[tuple[str, list[tuple[Run, CaseResult | None]]]]:
    """Cases that did not pass in every run, with each run and its result."""
    found = [(run, run.by_id) for run in runs]
    ids = dict.fromkeys(case for _, results in found for case in results)
    rows = [(case, [(run, results.get(case)) for run, results in found]) for case in ids]
    return [row for row in rows if any(each and not _well(each) for _, each in row[1])]


def _well(result: CaseResult) -> bool:
    return result.passed and not result.outdated


def _plots(report: Report) -> Iterable[str]:
    names = [name for name in headlines(report.runs) if _everywhere(report, name)]
    wholes = {run.label: [run.whole.measures[name] for name in names] for run in report.runs}
    yield plots.bars(names, wholes, title="All cases")
    curves = {run.label: _curve(run) for run in report.runs}
    if all(curves.values()):
        yield plots.depths(curves, title="Share of questions whose evidence is complete, by depth")
    first = report.runs[0]
    main = "pass_rate" if "pass_rate" in first.whole.measures else f"R@{first.depths.sent}"
    groups = [name for name in shown_slices(first) if _has(report, name, main)][:_MOST_SLICES]
    if groups:
        yield plots.bars(
            groups,
            {
                run.label: [run.slices[name].measures[main] for name in groups]
                for run in report.runs
            },
            title=f"{main} by slice",
        )
    for comparison in report.comparisons:
        shown = {"pass", *headlines(report.runs)}
        found = {k: d for k, d in comparison.differences.items() if k in shown}
        if found:
            title = f"{comparison.second} minus {comparison.first}, with 95 % intervals"
            few = any(each.low is None for each in found.values())
            note = f" (none below {FEWEST_PAIRS} cases)" if few else ""
            yield plots.differences(found, title=title + note)


def _everywhere(report: Report, measure: str) -> bool:
    return all(measure in run.whole.measures for run in report.runs)


def _has(report: Report, slice_name: str, measure: str) -> bool:
    return all(
        slice_name in run.slices and measure in run.slices[slice_name].measures
        for run in report.runs
    )


def _curve(run: Run) -> Mapping[int, float]:
    """Share of the judged cases with all evidence in the first 1, 2, … passages."""
    deepest = run.depths.reranked
    judged = [r for r in run.results if r.case.judged and not r.outdated]
    if not judged:
        return {}
    last = [max((rank or deepest + 1 for rank in r.found), default=deepest + 1) for r in judged]
    return {
        depth: sum(rank <= depth for rank in last) / len(last) for depth in range(1, deepest + 1)
    }
