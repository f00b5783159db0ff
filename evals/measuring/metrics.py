"""Retrieval measures over ranked document ids, computed by ir-measures through trec_eval.

trec_eval orders a run by score and breaks ties by document id, whatever order the run came in; so
ranks are turned into strictly falling scores here. Its reciprocal rank has no cutoff, so the run
is cut before. A question without results is worth 0 and is never left out of a mean.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import TypeAlias

import ir_measures

Qrels: TypeAlias = Mapping[str, Mapping[str, int]]
"""Judgements by question and document; above 0 is relevant, and nDCG's gain."""
Run: TypeAlias = Mapping[str, Sequence[str]]
"""Document ids of each question, best first, each at most once."""

BEIR_MEASURES = ("nDCG@10", "R@100", "RR@10")

_MEASURE = re.compile(r"(nDCG|R|RR|P|Success)@([1-9][0-9]*)")


def per_question(measure: str, qrels: Qrels, run: Run) -> dict[str, float]:
    """The measure for every judged question: `nDCG@k`, `R@k`, `RR@k`, `P@k` or `Success@k`.

    Raises ValueError for another measure or a run that repeats a document.
    """
    match = _MEASURE.fullmatch(measure)
    if not match:
        raise ValueError(f"{measure} is not one of nDCG@k, R@k, RR@k, P@k, Success@k")
    name, cutoff = match.group(1), int(match.group(2))
    scored = [
        ir_measures.ScoredDoc(question, document, float(cutoff - rank))
        for question in qrels
        for rank, document in enumerate(_unique(question, run)[:cutoff])
    ]
    values = dict.fromkeys(qrels, 0.0)
    if scored:
        target = ir_measures.RR if name == "RR" else ir_measures.parse_measure(measure)
        judged = [
            ir_measures.Qrel(question, document, grade)
            for question, grades in qrels.items()
            for document, grade in grades.items()
        ]
        for metric in ir_measures.pytrec_eval.iter_calc([target], judged, scored):
            values[metric.query_id] = float(metric.value)
    return values


def mean(measure: str, qrels: Qrels, run: Run) -> float:
    """The measure averaged over all judged questions, those without results as 0."""
    return fmean(per_question(measure, qrels, run).values())


def _unique(question: str, run: Run) -> Sequence[str]:
    documents = run.get(question, ())
    if len(set(documents)) != len(documents):
        raise ValueError(f"the run of question {question} names a document twice")
    return documents
