"""What one asking of one case is worth: passed or not and why, its figures, and what leaked."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from evals.datasets.questions import Case, Kind
from evals.measuring.judgements import by_rules, missing, unwanted
from evals.running.observe import Cited, Observed
from quarry.text import folded

REFUSED_ANSWERABLE, ANSWERED_UNANSWERABLE = OUTCOMES = (
    "refused_answerable",
    "answered_unanswerable",
)
CITATIONS = ("citation_precision", "citation_coverage")


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    passed: bool
    reasons: tuple[str, ...] = ()
    """Why it did not pass."""
    leaks: tuple[str, ...] = ()
    """What came out that this person may not know."""
    measures: dict[str, float] = field(default_factory=dict)


def score(
    case: Case,
    observed: Observed,
    *,
    sent: int,
    found: Sequence[int | None] = (),
    unreadable: Collection[str] = (),
    answers: bool = True,
) -> Score:
    """Scores the answer; a case that was only searched for passes if `found`, the ranks of its
    evidence, are all among the `sent`.

    `unreadable` are documents that the asker may not read; `answers` says whether an answer was
    asked for, so that one that never came counts as 0 in every figure.
    """
    leaks = tuple(_leaks(case, observed, unreadable))
    reasons = [*(_reasons(case, observed) or _lost(observed, found, sent)), *leaks]
    measures = by_rules(case, observed, sent=sent, answers=answers)
    if observed.status or (answers and observed.error):
        measures |= outcome(case, observed) | citations(case, observed)
    return Score(passed=not reasons, reasons=tuple(reasons), leaks=leaks, measures=measures)


def _reasons(case: Case, observed: Observed) -> list[str]:
    if observed.error:
        return [f"failed: {observed.error}"]
    if not observed.status:
        return []
    if observed.status != case.status:
        return [f"{observed.status} in place of {case.status}"]
    lacks = [f"the answer lacks /{pattern}/" for pattern in missing(case, observed.answer)]
    has = [f"the answer has /{pattern}/" for pattern in unwanted(case, observed.answer)]
    return lacks + has


def _lost(observed: Observed, found: Sequence[int | None], sent: int) -> list[str]:
    lost = sum(not rank or rank > sent for rank in found)
    if observed.status or not lost:
        return []
    return [f"{lost} of {len(found)} pieces of evidence are not among the first {sent}"]


def _leaks(case: Case, observed: Observed, unreadable: Collection[str]) -> list[str]:
    shown = {passage.doc_id for passage in observed.passages}
    shown |= {citation.doc_id for citation in observed.citations}
    leaks = [f"leak: document {doc_id}" for doc_id in sorted(shown.intersection(unreadable))]
    if case.kind is Kind.FORBIDDEN:
        leaks += [f"leak: /{pattern}/" for pattern in unwanted(case, observed.answer)]
    return leaks


def outcome(case: Case, observed: Observed) -> dict[str, float]:
    """1 if an answerable case was refused, or another one answered; a failure did neither."""
    if case.status == "answered":
        return {REFUSED_ANSWERABLE: float(observed.status == "refused")}
    return {ANSWERED_UNANSWERABLE: float(observed.status == "answered")}


def citations(case: Case, observed: Observed) -> dict[str, float]:
    """Precision: share of the citations that hold evidence, of answers that cite. Coverage: share
    of the pieces of evidence that a citation holds; a refusal covers nothing, a failure is 0."""
    if not case.evidence:
        return {}
    if observed.error:
        return dict.fromkeys(CITATIONS, 0.0)
    sources = [_texts(citation, observed) for citation in observed.citations]
    held = [[_holds(texts, piece) for piece in case.evidence] for texts in sources]
    covered = [any(column) for column in zip(*held, strict=True)] or [False]
    measures = {"citation_coverage": sum(covered) / len(case.evidence)}
    if sources:
        measures["citation_precision"] = sum(map(any, held)) / len(sources)
    return measures


def _texts(citation: Cited, observed: Observed) -> list[str]:
    """The quote, and what was found of its section: the passages that hold the quote, else all."""
    quote = folded(citation.quote)
    section = [
        folded(passage.text)
        for passage in observed.passages
        if (passage.doc_id, passage.section) == (citation.doc_id, citation.section)
    ]
    return [quote, *([text for text in section if quote in text] or section)]


def _holds(texts: Sequence[str], piece: Sequence[str]) -> bool:
    return any(folded(phrase) in text for phrase in piece for text in texts)
