"""How long each stage of a search takes, in process: python -m benchmarks.search_stages [FOLDER]

Every judged question of a BEIR folder is asked one after the other in hybrid mode with the reranker
of the default settings, after some questions to warm up; it keeps nothing of the passages, as if
none came again. A stage's time is what its trace entry says; `total` is what the caller waits. The
last line is one JSON object.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from benchmarks.environment import environment, environment_line
from evals.beir import eval_settings
from evals.datasets.beir import load_beir
from ingest.sync import run_sync
from quarry.records import SearchRequest
from quarry.settings import Settings
from serve.engine import Engine, open_engine

REPO = Path(__file__).resolve().parent.parent
CRANFIELD = REPO.parent / "shared" / "ir" / "cranfield"
WARM_UP = 20
DEADLINE_S = 600.0
"""Long enough that no stage is skipped on a slow machine."""


def measure(folder: Path) -> dict[str, Any]:
    """Milliseconds of each stage (p50, p95) over the folder's questions.

    The index is the one that `quarry eval beir` makes in the checkout, and is made if need be.
    """
    dataset = load_beir(folder)
    settings = eval_settings(Settings(data_dir=REPO / ".quarry"), folder)
    reranker = settings.reranker.model_copy(update={"cache_mb": 0})
    settings = settings.model_copy(update={"reranker": reranker})
    run_sync(settings, [str(dataset.corpus)])
    with open_engine(settings) as engine:
        times, degraded = asyncio.run(_ask(engine, list(dataset.queries.values())))
    return {
        "benchmark": "search_stages",
        "collection": dataset.name,
        "questions": len(dataset.queries),
        "degraded": degraded,
        "reranker": f"{settings.reranker.kind}, depth {settings.reranker.depth}",
        "stages_ms": {stage: _percentiles(values) for stage, values in times.items()},
        "environment": environment(),
    }


async def _ask(engine: Engine, questions: Sequence[str]) -> tuple[Mapping[str, list[float]], int]:
    times: dict[str, list[float]] = defaultdict(list)
    degraded = 0
    for question in islice(questions, WARM_UP):
        await engine.search(SearchRequest(question=question, deadline_s=DEADLINE_S))
    for question in questions:
        begun = time.perf_counter()
        result = await engine.search(SearchRequest(question=question, deadline_s=DEADLINE_S))
        total = (time.perf_counter() - begun) * 1000
        degraded += bool(result.degraded)
        for record in result.trace:
            times[record.stage].append(record.ms)
        times["total"].append(total)
    return times, degraded


def _percentiles(values: Sequence[float]) -> dict[str, float]:
    cuts = statistics.quantiles(values, n=20, method="inclusive")
    return {"p50": round(statistics.median(values), 2), "p95": round(cuts[18], 2)}


def show(result: Mapping[str, Any]) -> None:
    """The stages as aligned lines, then what they ran on."""
    print(f"Search stages, {result['questions']} questions of {result['collection']} (ms)")
    print(f"{'stage':<12}{'p50':>10}{'p95':>10}")
    for stage, found in result["stages_ms"].items():
        print(f"{stage:<12}{found['p50']:>10.2f}{found['p95']:>10.2f}")
    print(environment_line(result["environment"]))


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Time of each search stage.")
    parser.add_argument("folder", type=Path, nargs="?", default=CRANFIELD, help="BEIR folder")
    result = measure(parser.parse_args(arguments).folder)
    show(result)
    print(json.dumps(result))


if __name__ == "__main__":
    main()
