"""Running a collection through a search, whatever that search does."""

from __future__ import annotations

import json

import pytest

from evals.datasets.beir import BeirDataset
from evals.running.collection import MODES, record_name, run_beir
from quarry.errors import DeadlineExceeded, UsageError
from quarry.records import Candidate, Chunk, Document, Mode, SearchResult


def candidate(record, ordinal=0):
    document = Document(
        doc_id=record, source="s", address="corpus.jsonl", uri=f"corpus.jsonl#{record}"
    )
    chunk = Chunk(
        row_id=f"{record}-{ordinal}.t",
        chunk_id=f"{record}-{ordinal}",
        doc_id=record,
        revision="t",
        ordinal=ordinal,
        text="",
        header="",
    )
    return Candidate(chunk=chunk, document=document)


@pytest.fixture
def dataset(tmp_path):
    return BeirDataset(
        name="tiny",
        corpus=tmp_path / "corpus.jsonl",
        queries={"1": "first", "2": "second"},
        qrels={"1": {"a": 1}, "2": {"b": 1}},
    )


def searching(answers):
    """A search that gives the candidates of each question, or raises what is there instead."""
    requests = []

    async def search(request):
        requests.append(request)
        answer = answers[request.question]
        if isinstance(answer, Exception):
            raise answer
        if isinstance(answer, SearchResult):
            return answer
        return SearchResult(candidates=tuple(answer), generation="g1")

    return search, requests


async def test_a_document_counts_once_at_its_best_chunk(dataset):
    chunks = [candidate("x"), candidate("x", 1), candidate("a", 3), candidate("x", 2)]
    search, _ = searching({"first": chunks, "second": [candidate("b")]})
    report = await run_beir(dataset, search, modes=["dense"])
    assert report.runs["dense"]["1"] == ["x", "a"]
    assert report.modes["dense"].measures["RR@10"] == pytest.approx(0.75)


async def test_each_mode_asks_for_its_legs_and_reranker(dataset):
    search, requests = searching({"first": [], "second": []})
    await run_beir(dataset, search, depth=30)
    asked = [(request.mode, request.rerank) for request in requests[::2]]
    assert asked == [
        (Mode.LEXICAL, False),
        (Mode.DENSE, False),
        (Mode.HYBRID, False),
        (Mode.HYBRID, True),
    ]
    assert all(request.top_k > 30 for request in requests)


async def test_failed_empty_and_degraded_questions_are_counted_and_worth_nothing(dataset):
    degraded = SearchResult(candidates=(candidate("b"),), generation="g1", degraded=("rerank",))
    search, _ = searching({"first": DeadlineExceeded("late"), "second": degraded})
    figures = (await run_beir(dataset, search, modes=["hybrid"])).modes["hybrid"]
    assert (figures.queries, figures.failed, figures.empty, figures.degraded) == (2, 1, 0, 1)
    assert figures.measures["nDCG@10"] == 0.5

    search, _ = searching({"first": [], "second": [candidate("b")]})
    figures = (await run_beir(dataset, search, modes=["hybrid"])).modes["hybrid"]
    assert (figures.failed, figures.empty) == (0, 1)
    assert figures.measures["RR@10"] == 0.5


async def test_a_fault_that_is_not_ours_stops_the_run(dataset):
    search, _ = searching({"first": ZeroDivisionError(), "second": []})
    with pytest.raises(ZeroDivisionError):
        await run_beir(dataset, search, modes=["hybrid"])


async def test_only_the_first_documents_up_to_the_depth_are_judged(dataset):
    search, _ = searching({"first": [candidate("x"), candidate("a")], "second": [candidate("b")]})
    report = await run_beir(dataset, search, modes=["lexical"], depth=1)
    assert report.runs["lexical"] == {"1": ["x"], "2": ["b"]}


async def test_progress_is_told_for_every_question(dataset):
    told = []
    search, _ = searching({"first": [], "second": []})
    await run_beir(dataset, search, modes=["dense"], progress=lambda *step: told.append(step))
    assert told == [("dense", 1, 2), ("dense", 2, 2)]


async def test_an_unknown_mode_is_an_error_before_anything_is_asked(dataset):
    search, requests = searching({})
    with pytest.raises(UsageError, match="fuzzy"):
        await run_beir(dataset, search, modes=["dense", "fuzzy"])
    assert requests == []


async def test_the_json_has_the_published_shape(dataset):
    search, _ = searching({"first": [candidate("a")], "second": []})
    report = json.loads(json.dumps((await run_beir(dataset, search)).as_json()))
    assert tuple(report["modes"]) == MODES
    assert {"nDCG@10", "R@100", "RR@10", "queries", "failed"} <= report["modes"]["dense"].keys()


@pytest.mark.parametrize(
    ("uri", "name"),
    [
        ("c/corpus.jsonl#12", "12"),
        ("c#1/corpus.jsonl#a#b%20", "a#b%20"),
        ("Table of 2026.CSV#row 1", "row 1"),
        ("c/page.html", "c/page.html"),
        ("notes on C#/page #1.md", "notes on C#/page #1.md"),
    ],
)
def test_a_record_is_named_by_what_follows_the_sign_after_its_file(uri, name):
    assert record_name(uri) == name
