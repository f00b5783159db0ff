"""The whole path of a question, in order; each stage is a module of its name.

    question → rewrite → retrieve (embed, dense ∥ lexical, catalog check, texts) → fuse → rerank
      → select → evidence → prompt → generate → answer

`Searcher` works on the stores, `Answerer` on what it gathered: in process both are here, in Ray
Serve they are in two deployments.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, TypeAlias
from uuid import uuid4

from quarry.models import estimate
from quarry.records import (
    Answer,
    Candidate,
    Evidence,
    Prompt,
    SearchRequest,
    SearchResult,
    StageRecord,
)
from quarry.settings import Settings
from quarry.text import REFUSAL
from serve.answering.answer import REFUSED, Checked, Judge, check
from serve.answering.counting import dependable
from serve.answering.everything import choose_everything
from serve.answering.evidence import Budget, Chosen, around_of, choose
from serve.answering.generate import Delta, Written, write
from serve.answering.prompt import Limits, fit, overhead_tokens, room_for_sources
from serve.explaining.locate import Located, locate
from serve.extras import Extras
from serve.finding.fuse import fuse
from serve.finding.question import Asked, ask
from serve.finding.rerank import rerank
from serve.finding.retrieve import retrieve
from serve.finding.rewrite import Rewriting, rewrite
from serve.finding.select import Selection, select
from serve.finding.weigh import weigh
from serve.health import readiness
from serve.index import Index
from serve.models import AnswerModels, CountTokens, SearchModels
from serve.stage import Deadline, Run, Threads


@dataclass(frozen=True, slots=True, kw_only=True)
class Final:
    """The whole answer; where it differs from the deltas, it is what counts."""

    answer: Answer


Event: TypeAlias = Delta | Final


@dataclass(frozen=True, slots=True, kw_only=True)
class Gathered:
    """All that an answer is written from."""

    question: str
    evidence: tuple[Evidence, ...]
    generation: str
    degraded: tuple[str, ...]
    trace: tuple[StageRecord, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Examined:
    """What was gathered, how it came about, and where expected phrases stand in the documents."""

    gathered: Gathered
    results: Mapping[str, Any]
    """What each stage gave, by its name."""
    located: tuple[Located, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Searcher:
    """From the question to ranked candidates, or on to evidence."""

    index: Index
    models: SearchModels
    threads: Threads
    settings: Settings
    extras: Extras

    async def search(self, request: SearchRequest) -> SearchResult:
        """The first `top_k` candidates. Raises DeadlineExceeded."""
        run = Run(Deadline(request.deadline_s))
        _, ranked = await run.in_time(self._ranked(request, run))
        return SearchResult(
            candidates=tuple(ranked[: request.top_k]),
            generation=self.index.generation,
            degraded=tuple(run.degraded),
            trace=tuple(run.trace),
        )

    async def gather(self, request: SearchRequest) -> Gathered:
        """Evidence for an answer. Raises DeadlineExceeded."""
        _, gathered = await self._gather(request, Run(Deadline(request.deadline_s)))
        return gathered

    async def examine(self, request: SearchRequest, expect: Sequence[Sequence[str]]) -> Examined:
        """`gather` with all that its stages gave, for an explanation. Raises DeadlineExceeded.

        `expect` lists pieces of evidence, each as phrases of which any one marks it.
        """
        results: dict[str, Any] = {}
        run = Run(Deadline(request.deadline_s), results=results)
        asked, gathered = await self._gather(request, run)
        located = await run.in_time(
            locate(expect, asked, index=self.index, threads=self.threads, deadline=run.deadline)
        )
        return Examined(gathered=gathered, results=results, located=located)

    async def ready(self) -> dict[str, str]:
        return await readiness(self.index, self.models, self.threads)

    async def _ranked(
        self, request: SearchRequest, run: Run, *, spare: bool = False
    ) -> tuple[Asked, Sequence[Candidate]]:
        """`spare`: more than `top_k` is of use, since some may be left out."""
        rrf_k, depth = self.settings.retrieval.rrf_k, self.settings.reranker.depth
        selection = self._selection
        reordered = selection.wanted or (self.models.rerank is not None and request.rerank)
        # Texts are read of no more than what can come to the front.
        keep = max(request.top_k, depth) if spare or reordered else request.top_k
        if selection.settings.one_per_section:  # many may be of one section
            keep = max(keep, self.settings.retrieval.candidates)
        asked = run.add(*ask(request, self.settings.retrieval))
        rewriting = self._rewriting
        if rewriting.wanted(request.conversation):
            asked = run.add(*await rewrite(asked, request.conversation, rewriting, run))
        found, records = await retrieve(
            asked, keep=keep, index=self.index, models=self.models, threads=self.threads, run=run
        )
        ranked: Sequence[Candidate] = run.add(*fuse(run.add(found, *records), asked, rrf_k=rrf_k))
        if self.models.rerank is not None and request.rerank:
            model = self.models.rerank
            ranked, record = await rerank(
                ranked, asked, model=model, depth=depth, rrf_k=rrf_k, run=run
            )
            if self.extras.fusion is not None:
                ranked = weigh(ranked, asked, self.extras.fusion)
            run.add(ranked, record)
        ranked = ranked[:keep]
        if selection.wanted:
            ranked = run.add(*await select(ranked, asked, selection, run)).kept
        return asked, ranked

    @property
    def _rewriting(self) -> Rewriting:
        return Rewriting(
            settings=self.settings.retrieval.rewrite,
            glossary=self.extras.glossary,
            write=self.models.write,
            max_chars=self.settings.retrieval.max_question_chars,
            context_tokens=self.settings.generator.context_tokens,
        )

    @property
    def _selection(self) -> Selection:
        return Selection(
            settings=self.settings.retrieval.select,
            calibration=self.extras.calibration,
            vectors=self.index.vectors,
            threads=self.threads,
            pool=self.settings.reranker.depth,
        )

    async def _gather(self, request: SearchRequest, run: Run) -> tuple[Asked, Gathered]:
        asked, chosen = await run.in_time(self._evidence(request, run))
        return asked, Gathered(
            question=asked.question,
            evidence=chosen.evidence,
            generation=self.index.generation,
            degraded=tuple(run.degraded),
            trace=tuple(run.trace),
        )

    async def _evidence(self, request: SearchRequest, run: Run) -> tuple[Asked, Chosen]:
        asked, ranked = await self._ranked(request, run, spare=True)
        count_tokens = dependable(self.models.count_tokens, estimate.tokens, run.deadline)
        budget = await self._budget(asked, count_tokens)
        options = self.settings.retrieval.select
        if options.long_context:
            everything = await choose_everything(
                ranked,
                asked,
                index=self.index,
                threads=self.threads,
                budget=budget,
                count_tokens=count_tokens,
            )
            if everything is not None:
                return asked, run.add(*everything)
        chosen = run.add(
            *await choose(
                ranked,
                budget=budget,
                count_tokens=count_tokens,
                around=around_of(self.index.text, self.threads, run),
                widen=options.widen,
            )
        )
        if ranked and not chosen.evidence:  # no room for even one source
            run.without("evidence")
        return asked, chosen

    async def _budget(self, asked: Asked, count_tokens: CountTokens) -> Budget:
        generator, retrieval = self.settings.generator, self.settings.retrieval
        used = await overhead_tokens(asked.question, count_tokens)
        limits = Limits(context=generator.context_tokens, max_tokens=generator.max_tokens)
        return Budget(
            sources=min(asked.top_k, retrieval.evidence_chunks),
            tokens=room_for_sources(limits, used),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Answerer:
    """From evidence to a checked answer."""

    models: AnswerModels
    settings: Settings

    async def answer(
        self, gathered: Gathered, deadline: Deadline, results: dict[str, Any] | None = None
    ) -> AsyncGenerator[Event, None]:
        """Deltas, then the final answer; `results` takes what each stage gives.

        With `answers.mode` buffer there is one delta, of the checked text.
        """
        run = Run(deadline, gathered.trace, gathered.degraded, results)
        if not gathered.evidence:  # invariant 8: the generator is not called
            yield Delta(REFUSAL)
            yield Final(answer=_answer(REFUSED, gathered, run))
            return
        prompt = run.add(*await self._prompt(gathered, deadline))
        buffered = self.settings.answers.mode == "buffer"
        written = None
        models = self.models
        writing = write(prompt, generate=models.generate, fallback=models.fallback, run=run)
        async with aclosing(writing) as events:
            async for event in events:
                if isinstance(event, Written):
                    written = event
                elif not buffered:
                    yield event
        assert written is not None, "write ends with what was written"
        checked = run.add(*await check(written, prompt.evidence, judge=self._judge, run=run))
        if buffered:
            yield Delta(checked.text)
        yield Final(answer=_answer(checked, gathered, run))

    async def _prompt(self, gathered: Gathered, deadline: Deadline) -> tuple[Prompt, StageRecord]:
        generator = self.settings.generator
        return await fit(
            gathered.question,
            gathered.evidence,
            limits=Limits(context=generator.context_tokens, max_tokens=generator.max_tokens),
            count=dependable(self.models.count_prompt, estimate.prompt_tokens, deadline),
            request_id=uuid4().hex,
        )

    @property
    def _judge(self) -> Judge | None:
        entail = self.models.entail
        return Judge(entail, self.settings.answers.entailment.threshold) if entail else None


def _answer(checked: Checked, gathered: Gathered, run: Run) -> Answer:
    timings: dict[str, float] = {}
    for record in run.trace:
        timings[record.stage] = timings.get(record.stage, 0.0) + record.ms
    timings["total"] = round(run.deadline.elapsed() * 1000, 3)
    return Answer(
        status=checked.status,
        text=checked.text,
        citations=checked.citations,
        generation=gathered.generation,
        doubts=checked.doubts,
        cut=checked.cut,
        degraded=tuple(run.degraded),
        timings_ms=timings,
        trace=tuple(run.trace),
    )
