"""Opens what `quarry eval`, `diagnose` and `tune` measure: an index in this process, or a server.

In process, requests and replies are the JSON of the API all the same, so that both ways measure
what callers get.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from quarry.cli.catalog import need_index
from quarry.cli.output import print_note
from quarry.cli.progress import progress_display
from quarry.cli.requests import Askers, request_of
from quarry.cli.server import RunningServer
from quarry.errors import UsageError
from quarry.records import DocState
from quarry.settings import Settings
from quarry.settings_file import model_name
from quarry.settings_retrieval import RewriteSettings, SelectSettings

if TYPE_CHECKING:
    from evals.measuring.judge import ModelJudge
    from evals.running.observe import Ask
    from evals.running.system import System
    from ingest.summary import RunSummary
    from quarry.stores.factory import Stores
    from serve.engine import Engine
    from serve.models import LoadedModels
    from serve.stage import Threads

_PLAIN = {"select": SelectSettings(), "rewrite": RewriteSettings()}
"""A search that gives what the index finds for the question as it is."""
DEADLINE_S = 600.0
"""Quality is measured, not speed: no stage is skipped for want of time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Documents:
    """A folder to be indexed for an evaluation, under the name of a source."""

    source: str | None
    folder: Path

    @classmethod
    def parse(cls, text: str) -> Documents:
        """`FOLDER` or `NAME=FOLDER`."""
        name, sign, folder = text.partition("=")
        return (
            cls(source=name, folder=Path(folder)) if sign else cls(source=None, folder=Path(text))
        )


def indexed(settings: Settings, documents: Sequence[Documents]) -> Settings:
    """Settings of an index that is up to date with the documents and holds nothing else; the given
    ones where there are none."""
    if not documents:
        return settings
    from evals.running.own_index import own_index
    from ingest.sync import run_sync

    own = own_index(
        settings,
        [each.folder for each in documents],
        names=[each.source for each in documents],
    )
    for each in documents:
        with progress_display() as show:
            summary = run_sync(
                own,
                [str(each.folder)],
                source=each.source,
                allow_mass_delete=True,
                progress=show,
            )
        note_indexed(summary)
    return own


def note_indexed(summary: RunSummary) -> None:
    """Says what an index of an evaluation was made of, and what is missing from it."""
    line = f"{summary.source}: {summary.listed} documents, {summary.indexed} of them indexed now"
    failed = [
        f"{count} {state.value}"
        for state, count in sorted(summary.by_state.items())
        if state not in (DocState.INDEXED, DocState.DELETED)
    ]
    print_note(f"{line}; {', '.join(failed)}." if failed else f"{line}.")


def opening(
    settings: Settings, documents: Sequence[Documents] = ()
) -> Callable[[], AbstractContextManager[System]]:
    """Opens the system of these settings when it is its turn."""

    @contextmanager
    def opened() -> Iterator[System]:
        own = indexed(settings, documents)
        need_index(own)
        with open_system(own) as system:
            yield system

    return opened


@contextmanager
def open_system(settings: Settings) -> Iterator[System]:
    """The index and models that the settings name, in this process. Raises as `open_engine`."""
    from quarry.generations import open_live
    from quarry.stores.milvus_lite import vector_server
    from serve.models import load_models
    from serve.stage import Threads

    with ExitStack() as stack:
        stack.enter_context(vector_server(settings))
        models = load_models(settings)
        generation, stores = open_live(settings, models.embedder)
        stack.callback(stores.close)
        threads = Threads()
        stack.callback(threads.close)
        yield system_over(settings, generation.name, stores, models, threads)


def system_over(
    settings: Settings, generation: str, stores: Stores, models: LoadedModels, threads: Threads
) -> System:
    """What is measured, over stores and models that are open already."""
    from evals.measuring.corpus import Corpus
    from evals.measuring.exact import ExactSearch
    from evals.running.system import Inside, System
    from serve.engine import make_engine
    from serve.index import Index

    def engine(settings: Settings) -> Engine:
        index = Index.of(generation, stores)
        return make_engine(settings, index=index, models=models, threads=threads)

    asked, plain = engine(settings), changed(settings, _PLAIN)
    corpus = Corpus.read(stores.catalog, stores.text)
    people = Askers(settings)
    return System(
        ask=asking(asked, settings, people),
        inside=Inside(
            corpus=corpus,
            people=lambda case: people.named(case.person, case.groups or None),
            exact=lambda: ExactSearch(corpus, stores.vectors, models.embedder),
            explain=asked.explain,
            plain=asking(engine(plain), plain, people),
        ),
    )


def changed(settings: Settings, retrieval: Mapping[str, Any]) -> Settings:
    """The settings with other values in `retrieval`."""
    update = {"retrieval": settings.retrieval.model_copy(update=dict(retrieval))}
    return settings.model_copy(update=update)


@contextmanager
def open_remote(url: str, token: str) -> Iterator[System]:
    """A server; `token` is its local one if cases name people."""
    from evals.running.system import System

    server = RunningServer(url=url.rstrip("/"), token=token)

    async def ask(endpoint: str, body: dict[str, Any]) -> Mapping[str, Any]:
        post = server.post
        return await asyncio.to_thread(post, f"/v1/{endpoint}", body, deadline_s=DEADLINE_S)

    yield System(ask=ask)


def remote_token(settings: Settings, url: str, token_file: Path | None) -> str:
    """From the file, else the local token of the server of these settings, if that is the one.

    Raises UsageError for a file that cannot be read.
    """
    if token_file is not None:
        try:
            return token_file.read_text(encoding="utf-8").strip()
        except OSError as error:
            raise UsageError(f"The token file {token_file} cannot be read.") from error
    server = RunningServer.find(settings.data_dir)
    return server.token if server is not None and server.url == url.rstrip("/") else ""


def described(settings: Settings) -> str:
    """What decides the answers of these settings, in a line."""
    retrieval, chunking, reranker = settings.retrieval, settings.chunking, settings.reranker
    generator = " ".join(
        part for part in (settings.generator.kind, model_name(settings.generator.model)) if part
    )
    rerank = f"{reranker.kind} to depth {reranker.depth}" if reranker.kind != "none" else "none"
    return (
        f"embedder {model_name(settings.embedder.model)}; chunks of {chunking.min_tokens} to "
        f"{chunking.max_tokens} tokens; {retrieval.candidates} candidates a leg, RRF k "
        f"{retrieval.rrf_k}; reranker {rerank}; generator {generator}; "
        f"{retrieval.evidence_chunks} passages sent"
    )


def judge_of(settings: Settings) -> ModelJudge:
    """The judge model of the settings. Raises UsageError if they name none."""
    from evals.measuring.judge import ModelJudge
    from quarry.models.openai import OpenAIGenerator
    from quarry.settings import GeneratorSettings

    judge = settings.judge
    if not judge.model:
        raise UsageError("The settings name no judge; set judge.model and judge.base_url.")
    generator = GeneratorSettings(
        kind="openai",
        model=judge.model,
        base_url=judge.base_url,
        api_key=judge.api_key,
        timeout_s=judge.timeout_s,
    )
    return ModelJudge(OpenAIGenerator(generator), sent=settings.retrieval.evidence_chunks)


def asking(engine: Engine, settings: Settings, people: Askers) -> Ask:
    """An in-process `Ask` over an engine."""
    from serve.http.schemas import answer_json, search_json

    async def ask(endpoint: str, body: dict[str, Any]) -> Mapping[str, Any]:
        request = request_of(settings, body, people.of(body), deadline_s=DEADLINE_S)
        if endpoint == "search":
            return search_json(await engine.search(request))
        return answer_json(await engine.answer_whole(request))

    return ask
