"""Ingest end to end against encoding alone: python -m benchmarks.ingest_throughput [FOLDER]

A BEIR folder is ingested into new data folders: listed, read, parsed in the sandbox, chunked,
embedded, written to SQLite with BM25 and to Milvus Lite, checked, committed and flushed, by Ray on
this machine. Then sentence-transformers encodes the very same chunks: loaded and warm, in the same
precision, with all cores and the same longest input, in batches of 32 sorted by length, and does
nothing else.

Starting up (Ray, its workers, the parser processes, Milvus Lite, loading the model) is measured by
an ingest of one document of one line, and is not counted in `ratio`, as loading is not counted for
the other side; `ratio_with_start` counts it. The last line is one JSON object.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from benchmarks.environment import environment, environment_line
from ingest.summary import RunSummary
from ingest.sync import run_sync
from quarry.generations import open_live
from quarry.settings import Settings
from quarry.stores.milvus_lite import vector_server
from quarry.text import embedded_text

REPO = Path(__file__).resolve().parent.parent
CRANFIELD = REPO.parent / "shared" / "ir" / "cranfield"
ENCODE_BATCH = 32
WARM_UP = 64
INCLUDED = (
    "listing, reading, parsing in sandboxed processes, chunking, embedding, text rows with BM25 in "
    "SQLite, vectors in Milvus Lite, check, commit, flush"
)


def measure(folder: Path, *, rounds: int = 3) -> dict[str, Any]:
    """Chunks a second of both, and their ratio; medians over rounds that take turns."""
    starts, wholes, encodes = [], [], []
    summary: RunSummary | None = None
    texts: list[str] = []
    dtype = ""
    for _ in range(rounds):
        with tempfile.TemporaryDirectory() as scratch:
            starts.append(_start_seconds(Path(scratch)))
            settings = _settings(Path(scratch) / "whole")
            begun = time.perf_counter()
            summary = run_sync(settings, [str(folder)])
            wholes.append(time.perf_counter() - begun)
            texts = _chunk_texts(settings)
        seconds, dtype = _encode_seconds(settings, texts)
        encodes.append(seconds)
    assert summary is not None
    assert summary.embedded + summary.reused == len(texts)
    start, whole, encode = map(statistics.median, (starts, wholes, encodes))
    return {
        "benchmark": "ingest_throughput",
        "collection": folder.name,
        "documents": summary.listed,
        "chunks": len(texts),
        "rounds": rounds,
        "precision": dtype,
        "included": INCLUDED,
        "start_s": round(start, 2),
        "ingest_s": round(whole - start, 2),
        "encode_s": round(encode, 2),
        "ingest_chunks_per_s": round(len(texts) / (whole - start), 1),
        "encode_chunks_per_s": round(len(texts) / encode, 1),
        "ratio": round(encode / (whole - start), 3),
        "ratio_with_start": round(encode / whole, 3),
        "environment": environment(),
    }


def _settings(data_dir: Path) -> Settings:
    return Settings.model_validate(
        {"data_dir": data_dir, "sources": {"default": {"default_acl": ["public"]}}}
    )


def _start_seconds(scratch: Path) -> float:
    one = scratch / "one"
    one.mkdir()
    (one / "corpus.jsonl").write_text('{"_id": "1", "title": "One", "text": "A line."}\n')
    begun = time.perf_counter()
    run_sync(_settings(scratch / "start"), [str(one)])
    return time.perf_counter() - begun


def _chunk_texts(settings: Settings) -> list[str]:
    with vector_server(settings):
        _, stores = open_live(settings, None)
        with closing(stores):
            row_ids = [ref.row_id for ref in stores.text.scan(limit=1_000_000)]
            chunks = stores.text.fetch(row_ids).values()
            return [embedded_text(chunk.header, chunk.text) for chunk in chunks]


def _encode_seconds(settings: Settings, texts: Sequence[str]) -> tuple[float, str]:
    import torch
    from sentence_transformers import SentenceTransformer

    from quarry.models.location import locate
    from quarry.models.sentence_transformer import SentenceTransformerEmbedder

    ours = SentenceTransformerEmbedder(settings.embedder)
    torch.set_num_threads(os.cpu_count() or 1)
    model = SentenceTransformer(
        locate(settings.embedder.model).source, model_kwargs={"dtype": getattr(torch, ours.dtype)}
    )
    model.max_seq_length = ours.fingerprint.max_tokens
    model.encode(texts[:WARM_UP], batch_size=ENCODE_BATCH, show_progress_bar=False)
    begun = time.perf_counter()
    model.encode(
        list(texts),
        batch_size=ENCODE_BATCH,
        normalize_embeddings=True,
        show_progress_bar=False,
    )
    return time.perf_counter() - begun, ours.dtype


def show(result: Mapping[str, Any]) -> None:
    """Both rates and the ratio, then what they ran on."""
    print(
        f"Ingest of {result['collection']}: {result['documents']} documents, "
        f"{result['chunks']} chunks, {result['precision']}, median of {result['rounds']} rounds"
    )
    print(f"{'':<24}{'seconds':>10}{'chunks/s':>12}")
    for name, key in (("ingest, end to end", "ingest"), ("encoding alone", "encode")):
        seconds, rate = result[f"{key}_s"], result[f"{key}_chunks_per_s"]
        print(f"{name:<24}{seconds:>10.2f}{rate:>12.1f}")
    print(
        f"ratio {result['ratio']:.2f}; with {result['start_s']:.1f} s of starting up "
        f"{result['ratio_with_start']:.2f}"
    )
    print(environment_line(result["environment"]))


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Ingest throughput against encoding alone.")
    parser.add_argument("folder", type=Path, nargs="?", default=CRANFIELD, help="BEIR folder")
    parser.add_argument("--rounds", type=int, default=3, help="times that each side is measured")
    given = parser.parse_args(arguments)
    result = measure(given.folder, rounds=given.rounds)
    show(result)
    print(json.dumps(result))


if __name__ == "__main__":
    main()
