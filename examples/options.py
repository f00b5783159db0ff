"""What each option of retrieval brings on the examples: make eval-options.

The same questions are asked of one index with one option at a time: how sources are read,
diversity, one passage a section, a glossary, and thresholds of a calibration made from the tuning
half. Each model answers the same question once, so that only the option makes the difference.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from history import EXAMPLES, SETTINGS, Build, corpora

from evals.datasets.questions import Case, evidence_ranks, load_all
from evals.improving.calibrate import collect, cuts, fit
from evals.measuring.results import figures
from evals.measuring.retrieval import Depths
from evals.running.observe import Variant, request_body
from evals.running.run import Plan, run_set
from ingest.chunking import Chunker
from ingest.parsers.sandbox import ParserPool
from quarry.calibration import Calibration, reranker_name
from quarry.cli.evaluating import Askers, asking, request_of
from quarry.cli.output import print_line
from quarry.models.counter import load_counter
from quarry.settings import ChunkingSettings, Settings
from quarry.stores.factory import Stores
from quarry.stores.memory import MemoryCatalog, MemoryTextStore, MemoryVectorStore
from serve.engine import Engine, make_engine
from serve.graph import Searcher
from serve.index import Index
from serve.models import LoadedModels, load_models
from serve.stage import Threads

SETS = ("outdoor-shop/questions.jsonl", "robotics-handbook/questions.jsonl")
"""Beside the paired handbook. Sets of single codes are decided by the identifier lane anyway."""
DEPTHS = Depths(sent=8, reranked=50)
GLOSSARIES = ("robotics-handbook", "paired-handbook")
OPTIONS: dict[str, dict[str, Any]] = {
    "all off": {},
    "one_per_section": {"select": {"one_per_section": True}},
    "mmr: 0.9": {"select": {"mmr": 0.9}},
    "mmr: 0.7": {"select": {"mmr": 0.7}},
    "mmr: 0.5": {"select": {"mmr": 0.5}},
    "glossary": {"rewrite": {"glossary_file": "glossary.yaml"}},
    "threshold: 0.01": {"select": {"threshold": 0.01, "calibration_file": "calibration.json"}},
    "threshold: 0.05": {"select": {"threshold": 0.05, "calibration_file": "calibration.json"}},
}
WIDTHS: dict[str, dict[str, Any]] = {
    f"small chunks, widen: {width}": {"select": {"widen": width}}
    for width in ("none", "short", "neighbours", "section")
}
SMALL = ChunkingSettings(max_tokens=80, min_tokens=16)
"""Sections of these examples mostly fit one chunk of the default size, and have no neighbours."""


class Remembering:
    """An embedder or reranker that works each text out once."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner
        self._vectors: dict[tuple[str, str], Any] = {}
        self._scores: dict[tuple[str, str], float] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def embed_question(self, text: str) -> Any:
        return self._embedded("embed_questions", [text])[0]

    def embed_documents(self, texts: Sequence[str]) -> Any:
        return self._embedded("embed_documents", texts)

    def _embedded(self, method: str, texts: Sequence[str]) -> Any:
        new = [text for text in dict.fromkeys(texts) if (method, text) not in self._vectors]
        if new:
            found = getattr(self._inner, method)(new)
            self._vectors |= {(method, t): v for t, v in zip(new, found, strict=True)}
        return np.array([self._vectors[method, text] for text in texts], dtype=np.float32)

    def score(self, question: str, passages: Sequence[str]) -> list[float]:
        new = [p for p in dict.fromkeys(passages) if (question, p) not in self._scores]
        if new:
            found = self._inner.score(question, new)
            self._scores |= {(question, p): s for p, s in zip(new, found, strict=True)}
        return [self._scores[question, passage] for passage in passages]


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="What each option of retrieval brings.")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the table as JSON too")
    parser.add_argument("--only", metavar="NAME", help="only options whose name holds this")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        folders, _ = corpora(folder)
        chosen = load_all([*(EXAMPLES / name for name in SETS), folder / "questions.jsonl"])
        threads = Threads()
        models = remembered(load_models(SETTINGS))
        glossary(folder)
        rows = []
        for chunking, table in ((SETTINGS.chunking, OPTIONS), (SMALL, WIDTHS)):
            wanted = {name: table[name] for name in table if (options.only or "") in name}
            if not wanted:
                continue
            stores = built(folders, models, chunking)
            made = {"index": Index.of("g1", stores), "models": models, "threads": threads}
            if table is OPTIONS:
                print_line(calibrated(make_engine(SETTINGS, **made), chosen, folder))
            for name, changes in wanted.items():
                settings = changed(changes, folder)
                rows.append(measured(name, make_engine(settings, **made), settings, chosen))
                print_line(f"[{name}: {rows[-1]['seconds']} s]")
                sys.stdout.flush()
        threads.close()
    for line in lines(rows, len(chosen)):
        print_line(line)
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    return 0


def remembered(models: LoadedModels) -> LoadedModels:
    from quarry.models.factory import load_generator

    embedder = Remembering(models.embedder)
    return replace(
        models,
        embedder=embedder,
        reranker=Remembering(models.reranker),
        generator=load_generator(SETTINGS.generator, embedder),
    )


def built(folders: dict[str, Path], models: LoadedModels, chunking: ChunkingSettings) -> Stores:
    stores = Stores(MemoryCatalog(), MemoryTextStore(), MemoryVectorStore())
    stores.ensure(models.embedder.fingerprint.dimension)
    parser = ParserPool(SETTINGS)
    chunker = Chunker(load_counter(SETTINGS.embedder), chunking)
    build = Build(stores=stores, models=models, chunker=chunker, parser=parser, settings=SETTINGS)
    try:
        for name, folder in folders.items():
            build.add(name, folder)
    finally:
        parser.close()
    return stores


def calibrated(engine: Engine, cases: Sequence[Case], folder: Path) -> str:
    """Writes the calibration of the tuning half, and says what thresholds would keep."""
    scored = asyncio.run(collect(cases, asking(engine, SETTINGS, Askers(SETTINGS))))
    curve = fit(scored)
    evidence = sum(each.evidence for each in scored)
    Calibration(
        reranker=reranker_name(SETTINGS),
        slope=curve.slope,
        intercept=curve.intercept,
        questions=len(cases),
        evidence=evidence,
        others=len(scored) - evidence,
        made_at=datetime.now(UTC),
    ).save(folder / "calibration.json")
    kept = (
        f"{cut.threshold}: {cut.evidence_kept:.0%} and {cut.others_kept:.0%}"
        for cut in cuts(scored, curve)
    )
    return f"of {evidence} passages with evidence and {len(scored) - evidence} others " + ", ".join(
        kept
    )


def glossary(folder: Path) -> None:
    """The glossaries of the examples in one file."""
    import yaml

    terms: dict[str, list[str]] = {}
    for name in GLOSSARIES:
        text = (EXAMPLES / name / "glossary.yaml").read_text(encoding="utf-8")
        terms |= yaml.safe_load(text)["tenants"]["default"]
    whole = yaml.safe_dump({"tenants": {"default": terms}})
    (folder / "glossary.yaml").write_text(whole, encoding="utf-8")


def changed(changes: dict[str, Any], folder: Path) -> Settings:
    retrieval = {
        section: {
            key: str(folder / value) if key.endswith("_file") else value
            for key, value in values.items()
        }
        for section, values in changes.items()
    }
    return Settings.model_validate({**SETTINGS.model_dump(), "retrieval": retrieval})


def measured(
    name: str, engine: Engine, settings: Settings, cases: Sequence[Case]
) -> dict[str, Any]:
    began = time.monotonic()
    ask = asking(engine, settings, Askers(settings))
    results = asyncio.run(run_set(cases, ask, Plan(depths=DEPTHS, variant=Variant())))
    read = asyncio.run(reading(engine, settings, cases))
    found = figures(results)
    held_out = figures([r for r in results if r.case.held_out])
    return {
        "option": name,
        "all_evidence@5": round(found.measures["all_evidence@5"], 3),
        "MRR@10": round(found.measures["RR@10"], 3),
        "evidence read": round(sum(read.values()) / len(read), 3),
        "passed": round(found.measures["pass_rate"], 3),
        "held out": round(held_out.measures["all_evidence@5"], 3),
        "refused": round(found.measures["refused_answerable"], 3),
        "answered in vain": round(found.measures["answered_unanswerable"], 3),
        "prompt_tokens": round(found.measures["prompt_tokens"]),
        "failed": found.failed,
        "seconds": round(time.monotonic() - began),
        "passing": sorted(r.case.id for r in results if r.passed),
    }


async def reading(engine: Engine, settings: Settings, cases: Sequence[Case]) -> dict[str, bool]:
    """Whether all the evidence of a case is in the sources that the generator reads."""
    searcher, people = engine._searcher, Askers(settings)
    assert isinstance(searcher, Searcher)
    found = {}
    for case in cases:
        if not case.evidence:
            continue
        body = request_body(case, Variant())
        principal = people.named(body.get("as", ""), body.get("groups"))
        gathered = await searcher.gather(request_of(settings, body, principal))
        found[case.id] = all(evidence_ranks(case, [each.text for each in gathered.evidence]))
    return found


COLUMNS = (
    "all_evidence@5", "MRR@10", "evidence read", "passed", "refused", "answered in vain",
    "held out", "prompt_tokens",
)  # fmt: skip


def lines(rows: Sequence[dict[str, Any]], cases: int) -> Iterator[str]:
    yield f"\n{cases} cases; four corpora in one index"
    yield f"| option | {' | '.join(COLUMNS)} | passes gained / lost |"
    yield f"|---|{'---|' * (len(COLUMNS) + 1)}"
    first = set(rows[0]["passing"])
    for row in rows:
        passing = set(row["passing"])
        change = f"{len(passing - first)} / {len(first - passing)}"
        yield f"| {row['option']} | {' | '.join(str(row[name]) for name in COLUMNS)} | {change} |"
    for row in rows[1:]:
        passing = set(row["passing"])
        yield f"{row['option']}: +{sorted(passing - first)} -{sorted(first - passing)}"


if __name__ == "__main__":
    sys.exit(main())
