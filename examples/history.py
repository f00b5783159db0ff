"""What each part of the search path brought, on the examples: make eval-history.

The same questions are asked of six searches, each with one part more than the one before: chunks of
a fixed length and vectors alone, chunks that follow the structure, their headers, words beside
vectors, the reranker, and versions and filters. Everything is in memory; the parsers, the chunker,
the models and the path itself are those of the product.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import runpy
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from evals.compare import compare
from evals.datasets.questions import Case, load_all
from evals.measuring.results import CaseResult, figures
from evals.measuring.retrieval import Depths
from evals.running.observe import Variant
from evals.running.run import Plan, run_set
from ingest.chunking import Chunker, ChunkJob
from ingest.parsers.sandbox import ParserPool
from ingest.reading import Reader, ReadSettings
from ingest.sources import open_source
from ingest.stages import Encoder, Writer
from ingest.work import Task, Work
from quarry import ids
from quarry.cli.evaluating import Askers, asking
from quarry.cli.output import print_line
from quarry.models.counter import load_counter
from quarry.ports import TokenCounter
from quarry.records import Chunk, Mode
from quarry.settings import AccessSettings, Settings
from quarry.stores.factory import Stores
from quarry.stores.memory import MemoryCatalog, MemoryTextStore, MemoryVectorStore
from quarry.text import embedded_text, identifiers
from serve.engine import Engine, make_engine
from serve.index import Index
from serve.models import LoadedModels, load_models
from serve.stage import Threads

EXAMPLES = Path(__file__).resolve().parent
SETS = {
    "shop": ("outdoor-shop", ("questions.jsonl",)),
    "handbook": ("robotics-handbook", ("questions.jsonl", "fault_codes.jsonl")),
    "orders": ("orders", ("questions.jsonl",)),
}
FIXED_CHARACTERS = 1000
"""Nearly as many as the embedder reads."""
DEPTHS = Depths(sent=5, reranked=50)
"""So that a case passes when all its evidence is among the first five."""
SETTINGS = Settings(access=AccessSettings(users_file=EXAMPLES / "robotics-handbook" / "users.yaml"))

Cut = Callable[[TokenCounter], Any]
"""Makes a chunker."""


class FixedChunks:
    """Cuts a document every so many characters, wherever that is, and puts nothing on top."""

    def __init__(self, counter: TokenCounter) -> None:
        self._counter = counter

    def chunk(self, jobs: Sequence[ChunkJob]) -> list[tuple[Chunk, ...]]:
        return [tuple(self._cut(job)) for job in jobs]

    def _cut(self, job: ChunkJob) -> Iterator[Chunk]:
        text = "\n".join(block.text for block in job.blocks)
        starts = range(0, len(text), FIXED_CHARACTERS)
        parts = [text[start : start + FIXED_CHARACTERS].strip() for start in starts]
        yield from bare(job.doc_id, [part for part in parts if part], self._counter)


class HeadlessChunks:
    """The product's chunks without their headers."""

    def __init__(self, counter: TokenCounter) -> None:
        self._counter = counter
        self._inner = Chunker(counter, SETTINGS.chunking)

    def chunk(self, jobs: Sequence[ChunkJob]) -> list[tuple[Chunk, ...]]:
        cut = self._inner.chunk(jobs)
        return [
            tuple(
                replace(headless, section=whole.section, pages=whole.pages)
                for headless, whole in zip(
                    bare(job.doc_id, [chunk.text for chunk in chunks], self._counter),
                    chunks,
                    strict=True,
                )
            )
            for job, chunks in zip(jobs, cut, strict=True)
        ]


def bare(doc_id: str, texts: Sequence[str], counter: TokenCounter) -> Iterator[Chunk]:
    """Chunks of these texts and nothing else."""
    seen: Counter[str] = Counter()
    counts = counter.count_tokens(texts) if texts else []
    for ordinal, (text, tokens) in enumerate(zip(texts, counts, strict=True)):
        yield Chunk(
            row_id="",
            chunk_id=ids.chunk_id(doc_id, text, seen[text]),
            doc_id=doc_id,
            revision="",
            ordinal=ordinal,
            text=text,
            header="",
            tokens=tokens,
            text_hash=ids.digest(embedded_text("", text)),
            identifiers=identifiers(text),
        )
        seen[text] += 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    name: str
    cut: str
    variant: Variant


PLAIN = Variant(mode=Mode.DENSE, rerank=False, filters=False, answers=False)
CUTS: dict[str, Cut] = {
    "fixed": FixedChunks,
    "structure": HeadlessChunks,
    "headers": lambda counter: Chunker(counter, SETTINGS.chunking),
}
STEPS = (
    Step(name="fixed chunks, dense", cut="fixed", variant=PLAIN),
    Step(name="structure chunking", cut="structure", variant=PLAIN),
    Step(name="headers", cut="headers", variant=PLAIN),
    Step(name="hybrid", cut="headers", variant=replace(PLAIN, mode=Mode.HYBRID)),
    Step(name="rerank", cut="headers", variant=replace(PLAIN, mode=Mode.HYBRID, rerank=True)),
    Step(
        name="versions and filters",
        cut="headers",
        variant=Variant(mode=Mode.HYBRID, rerank=True, filters=True, answers=False),
    ),
)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="What each part of the search path brought.")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the table as JSON too")
    out = parser.parse_args(arguments).json
    with tempfile.TemporaryDirectory() as scratch:
        folders, cases = corpora(Path(scratch))
        threads = Threads()
        models = load_models(SETTINGS)
        engines = {name: engine(folders, cut, models, threads) for name, cut in CUTS.items()}
        runs = [(step.name, asked(step, engines[step.cut], cases)) for step in STEPS]
        threads.close()
    rows = table(runs)
    for line in lines(rows, len(cases)):
        print_line(line)
    if out:
        out.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    return 0


def corpora(scratch: Path) -> tuple[dict[str, Path], list[Case]]:
    """Folders by source, and the judged cases of all sets."""
    runpy.run_path(str(EXAMPLES / "paired-handbook" / "generate.py"))["generate"](scratch, 7)
    folders = {source: EXAMPLES / name / "documents" for source, (name, _) in SETS.items()}
    sets = [EXAMPLES / name / each for name, files in SETS.values() for each in files]
    cases = load_all([*sets, scratch / "questions.jsonl"])
    return folders | {"paired": scratch / "documents"}, [case for case in cases if case.judged]


def engine(folders: dict[str, Path], cut: Cut, models: LoadedModels, threads: Threads) -> Engine:
    """An engine over all folders, cut in one way."""
    stores = Stores(MemoryCatalog(), MemoryTextStore(), MemoryVectorStore())
    stores.ensure(models.embedder.fingerprint.dimension)
    parser = ParserPool(SETTINGS)
    chunker = cut(load_counter(SETTINGS.embedder))
    build = Build(stores=stores, models=models, chunker=chunker, parser=parser, settings=SETTINGS)
    try:
        for name, folder in folders.items():
            build.add(name, folder)
    finally:
        parser.close()
    return make_engine(SETTINGS, index=Index.of("g1", stores), models=models, threads=threads)


@dataclass(frozen=True, slots=True, kw_only=True)
class Build:
    """Reads, cuts, embeds and commits folders, all in this process."""

    stores: Stores
    models: LoadedModels
    chunker: Any
    parser: ParserPool
    settings: Settings

    def add(self, name: str, folder: Path) -> None:
        source = open_source(str(folder), name=name)
        tasks = [
            Task(number=number, source=0, item=item, several=item.address.endswith(".jsonl"))
            for number, item in enumerate(source.list())
        ]
        reader = Reader(
            sources=[source],
            parser=self.parser,
            chunker=self.chunker,
            catalog=self.stores.catalog,
            config=ReadSettings(settings=self.settings, recipe="history", threads=1),
        )
        works = [row for row in reader(tasks) if isinstance(row, Work)]
        list(Writer(self.stores)(list(Encoder(self.stores, self.models.embedder)(works))))
        self.stores.text.publish()


def asked(step: Step, searched: Engine, cases: Sequence[Case]) -> list[CaseResult]:
    began = time.monotonic()
    ask = asking(searched, SETTINGS, Askers(SETTINGS))
    results = asyncio.run(run_set(cases, ask, Plan(depths=DEPTHS, variant=step.variant)))
    print_line(f"[{step.name}: {time.monotonic() - began:.0f} s]")
    sys.stdout.flush()
    return results


def table(runs: Sequence[tuple[str, list[CaseResult]]]) -> list[dict[str, Any]]:
    """One row a step: its figures, and which cases it won and lost against the step before."""
    rows: list[dict[str, Any]] = []
    for number, (name, results) in enumerate(runs):
        found = figures(results)
        change = compare(runs[number - 1], (name, results)) if number else None
        rows.append(
            {
                "step": name,
                "all_evidence@5": round(found.measures["all_evidence@5"], 4),
                "MRR@10": round(found.measures["RR@10"], 4),
                "failed": found.failed,
                "gained": list(change.gained) if change else [],
                "lost": list(change.lost) if change else [],
            }
        )
    return rows


def lines(rows: Sequence[dict[str, Any]], cases: int) -> Iterator[str]:
    yield f"\n{cases} cases with evidence; four corpora in one index"
    yield f"{'step':<22} all_evidence@5  MRR@10  gained  lost"
    for row in rows:
        yield (
            f"{row['step']:<22} {row['all_evidence@5']:>14.3f} {row['MRR@10']:>7.3f} "
            f"{len(row['gained']):>7} {len(row['lost']):>5}"
        )
    for row in rows[1:]:
        yield f"\n{row['step']}"
        yield f"  gained: {', '.join(row['gained']) or 'none'}"
        yield f"  lost: {', '.join(row['lost']) or 'none'}"


if __name__ == "__main__":
    sys.exit(main())
