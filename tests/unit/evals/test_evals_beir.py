"""A collection is evaluated in an index of its own."""

from __future__ import annotations

import io
import json
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from rich.console import Console

from evals.beir import eval_settings, evaluate_beir
from evals.datasets.beir import load_beir
from evals.improving.seen import fingerprint
from evals.reporting.tables import beir_table
from evals.running.own_index import own_index
from quarry.errors import SourceNotFound
from quarry.fusion import FEATURES, Fusion, save_fusion
from quarry.records import SearchResult
from quarry.settings import ChunkingSettings, Settings, SourceSettings


@pytest.fixture
def folder(tmp_path):
    home = tmp_path / "tiny"
    (home / "qrels").mkdir(parents=True)
    (home / "corpus.jsonl").write_text('{"_id": "a", "title": "", "text": "x"}\n')
    (home / "queries.jsonl").write_text(json.dumps({"_id": "1", "text": "what"}) + "\n")
    (home / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\n1\ta\t1\n")
    return home


class Parts:
    """Notes what is asked of ingest and search, in order."""

    def __init__(self):
        self.calls = []

    def ingest(self, settings, path):
        self.calls.append(("ingest", settings.data_dir, path))

    @asynccontextmanager
    async def open_search(self, settings):
        async def search(request):
            self.calls.append(("search", settings.data_dir, request.mode))
            return SearchResult(candidates=(), generation="g1")

        yield search
        self.calls.append(("close", settings.data_dir, None))


def test_the_collection_is_ingested_searched_and_closed_in_one_folder_of_its_own(folder):
    parts = Parts()
    settings = Settings(data_dir=Path("/data"))
    report = evaluate_beir(
        folder, settings=settings, ingest=parts.ingest, open_search=parts.open_search
    )
    assert [name for name, _, _ in parts.calls] == ["ingest", *["search"] * 4, "close"]
    assert parts.calls[0][2] == folder / "corpus.jsonl"
    (home,) = {data_dir for _, data_dir, _ in parts.calls}
    assert home.parent == Path("/data/evals")
    assert report.modes["dense"].empty == 1


def test_a_report_says_when_its_weights_have_seen_the_questions(folder, tmp_path):
    (text,) = load_beir(folder).queries.values()
    weights = dict.fromkeys(FEATURES, 0.0)
    save_fusion(Fusion(weights=weights, seen=(fingerprint(text),)), tmp_path / "w.json", {})
    parts = Parts()
    report = evaluate_beir(
        folder,
        settings=Settings.model_validate({"retrieval": {"fusion_file": tmp_path / "w.json"}}),
        ingest=parts.ingest,
        open_search=parts.open_search,
        modes=["lexical"],
    )
    assert "from 1 of these 1 questions" in report.notes[0]
    assert report.as_json()["notes"] == list(report.notes)


def test_a_folder_that_is_no_collection_is_told_before_anything_is_ingested(tmp_path):
    parts = Parts()
    with pytest.raises(SourceNotFound):
        evaluate_beir(
            tmp_path, settings=Settings(), ingest=parts.ingest, open_search=parts.open_search
        )
    assert parts.calls == []


def test_the_index_of_the_caller_is_out_of_reach(folder):
    settings = Settings(sources={"default": SourceSettings(default_acl=("staff",))})
    own = eval_settings(settings, folder)
    stores, theirs = own.stores, settings.stores
    assert own.data_dir != settings.data_dir
    assert stores.elasticsearch.index_prefix != theirs.elasticsearch.index_prefix
    assert stores.milvus.collection_prefix != theirs.milvus.collection_prefix
    assert own.source("corpus").default_acl == ("public",)


def test_other_chunks_need_another_index_and_other_search_settings_do_not(folder):
    settings = Settings()
    chunking = ChunkingSettings(max_tokens=100)
    retrieval = settings.retrieval.model_copy(update={"rrf_k": 10})
    home = eval_settings(settings, folder).data_dir
    same = settings.model_copy(update={"retrieval": retrieval})
    other = settings.model_copy(update={"chunking": chunking})
    assert eval_settings(same, folder).data_dir == home
    assert eval_settings(other, folder).data_dir != home


def test_documents_of_another_source_name_need_another_index(tmp_path):
    homes = [
        own_index(Settings(), [tmp_path], names=[name]).data_dir for name in (None, "hr", "shop")
    ]
    assert len(set(homes)) == 3
    assert own_index(Settings(), [tmp_path], names=["hr"]).data_dir == homes[1]


def test_the_table_shows_every_mode_and_what_went_wrong(folder):
    parts = Parts()
    report = evaluate_beir(
        folder,
        settings=Settings(),
        ingest=parts.ingest,
        open_search=parts.open_search,
        modes=["lexical", "hybrid+rerank"],
    )
    out = io.StringIO()
    Console(file=out, width=120).print(beir_table(report))
    lines = out.getvalue().splitlines()
    assert lines[1].split()[:6] == ["mode", "nDCG@10", "R@100", "RR@10", "queries", "failed"]
    assert lines[2].split()[:7] == ["lexical", "0.000", "0.000", "0.000", "1", "0", "1"]
    assert lines[3].startswith("hybrid+rerank")
