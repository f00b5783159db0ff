"""What a filter does to nearest-neighbour search: python -m benchmarks.filtered_recall [--rows N]

Vectors in clusters, as embeddings lie. Groups may read 10 %, 1 % and 0.1 % of the rows. In the
layout `mixed` these lie anywhere; in `far` they lie in other clusters than the question, which is
where a graph index loses its way. Both vector stores hold the same rows and
answer through Quarry's own port; the truth is an exact search over the permitted rows. A server is
also asked before its rows are flushed and indexed. The last line is one JSON object.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import date
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.environment import environment, environment_line
from loadtests.chaos.servers import TOOLS, Milvus
from quarry.access.filters import ReadableBy
from quarry.ports import VectorStore
from quarry.records import Labels, Status, VectorRow
from quarry.settings import Settings
from quarry.settings_stores import MilvusSettings
from quarry.stores.milvus import MilvusVectorStore
from quarry.stores.milvus_lite import server_address, vector_server

DIMENSION = 384
CLUSTERS = 100
SHARES = {"10 %": 0.1, "1 %": 0.01, "0.1 %": 0.001}
LAYOUTS = ("mixed", "far")
EFFORTS = (32, 64, 128, 256, 512)
K = 10
QUESTIONS = 40
BATCH = 2000
SEED = 7

Floats = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True, kw_only=True)
class Corpus:
    vectors: Floats
    """Shape (rows, DIMENSION), unit length."""
    groups: Mapping[str, npt.NDArray[np.bool_]]
    """For each group, which rows it may read."""
    questions: Mapping[str, Floats]
    """For each layout, shape (QUESTIONS, DIMENSION)."""


def make_corpus(rows: int, rng: np.random.Generator) -> Corpus:
    """Clusters of unit vectors; questions of `far` lie in clusters that no `far` group may read."""
    centres = _unit(rng.normal(size=(CLUSTERS, DIMENSION)))
    cluster = rng.integers(CLUSTERS, size=rows)
    vectors = _near(centres[cluster], rng)
    near = CLUSTERS // 2
    groups: dict[str, npt.NDArray[np.bool_]] = {"mixed 100 %": np.ones(rows, dtype=np.bool_)}
    for name, share in SHARES.items():
        groups[f"mixed {name}"] = rng.random(rows) < share
        groups[f"far {name}"] = (cluster >= near) & (rng.random(rows) < share * CLUSTERS / near)
    asked = rng.integers(near, size=QUESTIONS)
    questions = {layout: _near(centres[asked], rng) for layout in LAYOUTS}
    return Corpus(vectors=vectors, groups=groups, questions=questions)


def _near(centres: Floats, rng: np.random.Generator) -> Floats:
    """About as alike as two passages on one topic: a cosine of 0.5 within a cluster."""
    return _unit(centres + _unit(rng.normal(size=centres.shape)))


def _unit(rows: npt.NDArray[Any]) -> Floats:
    found: Floats = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
    return found


def write(store: VectorStore, corpus: Corpus) -> None:
    """All rows, each a document of its own; without the flush."""
    store.ensure(DIMENSION)
    names = list(corpus.groups)
    readable = np.stack([corpus.groups[name] for name in names], axis=1)
    for start in range(0, len(corpus.vectors), BATCH):
        end = min(start + BATCH, len(corpus.vectors))
        store.upsert(
            [
                _row(number, corpus.vectors[number], [names[i] for i in np.flatnonzero(marks)])
                for number, marks in zip(range(start, end), readable[start:end], strict=True)
            ]
        )


def _row(number: int, vector: Floats, groups: Sequence[str]) -> VectorRow:
    name = f"{number:08d}"
    return VectorRow(
        row_id=f"{name}.00000000-aaaaaaaaaaaa",
        chunk_id=name,
        doc_id=name,
        revision="00000000-aaaaaaaaaaaa",
        labels=Labels(
            source="bench",
            tenant="default",
            acl=tuple(groups),
            series="",
            version="",
            status=Status.CURRENT,
            effective=date(2026, 1, 1),
            metadata={},
        ),
        vector=vector,
    )


def measure(store: VectorStore, corpus: Corpus) -> dict[str, dict[str, float]]:
    """For each group: recall@K against exact search, the share of K that came, and p50 in ms."""
    found: dict[str, dict[str, float]] = {}
    for group, readable in corpus.groups.items():
        rows = np.flatnonzero(readable)
        most = min(K, len(rows))
        recalls, returned, times = [], [], []
        for question in corpus.questions[group.split()[0]]:
            best = rows[np.argsort(-(corpus.vectors[rows] @ question), kind="stable")[:most]]
            begun = time.perf_counter()
            hits = store.search(question, limit=K, where=ReadableBy((group,)))
            times.append((time.perf_counter() - begun) * 1000)
            got = {int(hit.doc_id) for hit in hits}
            recalls.append(len(got.intersection(best.tolist())) / most)
            returned.append(len(got) / most)
        found[group] = {
            "recall": round(statistics.mean(recalls), 4),
            "worst_recall": round(min(recalls), 4),
            "returned": round(statistics.mean(returned), 4),
            "p50_ms": round(statistics.median(times), 2),
        }
    return found


@contextmanager
def lite() -> Iterator[VectorStore]:
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        settings = Settings(data_dir=Path(folder))
        stack.enter_context(vector_server(settings))
        address = partial(server_address, settings)
        store = MilvusVectorStore(settings.stores.milvus, "bench", address=address)
        stack.callback(store.close)
        yield store


@contextmanager
def server() -> Iterator[str]:
    """The address of a Milvus that runs as long as this."""
    with tempfile.TemporaryDirectory() as folder:
        milvus = Milvus(Path(folder) / "milvus")
        milvus.start()
        try:
            yield milvus.uri
        finally:
            milvus.kill()


def run(rows: int) -> dict[str, Any]:
    corpus = make_corpus(rows, np.random.default_rng(SEED))
    stores: dict[str, dict[str, dict[str, float]]] = {}
    with lite() as store:
        write(store, corpus)
        store.flush()
        stores["Milvus Lite, FLAT"] = measure(store, corpus)
    if (TOOLS / "done").exists():
        with server() as uri:
            stores |= _on_server(MilvusSettings(uri=uri, timeout_s=60, total_s=300), corpus)
    return {
        "benchmark": "filtered_recall",
        "rows": rows,
        "dimension": DIMENSION,
        "k": K,
        "questions": QUESTIONS,
        "stores": stores,
        "environment": environment(),
    }


def _on_server(settings: MilvusSettings, corpus: Corpus) -> dict[str, dict[str, dict[str, float]]]:
    found: dict[str, dict[str, dict[str, float]]] = {}
    store = MilvusVectorStore(settings, "bench")
    write(store, corpus)
    found[f"server, not flushed, ef {settings.search_ef}"] = measure(store, corpus)
    store.flush()
    wait_for_index(settings, store)
    for ef in EFFORTS:
        asked = MilvusVectorStore(settings.model_copy(update={"search_ef": ef}), "bench")
        found[f"server, HNSW, ef {ef}"] = measure(asked, corpus)
        asked.close()
    store.close()
    return found


def wait_for_index(settings: MilvusSettings, store: VectorStore) -> None:
    """Until all rows are in sealed segments with an index, which a server builds by and by."""
    from pymilvus import MilvusClient

    client = MilvusClient(settings.uri, timeout=60)
    name, rows = f"{settings.collection_prefix}_bench", store.count()
    deadline = time.monotonic() + 300
    while time.monotonic() < deadline:
        facts = client.describe_index(name, "vector")
        if facts.get("indexed_rows", 0) >= rows and not facts.get("pending_index_rows", 0):
            break
        time.sleep(1.0)
    client.release_collection(name)  # a loaded segment takes its index up when it is loaded again
    client.load_collection(name)
    client.close()


def show(result: Mapping[str, Any]) -> None:
    print(
        f"Search with a filter: {result['rows']} rows, k {result['k']}, "
        f"{result['questions']} questions; recall against exact search / share of k that came / ms"
    )
    groups = list(next(iter(result["stores"].values())))
    print(f"{'':<32}" + "".join(f"{group:>22}" for group in groups))
    for store, found in result["stores"].items():
        cells = (
            f"{one['recall']:.3f} / {one['returned']:.2f} / {one['p50_ms']:.1f}"
            for one in found.values()
        )
        print(f"{store:<32}" + "".join(f"{cell:>22}" for cell in cells))
    print(environment_line(result["environment"]))


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Recall of filtered search, on both stores.")
    parser.add_argument("--rows", type=int, default=20_000, help="rows in each store")
    result = run(parser.parse_args(arguments).rows)
    show(result)
    print(json.dumps(result))


if __name__ == "__main__":
    main()
