"""Reports for people."""

from __future__ import annotations

from rich.table import Table

from evals.metrics import BEIR_MEASURES
from evals.runner import BeirReport


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
