"""The six judgements of an answer by rules, without a model: cheap, repeatable, and blunt.

Their names and what they ask are those of Es et al., "RAGAS: Automated Evaluation of Retrieval
Augmented Generation", EACL 2024; `evals.measuring.judge` asks a model the same. Words are
compared as the lexical search does: stemmed, without stop words, identifiers whole. Every value is
from 0 to 1.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from evals.datasets.questions import Case, evidence_ranks
from evals.running.observe import Observed, Passage
from quarry.text import analyze, sentences

JUDGEMENTS = (
    "context_relevance",
    "context_recall",
    "context_precision",
    "faithfulness",
    "answer_relevance",
    "correctness",
)
SUPPORTED = 0.7
"""A sentence is supported if one passage holds this share of its words, and all its figures."""
_MARK = re.compile(r"\s*\[S\d+\]")


def by_rules(
    case: Case, observed: Observed, *, sent: int, answers: bool = True
) -> dict[str, float]:
    """The judgements that apply: recall and precision only if evidence is named, those of the
    answer only if there is one, or if `answers` were asked for and a failure took it away."""
    context = observed.passages[:sent]
    values: dict[str, float] = {}
    if case.status == "answered":
        values["context_relevance"] = held(case.question, " ".join(p.text for p in context))
        if case.evidence:
            values |= _evidence(case, context)
    if observed.status == "answered":
        answer = plain(observed.answer)
        values["faithfulness"] = faithfulness(answer, context)
        values["answer_relevance"] = held(case.question, answer)
    failed = answers and bool(observed.error)
    if failed and case.status == "answered":
        values |= {"faithfulness": 0.0, "answer_relevance": 0.0}
    if judges_answers(case) and (observed.status or failed):
        values["correctness"] = correctness(case, observed)
    return values


def judges_answers(case: Case) -> bool:
    """Whether the case says what a right answer is. An answerable one without `must` does not: any
    nonsense would do."""
    return case.status == "refused" or bool(case.must)


def correctness(case: Case, observed: Observed) -> float:
    """Share of the required patterns that the answer matches; 0 for a wrong status or a forbidden
    pattern."""
    if observed.status != case.status or unwanted(case, observed.answer):
        return 0.0
    return 1.0 - len(missing(case, observed.answer)) / max(1, len(case.must))


def missing(case: Case, answer: str) -> list[str]:
    """Required patterns that the answer does not match."""
    return [pattern for pattern in case.must if not _matches(pattern, answer)]


def unwanted(case: Case, answer: str) -> list[str]:
    """Forbidden patterns that it matches."""
    return [pattern for pattern in case.must_not if _matches(pattern, answer)]


def held(question: str, text: str) -> float:
    """Share of the question's words that the text holds."""
    words = set(analyze(question))
    return len(words.intersection(analyze(text))) / len(words) if words else 1.0


def faithfulness(answer: str, context: Sequence[Passage]) -> float:
    """Share of the answer's sentences that one passage supports."""
    passages = [set(analyze(f"{passage.section}\n{passage.text}")) for passage in context]
    said = [set(analyze(answer[start:end])) for start, end in sentences(answer)]
    said = [words for words in said if words]
    if not said:
        return 1.0
    return sum(any(_supports(passage, words) for passage in passages) for words in said) / len(said)


def plain(answer: str) -> str:
    """The answer without its citation marks."""
    return _MARK.sub("", answer).strip()


def _supports(passage: set[str], words: set[str]) -> bool:
    figures = {word for word in words if any(map(str.isdigit, word))}
    return figures <= passage and len(words & passage) / len(words) >= SUPPORTED


def _evidence(case: Case, context: Sequence[Passage]) -> dict[str, float]:
    """Recall: share of the pieces in the context. Precision: the mean, over the passages that hold
    a new piece, of the share of such passages down to there."""
    ranks = evidence_ranks(case, [passage.text for passage in context])
    useful = sorted({rank for rank in ranks if rank})
    precision = [number / rank for number, rank in enumerate(useful, start=1)]
    return {
        "context_recall": sum(rank is not None for rank in ranks) / len(ranks),
        "context_precision": sum(precision) / len(precision) if precision else 0.0,
    }


def _matches(pattern: str, text: str) -> bool:
    return re.search(pattern, text, re.IGNORECASE) is not None
