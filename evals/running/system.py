"""What is evaluated: an index with its models in this process, or a server somewhere else."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import structlog

from evals.datasets.questions import Case
from evals.measuring.corpus import Corpus, People
from evals.measuring.exact import ExactSearch
from evals.running.observe import Ask, Variant, request_body
from quarry.errors import QuarryError
from quarry.explanation import Explanation
from quarry.records import SearchRequest

_log = structlog.get_logger(__name__)

Explain: TypeAlias = Callable[[SearchRequest, Sequence[Sequence[str]]], Awaitable[Explanation]]
"""How an answer comes about, and where each expected piece of evidence is lost."""

NEAREST = 10
"""Of the nearest passages, that approximate search is held against."""
ANN_RECALL = f"ann_recall@{NEAREST}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Inside:
    """What only the process that holds the index can tell."""

    corpus: Corpus
    people: People
    exact: Callable[[], ExactSearch]
    """Reads all vectors; called once by who needs it."""
    explain: Explain
    plain: Ask
    """Asks without `retrieval.rewrite` and `retrieval.select`."""

    def unreadable(self, case: Case, doc_ids: Collection[str]) -> set[str]:
        """Those of the documents that the asker of the case may not read."""
        return self.corpus.unreadable(self.people(case), doc_ids)


@dataclass(frozen=True, slots=True, kw_only=True)
class System:
    ask: Ask
    inside: Inside | None = None
    """None for a server: all that is known of it is what it answers."""


async def ann_recall(
    cases: Sequence[Case], system: System, variant: Variant
) -> dict[str, dict[str, float]]:
    """Share of the exact nearest passages that the index finds, by case; 0 where the search failed.

    The question is searched as it is and nothing is chosen among what is found, so that the index
    alone is measured. Cases that go on from a conversation are left out.
    """
    assert system.inside is not None, "exact search needs the index in this process"
    inside, found = system.inside, {}
    exact = inside.exact()
    for case in cases:
        if case.conversation:
            continue
        near = exact.near(
            case.question,
            inside.people(case),
            case.filter if variant.filters else "",
            versions=not variant.filters,
        )
        ids = await _nearest(case, inside.plain, variant)
        found[case.id] = {ANN_RECALL: near.recall(ids, NEAREST)}
    return found


async def _nearest(case: Case, plain: Ask, variant: Variant) -> set[str]:
    body = request_body(case, variant) | {"mode": "dense", "rerank": False, "top_k": NEAREST}
    try:
        results = (await plain("search", body))["results"]
    except QuarryError as error:
        _log.warning("exact_search_failed", case=case.id, error=error.code)
        return set()
    return {str(result["chunk_id"]) for result in results}
