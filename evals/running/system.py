"""What is evaluated: an index with its models in this process, or a server somewhere else."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from evals.datasets.questions import Case
from evals.measuring.corpus import Corpus, People
from evals.measuring.exact import ExactSearch
from evals.running.observe import Ask, Variant, request_body
from quarry.explanation import Explanation
from quarry.records import SearchRequest

Explain: TypeAlias = Callable[[SearchRequest, Sequence[Sequence[str]]], Awaitable[Explanation]]
"""How an answer comes about, and where each expected piece of evidence is lost."""

NEAREST = 10
"""Of the nearest passages, that approximate search is held against."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Inside:
    """What only the process that holds the index can tell."""

    corpus: Corpus
    people: People
    exact: Callable[[], ExactSearch]
    """Reads all vectors; called once by who needs it."""
    explain: Explain

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
    """Share of the exact nearest passages that the index finds, by case; without those that go on
    from a conversation, whose question may be rewritten before it is embedded."""
    assert system.inside is not None, "exact search needs the index in this process"
    exact, people = system.inside.exact(), system.inside.people
    found: dict[str, dict[str, float]] = {}
    for case in cases:
        if case.conversation:
            continue
        body = request_body(case, variant) | {"mode": "dense", "rerank": False, "top_k": NEAREST}
        results = (await system.ask("search", body))["results"]
        near = exact.near(
            case.question,
            people(case),
            case.filter if variant.filters else "",
            versions=not variant.filters,
        )
        recall = near.recall({result["chunk_id"] for result in results}, NEAREST)
        found[case.id] = {f"ann_recall@{NEAREST}": recall}
    return found
