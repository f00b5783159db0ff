"""A reranker that fuses is one more list beside the legs, worked out by hand."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from quarry.records import Candidate, Chunk, Document, SearchRequest
from quarry.settings_retrieval import RetrievalSettings
from serve.finding.question import ask
from serve.finding.rerank import rerank
from serve.models import Scores
from serve.stage import Deadline, Run

RRF_K = 60


def candidate(name, score):
    document = Document(doc_id=name, source="s", address=name, uri=name)
    chunk = Chunk(
        row_id=f"{name}.t",
        chunk_id=name,
        doc_id=name,
        revision="t",
        ordinal=0,
        text=name,
        header="",
    )
    return Candidate(chunk=chunk, document=document, score=score)


def scoring(fuses, **values):
    async def model(question, passages):
        return Scores(values=[values[passage] for passage in passages], fuses=fuses)

    return model


async def reranked(fused, model, depth=10):
    asked, _ = ask(SearchRequest(question="what"), RetrievalSettings())
    run = Run(Deadline(10))
    order, _ = await rerank(fused, asked, model=model, depth=depth, rrf_k=RRF_K, run=run)
    return order


async def test_the_model_counts_as_much_as_one_leg():
    """In both legs at ranks 1 and 2; in one leg at rank 1 and first for the model."""
    in_both = candidate("both", 1 / 61 + 1 / 62)
    in_one = candidate("one", 1 / 62)
    order = await reranked([in_both, in_one], scoring(True, both=0.1, one=0.9))
    assert [c.chunk.chunk_id for c in order] == ["both", "one"]
    assert order[0].score == pytest.approx(1 / 61 + 1 / 62 + 1 / 62)
    assert order[1].score == pytest.approx(1 / 62 + 1 / 61)


async def test_the_model_decides_between_candidates_that_the_legs_put_close():
    close = [candidate("a", 1 / 61 + 1 / 63), candidate("b", 1 / 62 + 1 / 62)]
    assert close[0].score > close[1].score
    order = await reranked(close, scoring(True, a=0.1, b=0.9))
    assert [c.chunk.chunk_id for c in order] == ["b", "a"]
    assert order[0].signals.rerank_score == 0.9


async def test_scores_of_a_model_that_does_not_fuse_decide_alone():
    fused = [candidate("a", 0.9), candidate("b", 0.1)]
    order = await reranked(fused, scoring(False, a=-3.0, b=2.0))
    assert [(c.chunk.chunk_id, c.score) for c in order] == [("b", 2.0), ("a", -3.0)]


async def test_what_is_below_the_depth_stays_behind_in_its_order():
    fused = [candidate("a", 0.3), candidate("b", 0.2), candidate("c", 0.1)]
    order = await reranked(fused, scoring(False, a=1.0, b=5.0), depth=2)
    assert [c.chunk.chunk_id for c in order] == ["b", "a", "c"]


LOGITS = (-11.3, 4.2, -0.4, 9.8, 4.2, 0.0)


@pytest.mark.parametrize("fuses", [True, False])
async def test_logits_and_the_probabilities_made_of_them_give_one_order(fuses):
    fused = [candidate(f"d{n}", 1 / (61 + n)) for n in range(len(LOGITS))]
    names = [c.chunk.chunk_id for c in fused]
    logits = dict(zip(names, LOGITS, strict=True))
    probabilities = {name: 1 / (1 + math.exp(-value)) for name, value in logits.items()}
    one = await reranked(fused, scoring(fuses, **logits))
    other = await reranked(fused, scoring(fuses, **probabilities))
    assert [c.chunk.chunk_id for c in one] == [c.chunk.chunk_id for c in other]
    if not fuses:
        assert [c.chunk.chunk_id for c in one] == ["d3", "d1", "d4", "d5", "d2", "d0"]


async def test_probabilities_that_are_all_rounded_to_one_keep_the_first_stages_order():
    fused = [candidate(f"d{n}", 1 / (61 + n)) for n in range(100)]
    order = await reranked(fused, scoring(False, **{f"d{n}": 1.0 for n in range(100)}), depth=100)
    assert order == [replace(c, score=1.0, signals=order[0].signals) for c in fused]


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
async def test_one_score_that_is_no_number_leaves_the_whole_list_as_it_was(bad):
    fused = [candidate("a", 0.3), candidate("b", 0.2), candidate("c", 0.1)]
    asked, _ = ask(SearchRequest(question="what"), RetrievalSettings())
    run = Run(Deadline(10))
    model = scoring(False, a=0.0, b=bad, c=5.0)
    order, record = await rerank(fused, asked, model=model, depth=10, rrf_k=RRF_K, run=run)
    assert order == fused
    assert (run.degraded, record.count, record.detail) == (["rerank"], 0, {"skipped": True})


async def test_without_candidates_the_model_is_not_asked():
    async def model(question, passages):
        raise AssertionError("asked")

    assert await reranked([], model) == []
