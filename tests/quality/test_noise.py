"""The paired handbook among Cranfield: an approximate index that looks too little loses evidence,
the diagnosis says that the index lost it, and looking further brings it back."""

from __future__ import annotations

import asyncio
import runpy
from dataclasses import dataclass

import numpy as np
import pytest

from evals.datasets.questions import Kind, load_questions
from evals.improving.diagnose import Means, Stage, diagnose
from evals.measuring.retrieval import Depths
from evals.running.observe import Variant, request_body
from evals.running.system import System, ann_recall
from examples.history import Build
from ingest.chunking import Chunker
from ingest.parsers.sandbox import ParserPool
from quarry.cli.evaluating import DEADLINE_S, system_over
from quarry.cli.requests import request_of
from quarry.models.counter import load_counter
from quarry.settings import Settings
from quarry.stores.factory import Stores
from quarry.stores.memory import MemoryCatalog, MemoryTextStore, MemoryVectorStore
from serve.models import load_models
from serve.stage import Threads
from tests.conftest import REPO

pytestmark = [pytest.mark.slow, pytest.mark.shared, pytest.mark.timeout(1200)]

CELLS = 64
SETTINGS = Settings.model_validate(
    {
        "sources": {"default": {"default_acl": ["public"]}},
        "retrieval": {"candidates": 20},
        "reranker": {"kind": "none"},
    }
)


class CellStore(MemoryVectorStore):
    """An inverted file (IVF): vectors lie in cells round centres, and a search looks into the
    `effort` cells that are nearest to the question and into no other."""

    effort = CELLS

    def search(self, vector, **options):
        hits = super().search(vector, **options | {"limit": self.count()})
        ids = list(self._rows)
        matrix = np.stack([self._rows[row].vector for row in ids])
        centres = matrix[np.random.default_rng(5).choice(len(ids), CELLS, replace=False)]
        near = set(np.argsort(-(centres @ vector))[: self.effort])
        cell = dict(zip(ids, np.argmax(matrix @ centres.T, axis=1), strict=True))
        return [hit for hit in hits if cell[hit.row_id] in near][: options["limit"]]


@dataclass(frozen=True)
class World:
    system: System
    vectors: CellStore
    cases: list

    def look(self, effort):
        """Counts of lost evidence by stage, and the mean ANN recall, at this effort."""
        self.vectors.effort = effort
        people = self.system.inside.people
        means = Means(
            depths=Depths(sent=8, reranked=20),
            candidates=20,
            make_request=lambda case: request_of(
                SETTINGS, request_body(case, Variant()), people(case), deadline_s=DEADLINE_S
            ),
        )

        async def both():
            found = await diagnose(self.cases, self.system, means)
            recall = await ann_recall(self.cases, self.system, Variant())
            return found.counts, float(np.mean([next(iter(r.values())) for r in recall.values()]))

        return asyncio.run(both())


@pytest.fixture(scope="module")
def world(shared_dir, tmp_path_factory):
    folder = tmp_path_factory.mktemp("paired")
    runpy.run_path(str(REPO / "examples" / "paired-handbook" / "generate.py"))["generate"](
        folder, 7
    )
    models, vectors = load_models(SETTINGS), CellStore()
    stores = Stores(MemoryCatalog(), MemoryTextStore(), vectors)
    stores.ensure(models.embedder.fingerprint.dimension)
    parser, threads = ParserPool(SETTINGS), Threads()
    chunker = Chunker(load_counter(SETTINGS.embedder), SETTINGS.chunking)
    sources = {
        "paired": folder / "documents",
        "neighbour": shared_dir / "ir" / "cranfield" / "corpus.jsonl",
    }
    build = Build(stores=stores, models=models, chunker=chunker, parser=parser, settings=SETTINGS)
    for name, path in sources.items():
        build.add(name, path)
    system = system_over(SETTINGS, "g1", stores, models, threads)
    assert len(system.inside.corpus.documents) == 1498  # two abstracts of the neighbour are empty
    questions = load_questions(folder / "questions.jsonl")
    yield World(system, vectors, [c for c in questions if c.kind is Kind.PARAPHRASE])
    parser.close()
    threads.close()


def test_too_little_effort_loses_evidence_at_the_index_and_more_effort_brings_it_back(world):
    low, low_recall = world.look(effort=1)
    high, high_recall = world.look(effort=CELLS)
    assert low_recall < 0.8 and high_recall == 1.0
    assert low.get(Stage.INDEX, 0) >= 3 and Stage.INDEX not in high
    # What full effort does not find is too far away, and no index can be blamed for it.
    assert high.get(Stage.EMBEDDING, 0) <= low.get(Stage.INDEX, 0) + low.get(Stage.EMBEDDING, 0)
