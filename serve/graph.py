"""The whole path of a question, in order; each stage is a module of its name.

    question → rewrite → retrieve (embed, dense ∥ lexical, catalog check, texts) → fuse → rerank
      → select → evidence → prompt → generate → answer

`Searcher` works on the stores, `Answerer` on what it gathered: in process both are here, in Ray
Serve they are in two deployments.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from quarry.models import estimate
from quarry.records import (
    Candidate,
    Prompt,
    SearchRequest,
    SearchResult,
)
from quarry.settings import Settings
from quarry.text import REFUSAL
from serve.answering.answer import REFUSED, Judge, check
from serve.answering.counting import dependable
from serve.answering.evidence import Chosen
from serve.answering.generate import Delta, Written, write
from serve.answering.prompt import fit, limits_of
from serve.answering.sources import NO_SOURCE_FITS, Reading, choose_sources
from serve.explaining.locate import locate
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
from serve.models import AnswerModels, SearchModels
from serve.results import Event, Examined, Gathered, final
from serve.stage import Deadline, Run, Threads


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
        selection = Selection.of(
            self.settings, self.extras.calibration, self.index.vectors, self.threads
        )
        reordered = selection.wanted or (self.models.rerank is not None and request.rerank)
        # Texts are read of no more than what can come to the front.
        keep = max(request.top_k, depth) if spare or reordered else request.top_k
        if selection.settings.one_per_section:  # many may be of one section
            keep = max(keep, self.settings.retrieval.candidates)
        asked = run.add(*ask(request, self.settings.retrieval))
        rewriting = Rewriting.of(self.settings, self.extras.glossary, self.models.write)
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
        return asked, run.add(*await choose_sources(ranked, asked, self._reading, run))

    @property
    def _reading(self) -> Reading:
        return Reading(
            index=self.index,
            threads=self.threads,
            count_tokens=self.models.count_tokens,
            settings=self.settings,
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
        prompt = await self._prompt(gathered, run) if gathered.evidence else None
        if prompt is None or not prompt.evidence:  # invariant 8: the generator is not called
            yield Delta(REFUSAL)
            yield final(REFUSED, gathered, run)
            return
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
        yield final(checked, gathered, run)

    async def _prompt(self, gathered: Gathered, run: Run) -> Prompt:
        fitted = await fit(
            gathered.question,
            gathered.evidence,
            limits=limits_of(self.settings.generator),
            count=dependable(self.models.count_prompt, estimate.prompt_tokens, run.deadline),
            request_id=uuid4().hex,
        )
        prompt = run.add(*fitted)
        if not prompt.evidence:
            run.without(NO_SOURCE_FITS)
        return prompt

    @property
    def _judge(self) -> Judge | None:
        entail = self.models.entail
        return Judge(entail, self.settings.answers.entailment.threshold) if entail else None
