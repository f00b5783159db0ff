"""Which figures a run can have, so that a wrong name is told before anything is asked."""

from __future__ import annotations

from evals.measuring.judge import UNREADABLE
from evals.measuring.judgements import JUDGEMENTS
from evals.measuring.retrieval import MEASURES, Depths
from evals.measuring.scoring import CITATIONS, OUTCOMES
from evals.running.system import ANN_RECALL

COST_FIGURES = (
    "search_ms_p50",
    "search_ms_p95",
    "answer_ms_p50",
    "answer_ms_p95",
    "prompt_tokens",
    "completion_tokens",
)
FAILED_DOCUMENTS = "failed_documents"
"""A figure of the whole run: documents that are not in the index, or in part only."""
_OF_PASSAGES = tuple(name for name in JUDGEMENTS if name.startswith("context_"))


def figure_names(
    depths: Depths, *, answers: bool, judge: bool, exact: bool, inside: bool
) -> set[str]:
    """Every figure that such a run may have; whether it does is up to its cases."""
    names = {f"{name}@{depth}" for name in MEASURES for depth in depths.all}
    names.update(COST_FIGURES, _OF_PASSAGES)
    if answers:
        names.update(("pass_rate", *OUTCOMES, *CITATIONS, *JUDGEMENTS))
    if judge:
        names.update((UNREADABLE, *(f"judged_{name}" for name in JUDGEMENTS)))
    if exact:
        names.add(ANN_RECALL)
    if inside:
        names.add(FAILED_DOCUMENTS)
    return names
