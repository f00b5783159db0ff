"""Where every failed case lost its evidence: the first stage on the way from the source to the
answer that did not pass it on.

The path itself tells what each of its stages kept (`quarry explain`). What it cannot tell is looked
up beside it: whether a chunk that neither leg found is near by exact search over the permitted rows
(then the vector index lost it) or far (then the embedding did), and whether a document that says it
is hidden from the asker, or does not exist.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TypeAlias

from evals.datasets.questions import Case
from evals.measuring.corpus import Corpus
from evals.measuring.exact import ExactSearch
from evals.measuring.retrieval import Depths
from evals.running.collection import record_name
from evals.running.run import Plan, run_set
from evals.running.system import Inside, System
from quarry.access.check import Verdict
from quarry.explanation import Expectation, Lost
from quarry.records import Document, Principal, SearchRequest
from quarry.text import analyze, folded

MakeRequest: TypeAlias = Callable[[Case], SearchRequest]

MOST_PASSAGES = 20
"""Of a judged document that are looked for: those that share most words with the question."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """What the parsers get from the source documents now."""

    texts: Mapping[str, str]
    """By address."""
    unread: Mapping[str, str] = field(default_factory=dict)
    """Why an address could not be read, or only in part."""


Extract: TypeAlias = Callable[[], Sources]


class Stage(StrEnum):
    """Where evidence can be lost, from the source on; `none`: the case failed though nothing was
    lost."""

    SOURCE = "source"
    """No source document says it: the case is outdated, or the document is not there."""
    TEXT = "extracted text"
    """A source says it, or one that cannot be read may: the parser does not get it out, or the
    document was not indexed."""
    CHUNKS = "chunks"
    """A document says it, but no chunk holds the phrase whole."""
    FILTER = "filter"
    """Hidden from the asker, filtered out, or of a version that is not current."""
    EMBEDDING = "embedding"
    """Too far from the question by exact search, and without its words."""
    INDEX = "index"
    """Near by exact search, but approximate search does not find it."""
    CANDIDATES = "candidates"
    """Found by no leg although the question goes on from a conversation, or has no vector."""
    FUSION = "fusion"
    """Found, but ranked below what the reranker looks at."""
    RERANK = "rerank"
    """Looked at by the reranker, but ranked below what is sent."""
    CONTEXT = "context"
    """Ranked high enough, but left out as a near-duplicate or for want of room."""
    ANSWER = "answer"
    """Sent to the generator, which did not use it, or said something else."""
    NONE = "none"


ORDER: tuple[Stage, ...] = tuple(Stage)
_LATER = {
    Lost.CATALOG: Stage.FILTER,
    Lost.FUSE: Stage.FUSION,
    Lost.RERANK: Stage.RERANK,
    Lost.SELECT: Stage.CONTEXT,
    Lost.EVIDENCE: Stage.CONTEXT,
    Lost.PROMPT: Stage.CONTEXT,
    Lost.ANSWER: Stage.ANSWER,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Loss:
    """One piece of evidence of one case and what became of it."""

    phrase: str
    stage: Stage
    reason: str
    """In a few words: the verdict of the catalog, or the ranks."""
    record: str = ""
    """What to read: a chunk_id or the uri of a document."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    case: Case
    stage: Stage
    """The first stage that lost a piece."""
    reasons: Sequence[str]
    """Why the case failed."""
    losses: Sequence[Loss]


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnoses:
    cases: int
    failed: Sequence[Diagnosis]
    counts: Mapping[Stage, int] = field(default_factory=dict)
    """Failed cases by stage, in the order of the path."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Means:
    """What a diagnosis needs beside the system."""

    depths: Depths
    make_request: MakeRequest
    candidates: int
    """Rows asked of each leg."""
    extract: Extract | None = None
    """None: sources are not read again, and what no document says counts as lost at the source."""


async def diagnose(cases: Sequence[Case], system: System, means: Means) -> Diagnoses:
    """Runs the set and walks back from every case that fails."""
    inside = system.inside
    assert inside is not None, "a diagnosis looks into the index"
    plan = Plan(depths=means.depths, unreadable=inside.unreadable)
    results = await run_set(cases, system.ask, plan)
    walker = _Walker(inside, means)
    failed = [
        await walker.walk(result.case, result.reasons) for result in results if not result.passed
    ]
    counts = Counter(each.stage for each in failed)
    return Diagnoses(
        cases=len(cases),
        failed=failed,
        counts={stage: counts[stage] for stage in ORDER if counts[stage]},
    )


class _Walker:
    """Asks the path about each failed case; reads vectors and sources only if a case needs them."""

    def __init__(self, inside: Inside, means: Means) -> None:
        self._inside = inside
        self._means = means
        self._exact: ExactSearch | None = None
        self._sources: Sources | None = None

    async def walk(self, case: Case, reasons: Sequence[str]) -> Diagnosis:
        losses = await self._documents(case) if case.relevant else await self._evidence(case)
        lost = [each.stage for each in losses if each.stage is not Stage.NONE]
        # All evidence arrived and the case failed all the same: the answer said something else.
        default = Stage.ANSWER if case.judged or case.status == "refused" else Stage.NONE
        stage = min(lost, key=ORDER.index, default=default)
        return Diagnosis(case=case, stage=stage, reasons=reasons, losses=losses)

    async def _evidence(self, case: Case) -> list[Loss]:
        if not case.evidence:
            return []
        explanation = await self._inside.explain(self._means.make_request(case), case.evidence)
        return [self._loss(case, each) for each in explanation.expected]

    async def _documents(self, case: Case) -> list[Loss]:
        """Judged documents stand in for each other, so they are one piece: where the passage that
        came furthest was lost."""
        corpus = self._inside.corpus
        names = [name for name, grade in case.relevant.items() if grade > 0]
        texts = [text for each in corpus.named(names) for text in corpus.texts(each)]
        if not names:
            return []
        if not texts:
            named = {record_name(each.uri): each for each in corpus.unread}
            failed = [named[name] for name in names if name in named]
            return [replace(_not_indexed(failed or corpus.unread), phrase=names[0])]
        words = set(analyze(case.question))
        texts.sort(key=lambda text: -len(words.intersection(analyze(text))))
        piece = tuple(texts[:MOST_PASSAGES])
        explanation = await self._inside.explain(self._means.make_request(case), [piece])
        return [replace(self._loss(case, each), phrase=names[0]) for each in explanation.expected]

    def _loss(self, case: Case, expected: Expectation) -> Loss:
        phrase = expected.phrases[0]
        if expected.lost is None:
            return Loss(phrase=phrase, stage=Stage.NONE, reason=expected.reason)
        furthest = expected.places[0] if expected.places else None
        record = furthest.chunk_id if furthest else ""
        if expected.lost in _LATER:
            stage, reason = _LATER[expected.lost], expected.reason
            if furthest and furthest.fused_rank:
                reason += f", fused rank {furthest.fused_rank}, final rank {furthest.final_rank}"
            return Loss(phrase=phrase, stage=stage, reason=reason, record=record)
        if expected.lost is Lost.CANDIDATES:
            chunks = [place.chunk_id for place in expected.places]
            return replace(self._not_found(case, chunks), phrase=phrase)
        return replace(self._not_there(case, expected), phrase=phrase)

    def _not_found(self, case: Case, chunk_ids: Sequence[str]) -> Loss:
        """A chunk is there and permitted, and neither leg has it among its candidates."""
        if case.conversation:
            return Loss(
                phrase="",
                stage=Stage.CANDIDATES,
                reason="the question goes on from a conversation and may have been rewritten",
                record=chunk_ids[0],
            )
        if self._exact is None:
            self._exact = self._inside.exact()
        near = self._exact.near(case.question, self._principal(case), case.filter)
        ranks = {each: near.rank(each) for each in chunk_ids}
        best = min((r, each) for each, r in ranks.items() if r) if any(ranks.values()) else None
        if best is None:
            return Loss(
                phrase="",
                stage=Stage.INDEX,
                reason="the vector store has no row of it; run: quarry verify",
                record=chunk_ids[0],
            )
        rank, record = best
        stage = Stage.INDEX if rank <= self._means.candidates else Stage.EMBEDDING
        reason = f"exact rank {rank} of {len(near.scores)}, {self._means.candidates} are asked for"
        return Loss(phrase="", stage=stage, reason=reason, record=record)

    def _not_there(self, case: Case, expected: Expectation) -> Loss:
        """No document that the asker may read holds it, or none holds it in one chunk."""
        corpus, principal = self._inside.corpus, self._principal(case)
        if expected.lost is Lost.CHUNKS:
            uris = [d.uri for d in corpus.saying(expected.phrases)]
            return Loss(
                phrase="",
                stage=Stage.CHUNKS,
                reason="a border of chunks cuts the phrase",
                record=uris[0] if uris else "",
            )
        hidden = _hidden(corpus, expected.phrases, principal)
        if hidden:
            return Loss(
                phrase="", stage=Stage.FILTER, reason="unreadable for the asker", record=hidden
            )
        if self._means.extract is None:
            return _not_indexed(corpus.unread)
        return self._in_sources(expected.phrases, self._means.extract)

    def _in_sources(self, phrases: Sequence[str], extract: Extract) -> Loss:
        if self._sources is None:
            found = extract()
            texts = {address: folded(text) for address, text in found.texts.items()}
            self._sources = Sources(texts=texts, unread=found.unread)
        wanted = [folded(phrase) for phrase in phrases]
        for address, text in self._sources.texts.items():
            if any(phrase in text for phrase in wanted):
                return Loss(
                    phrase="",
                    stage=Stage.TEXT,
                    reason="a source says it and the index does not; run: quarry ingest",
                    record=address,
                )
        for address, why in self._sources.unread.items():
            reason = f"only a source that cannot be read whole may say it ({why})"
            return Loss(phrase="", stage=Stage.TEXT, reason=reason, record=address)
        return Loss(phrase="", stage=Stage.SOURCE, reason="no source document says it")

    def _principal(self, case: Case) -> Principal:
        return self._inside.people(case)


def _not_indexed(unread: Sequence[Document]) -> Loss:
    """No document of the index says it; `unread` are those that may."""
    if unread:
        reason = f"only a document that failed to be indexed may say it ({unread[0].error})"
        return Loss(phrase="", stage=Stage.TEXT, reason=reason, record=unread[0].uri)
    reason = "no document in the index says it; --documents looks into the sources"
    return Loss(phrase="", stage=Stage.SOURCE, reason=reason)


def _hidden(corpus: Corpus, phrases: Sequence[str], principal: Principal) -> str:
    """The uri of a document that says it and that the asker may not read; empty if none does."""
    for document in corpus.saying(phrases):
        if corpus.verdict(document, principal, versions=True) is Verdict.UNREADABLE:
            return document.uri
    return ""
