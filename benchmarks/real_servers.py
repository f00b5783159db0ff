"""Both real stores behind Quarry against their own clients: python -m benchmarks.real_servers

Both servers run on this machine, started for this from `.venv-servers`, and share its cores with
the client. Writing: documents of ten chunks, vectors given, through the whole commit protocol (text
rows, vector rows, check, compare-and-set, sweep, one flush at the end) by several writers, since
most of a commit is waiting for the servers, beside bare upserts into both stores; the first round
warms the servers up and is not counted. Searching: a whole search without a model (legs, catalog
check, texts, fusion) against both clients called by hand in parallel with the same query, filter
and limit. Both take turns. The last line is one JSON object.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import uvloop

from benchmarks.environment import environment, environment_line
from loadtests.chaos.servers import Elasticsearch, Milvus, install_tools
from quarry import ids, revisions
from quarry.access import EVERYTHING
from quarry.access.check import search_filter
from quarry.access.compile import to_milvus
from quarry.access.compile_elasticsearch import to_elasticsearch
from quarry.attempts import Attempt, make_rows, stamp
from quarry.models.fakes import FakeEmbedder, FakeGenerator
from quarry.records import Chunk, DocState, Document, Principal, SearchRequest, Status, Vector
from quarry.settings import Settings
from quarry.stores.factory import Stores, open_stores
from quarry.text import analyze, embedded_text, identifiers
from serve.extras import load_extras
from serve.graph import Searcher
from serve.index import Index
from serve.models import LoadedModels, search_models
from serve.stage import Threads

DIMENSION = 384
CHUNKS_EACH = 10
WORDS_EACH = 120
TOGETHER = 128
"""Documents of one batch, as an ingest commits them."""
VOCABULARY = 20_000
QUESTIONS = 200
WARM_UP = 100
SEED = 7


def make_changes(documents: int) -> tuple[list[revisions.Change], dict[str, Vector]]:
    """Documents of CHUNKS_EACH chunks of random words, and a random unit vector a chunk."""
    draw, rng = random.Random(SEED), np.random.default_rng(SEED)
    words = [f"{draw.choice('bcdfgklmnprst')}{number:x}ation" for number in range(VOCABULARY)]
    changes: list[revisions.Change] = []
    vectors: dict[str, Vector] = {}
    for number in range(documents):
        name = ids.doc_id("bench", f"{number}.md")
        chunks = [_chunk(name, ordinal, draw, words) for ordinal in range(CHUNKS_EACH)]
        rows = rng.normal(size=(CHUNKS_EACH, DIMENSION)).astype(np.float32)
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
        vectors |= {chunk.text_hash: row for chunk, row in zip(chunks, rows, strict=True)}
        changes.append(revisions.Change(base=None, document=_document(name, number), chunks=chunks))
    return changes, vectors


def _chunk(doc: str, ordinal: int, draw: random.Random, words: Sequence[str]) -> Chunk:
    # Word frequencies fall off as they do in a language.
    picked = (words[int(draw.paretovariate(0.9)) % VOCABULARY] for _ in range(WORDS_EACH))
    text, header = " ".join(picked), f"Page of {doc[:8]} > Section {ordinal}"
    whole = embedded_text(header, text)
    return Chunk(
        row_id="",
        chunk_id=ids.chunk_id(doc, whole, 0),
        doc_id=doc,
        revision="",
        ordinal=ordinal,
        text=text,
        header=header,
        section=("Section", str(ordinal)),
        tokens=WORDS_EACH,
        text_hash=ids.digest(whole),
        identifiers=tuple(identifiers(whole)),
    )


def _document(name: str, number: int) -> Document:
    return Document(
        doc_id=name,
        source="bench",
        address=f"{number}.md",
        uri=f"{number}.md",
        title=f"Page {number}",
        state=DocState.INDEXED,
        status=Status.CURRENT,
        acl=("public",) if number % 2 else ("staff",),
    )


# -------------------------------------------------------------------------------------- writing


def write(stores: Stores, documents: int, writers: int) -> float:
    """Chunks a second through the commit protocol, the flush at the end included."""
    changes, vectors = make_changes(documents)
    parts = [changes[start : start + TOGETHER] for start in range(0, documents, TOGETHER)]
    begun = time.perf_counter()
    with ThreadPoolExecutor(writers) as pool:
        for outcomes in pool.map(lambda part: revisions.commit_many(stores, part, vectors), parts):
            for outcome in outcomes:
                if outcome.error is not None:
                    raise outcome.error
    stores.vectors.flush()
    return documents * CHUNKS_EACH / (time.perf_counter() - begun)


def upsert_alone(stores: Stores, documents: int) -> dict[str, float]:
    """Chunks a second of each store's upsert with nothing around it."""
    changes, vectors = make_changes(documents)
    text, vector = [], []
    for change in changes:
        attempt = Attempt(base=None, document=change.document)
        stamp(attempt)
        rows = make_rows(attempt, change.chunks, vectors)
        text += rows[0]
        vector += rows[1]
    rates = {}
    for name, call, rows in (
        ("text", stores.text.upsert, text),
        ("vectors", stores.vectors.upsert, vector),
    ):
        begun = time.perf_counter()
        for start in range(0, len(rows), 500):
            call(rows[start : start + 500])
        rates[name] = len(rows) / (time.perf_counter() - begun)
    return rates


# ------------------------------------------------------------------------------------ searching


def by_hand(
    settings: Settings, generation: str, texts: Sequence[str], vectors: Sequence[Vector]
) -> Callable[[int, ThreadPoolExecutor], None]:
    """A question's two requests, as one would write them with the vendors' clients, in parallel."""
    import elasticsearch as es
    from pymilvus import MilvusClient

    elastic = es.Elasticsearch(settings.stores.elasticsearch.url)
    milvus = MilvusClient(settings.stores.milvus.uri, dedicated=True)
    limit = settings.retrieval.candidates
    today = datetime.now(UTC).date()
    where = search_filter(Principal(), EVERYTHING, today=today)
    expression, permitted = to_milvus(where), to_elasticsearch(where)

    def lexical(text: str) -> Any:
        match = {"match": {"terms": {"query": " ".join(dict.fromkeys(analyze(text)))}}}
        return elastic.search(
            index=f"{settings.stores.elasticsearch.index_prefix}-{generation}-chunks",
            query={"bool": {"must": [match], "filter": [permitted]}},
            size=limit,
            track_total_hits=False,
        )

    def dense(vector: Vector) -> Any:
        return milvus.search(
            f"{settings.stores.milvus.collection_prefix}_{generation}",
            data=[vector],
            anns_field="vector",
            filter=expression,
            limit=limit,
            output_fields=["row_id", "doc_id", "revision"],
            search_params={"params": {"ef": settings.stores.milvus.search_ef}},
        )

    def ask(number: int, pool: ThreadPoolExecutor) -> None:
        first = pool.submit(lexical, texts[number])
        dense(vectors[number])
        first.result()

    return ask


def time_searches(settings: Settings, stores: Stores, generation: str) -> dict[str, Any]:
    """p50 and p95 in ms of both ways, taking turns question by question."""
    changes, known = make_changes(QUESTIONS + WARM_UP)
    texts, vectors = [], []
    for change in changes:
        chunk = change.chunks[0]
        texts.append(" ".join(chunk.text.split()[:12]))
        vectors.append(known[chunk.text_hash])
    hand = by_hand(settings, generation, texts, vectors)
    threads = Threads()
    found = dict(zip(texts, vectors, strict=True))

    async def embed(text: str) -> Vector:
        return found[text]

    loaded = LoadedModels(
        embedder=FakeEmbedder(DIMENSION), reranker=None, generator=FakeGenerator(), fallback=None
    )
    searcher = Searcher(
        index=Index.of(generation, stores),
        models=replace(search_models(loaded, threads), embed=embed),
        threads=threads,
        extras=load_extras(settings),
        settings=settings,
    )
    times: dict[str, list[float]] = {"by hand": [], "quarry": []}
    stages: dict[str, list[float]] = {}

    async def turns() -> None:
        with ThreadPoolExecutor(2) as pool:
            for number, text in enumerate(texts):
                begun = time.perf_counter()
                hand(number, pool)
                middle = time.perf_counter()
                request = SearchRequest(question=text, principal=Principal(), deadline_s=60)
                result = await searcher.search(request)
                end = time.perf_counter()
                assert result.degraded == ()
                if number >= WARM_UP:
                    times["by hand"].append((middle - begun) * 1000)
                    times["quarry"].append((end - middle) * 1000)
                    for record in result.trace:
                        stages.setdefault(record.stage, []).append(record.ms)

    uvloop.run(turns())  # the event loop that Ray Serve's replicas run on
    threads.close()
    return {
        "p50_ms": {name: round(statistics.median(values), 2) for name, values in times.items()},
        "p95_ms": {
            name: round(statistics.quantiles(values, n=20)[18], 2) for name, values in times.items()
        },
        "stages_p50_ms": {
            name: round(statistics.median(values), 2) for name, values in stages.items()
        },
    }


# ------------------------------------------------------------------------------------- the whole


@contextmanager
def cluster() -> Iterator[Settings]:
    """Settings of a fresh pair of servers that run as long as this."""
    install_tools()
    with tempfile.TemporaryDirectory() as folder:
        search, vectors = Elasticsearch(Path(folder) / "es"), Milvus(Path(folder) / "milvus")
        try:
            search.start()
            vectors.start()
            yield Settings.model_validate(
                {
                    "profile": "cluster",
                    "data_dir": folder,
                    "stores": {
                        "text": "elasticsearch",
                        "elasticsearch": {"url": search.url, "replicas": 0},
                        "milvus": {"uri": vectors.uri},
                    },
                }
            )
        finally:
            search.kill()
            vectors.kill()


def run(documents: int, rounds: int, writers: int) -> dict[str, Any]:
    with cluster() as settings:
        rates: dict[str, list[float]] = {"pair": [], "text": [], "vectors": []}
        for number in range(rounds + 1):  # the first one warms the servers up
            for kind in ("alone", "whole"):
                stores = open_stores(settings, f"{kind}{number}")
                stores.ensure(DIMENSION)
                if kind == "whole":
                    found = {"pair": write(stores, documents, writers)}
                else:
                    found = upsert_alone(stores, documents)
                for name, rate in found.items() if number else ():
                    rates[name].append(rate)
                if kind == "alone" or number < rounds:
                    stores.text.drop()
                    stores.catalog.drop()
                    stores.vectors.drop()
                    stores.close()
        search = time_searches(settings, stores, f"whole{rounds}")
        stores.close()
    return {
        "benchmark": "real_servers",
        "documents": documents,
        "chunks": documents * CHUNKS_EACH,
        "rounds": rounds,
        "writers": writers,
        "chunks_per_s": {name: round(statistics.median(found)) for name, found in rates.items()},
        "search": search,
        "search_ratio": round(search["p50_ms"]["quarry"] / search["p50_ms"]["by hand"], 2),
        "environment": environment(),
    }


def show(result: dict[str, Any]) -> None:
    rates, search = result["chunks_per_s"], result["search"]
    print(
        f"{result['documents']} documents, {result['chunks']} chunks, {result['rounds']} rounds, "
        f"{result['writers']} writers; "
        "servers and client on the same cores"
    )
    print(f"written, whole commits        {rates['pair']:>8} chunks/s")
    print(f"bare upserts, text            {rates['text']:>8} chunks/s")
    print(f"bare upserts, vectors         {rates['vectors']:>8} chunks/s")
    for name, p50 in search["p50_ms"].items():
        print(f"search p50 / p95, {name:<12}{p50:>8.1f} / {search['p95_ms'][name]:.1f} ms")
    stages = ", ".join(f"{name} {ms}" for name, ms in search["stages_p50_ms"].items())
    print(f"ratio {result['search_ratio']}; stages p50 in ms: {stages}")
    print(environment_line(result["environment"]))


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Elasticsearch and Milvus: writing and searching.")
    parser.add_argument("--documents", type=int, default=4000, help=f"of {CHUNKS_EACH} chunks")
    parser.add_argument("--rounds", type=int, default=3, help="times that writing is measured")
    parser.add_argument("--writers", type=int, default=4, help="threads that commit at once")
    given = parser.parse_args(arguments)
    result = run(given.documents, given.rounds, given.writers)
    show(result)
    print(json.dumps(result))


if __name__ == "__main__":
    main()
