"""The graph in process: what `quarry search` and `quarry ask` use without a server, and evals do.

with open_engine(settings) as engine:
    result = asyncio.run(engine.search(SearchRequest(question="…")))
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, aclosing, contextmanager
from typing import Protocol

from quarry.explanation import Explanation
from quarry.generations import open_live
from quarry.records import Answer, SearchRequest, SearchResult
from quarry.settings import Settings
from quarry.stores.milvus_lite import vector_server
from serve.explaining.explain import explain
from serve.extras import load_extras
from serve.graph import Answerer, Searcher
from serve.index import Index, impatient
from serve.models import LoadedModels, answer_models, load_models, search_models
from serve.results import Event, Examined, Final, Gathered
from serve.stage import Deadline, Threads


class Searching(Protocol):
    """The half of the path that works on the stores: `Searcher`, or one elsewhere."""

    async def search(self, request: SearchRequest) -> SearchResult: ...

    async def gather(self, request: SearchRequest) -> Gathered: ...

    async def examine(
        self, request: SearchRequest, expect: Sequence[Sequence[str]]
    ) -> Examined: ...

    async def ready(self) -> dict[str, str]: ...


class Engine:
    """Searches and answers; safe for many requests at once and for several event loops."""

    def __init__(self, *, searcher: Searching, answerer: Answerer) -> None:
        self._searcher = searcher
        self._answerer = answerer

    async def search(self, request: SearchRequest) -> SearchResult:
        """The best passages that the principal may read.

        Raises QuestionError, FilterError, StoreUnavailable, DeadlineExceeded.
        """
        return await self._searcher.search(request)

    async def answer(self, request: SearchRequest) -> AsyncGenerator[Event, None]:
        """Deltas, then the final answer. Raises as `search`, before the first event."""
        deadline = Deadline(request.deadline_s)
        gathered = await self._searcher.gather(request)
        async with aclosing(self._answerer.answer(gathered, deadline)) as events:
            async for event in events:
                yield event

    async def answer_whole(self, request: SearchRequest) -> Answer:
        """The final answer of `answer`."""
        return await last_answer(self.answer(request))

    async def explain(
        self, request: SearchRequest, expect: Sequence[Sequence[str]] = ()
    ) -> Explanation:
        """How the answer comes about, and where expected evidence is lost. Raises as `search`.

        `expect` lists pieces of evidence, each as phrases of which any one marks it. It shows what
        the principal may read and nothing else.
        """
        deadline = Deadline(request.deadline_s)
        examined = await self._searcher.examine(request, expect)
        results = dict(examined.results)
        events = self._answerer.answer(examined.gathered, deadline, results)
        return explain(examined, results, await last_answer(events))

    async def ready(self) -> Mapping[str, str]:
        """`ok` or the error's code for each part that a question needs."""
        return await self._searcher.ready()


async def last_answer(events: AsyncGenerator[Event, None]) -> Answer:
    """The answer at the end of the events."""
    async with aclosing(events):
        async for event in events:
            if isinstance(event, Final):
                return event.answer
    raise AssertionError("an answer ends with its final event")


@contextmanager
def open_engine(settings: Settings) -> Iterator[Engine]:
    """The engine over the stores and models that the settings name.

    Raises ConfigError, MissingExtra, ModelError, StoreError, FingerprintMismatch.
    """
    with ExitStack() as stack:
        with ThreadPoolExecutor(1) as pool:  # loading takes seconds on both sides
            loading = pool.submit(load_models, settings)
            stack.enter_context(vector_server(settings))
            models = loading.result()
            stack.callback(models.close)
        generation, stores = open_live(impatient(settings), models.embedder)
        stack.callback(stores.close)
        threads = Threads()
        stack.callback(threads.close)
        index = Index.of(generation.name, stores)
        yield make_engine(settings, index=index, models=models, threads=threads)


def make_engine(
    settings: Settings, *, index: Index, models: LoadedModels, threads: Threads
) -> Engine:
    """An engine over stores and models that are open already."""
    searcher = Searcher(
        index=index,
        models=search_models(models, threads),
        threads=threads,
        settings=settings,
        extras=load_extras(settings),
    )
    answerer = Answerer(models=answer_models(models, threads), settings=settings)
    return Engine(searcher=searcher, answerer=answerer)
