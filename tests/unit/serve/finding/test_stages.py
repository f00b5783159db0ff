"""Fusion, reranking and evidence, each on its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from quarry.records import Candidate, Chunk, Document, Evidence, Message, Mode
from serve.answering.evidence import Budget, Widen, choose
from serve.finding.fuse import fuse
from serve.finding.question import ask
from serve.finding.rerank import rerank
from serve.finding.retrieve import Found
from serve.finding.rrf import ranks, rrf
from serve.models import Scores
from serve.stage import Deadline, Run
from tests.unit.serve.serve_world import World, chunk_of, names, request

# ---------------------------------------------------------------------------------------- fuse


def test_rrf_adds_one_over_k_plus_rank_for_each_list() -> None:
    scores = rrf([["a", "b"], ["b", "c"]], k=60)
    assert scores == pytest.approx({"a": 1 / 61, "b": 1 / 62 + 1 / 61, "c": 1 / 62})


def test_a_repeated_id_counts_once_and_takes_no_second_place() -> None:
    assert ranks(["a", "a", "b"]) == {"a": 1, "b": 2}


def test_an_empty_leg_adds_nothing() -> None:
    assert rrf([["a", "b"], []], k=60) == rrf([["a", "b"]], k=60)


def test_equal_scores_stand_in_the_order_of_chunk_id() -> None:
    one, two = candidate("one"), candidate("two")
    ids = sorted([one.chunk.chunk_id, two.chunk.chunk_id])
    for first, second in ((ids[0], ids[1]), (ids[1], ids[0])):
        found = Found(
            candidates={c.chunk.chunk_id: c for c in (one, two)},
            dense={first: 0.9, second: 0.8},
            lexical={second: 7.0, first: 6.0},
        )
        fused, _ = fuse(found, asked("tents"), rrf_k=60)
        assert [c.chunk.chunk_id for c in fused] == ids


def test_signals_tell_rank_and_score_of_each_leg() -> None:
    one = candidate("one")
    found = Found(candidates={one.chunk.chunk_id: one}, dense={}, lexical={one.chunk.chunk_id: 7.0})
    fused, record = fuse(found, asked("tents"), rrf_k=60)
    signals = fused[0].signals
    assert (signals.dense_rank, signals.dense_score) == (None, None)
    assert (signals.lexical_rank, signals.lexical_score) == (1, 7.0)
    assert signals.fused_score == fused[0].score == pytest.approx(1 / 61)
    assert record.count == 1


@pytest.mark.parametrize("mode", [Mode.HYBRID, Mode.LEXICAL])
async def test_the_passage_with_the_exact_code_is_first(mode: Mode) -> None:
    world = World()
    for code in range(1001, 1061):
        world.add(f"E-{code}", f"Fault E-{code} stops the drive of an axis until it is cleared.")
    for code in (1001, 1034, 1043, 1060):
        assert names(await world.search(f"what is e{code}?", mode=mode))[0] == f"E-{code}"


def test_the_exact_code_is_first_even_if_both_legs_put_it_last() -> None:
    right, wrong = candidate("right", text="E-1042: overcurrent."), candidate("wrong")
    order = {wrong.chunk.chunk_id: 0.9, right.chunk.chunk_id: 0.1}
    found = Found(
        candidates={c.chunk.chunk_id: c for c in (wrong, right)}, dense=order, lexical=order
    )
    fused, record = fuse(found, asked("What is e1042?"), rrf_k=60)
    assert [c.document.uri for c in fused] == ["right", "wrong"]
    assert record.detail["exact_identifier"] == 1
    dense_only = replace(asked("What is e1042?"), lane=frozenset())
    assert [c.document.uri for c in fuse(found, dense_only, rrf_k=60)[0]] == ["wrong", "right"]


def test_a_passage_about_the_code_stands_before_those_that_mention_it() -> None:
    mentions = candidate("mentions", text="If E-1017 is shown as well, repair that first.")
    table = candidate("table", text="E-1017 | field service only | never on site")
    about = candidate("about", text="The encoder is silent.", header="E-1017 Encoder signal lost")
    order = {c.chunk.chunk_id: -float(n) for n, c in enumerate((mentions, table, about))}
    found = Found(
        candidates={c.chunk.chunk_id: c for c in (mentions, table, about)},
        dense=order,
        lexical=order,
    )
    fused, _ = fuse(found, asked("E-1017"), rrf_k=60)
    assert [c.document.uri for c in fused] == ["about", "mentions", "table"]
    both = candidate("both", text="E-1017 and E-1042 together mean a cut cable.")
    found = Found(
        candidates={c.chunk.chunk_id: c for c in (about, both)},
        dense={about.chunk.chunk_id: 0.9, both.chunk.chunk_id: 0.1},
        lexical={},
    )
    fused, _ = fuse(found, asked("E-1017 with E-1042"), rrf_k=60)
    assert [c.document.uri for c in fused] == ["both", "about"]


@pytest.mark.parametrize("fuses", [True, False])
async def test_the_reranker_cannot_push_the_exact_code_down(fuses: bool) -> None:
    fused = [candidate("right", text="E-1042: overcurrent."), candidate("b"), candidate("c")]
    ranked = await reranked(fused, [0.0, 0.5, 0.9], fuses=fuses, question="What is E-1042?")
    assert ranked[0].document.uri == "right"


# -------------------------------------------------------------------------------------- rerank


async def test_scores_of_a_cross_encoder_decide_alone() -> None:
    fused = [candidate(f"d{n}") for n in range(4)]
    ranked = await reranked(fused, [0.1, -7.0, 12.5, 0.2], fuses=False)
    assert positions(ranked, fused) == [2, 3, 0, 1]
    assert [c.score for c in ranked] == [12.5, 0.2, 0.1, -7.0]
    assert [c.signals.rerank_score for c in ranked] == [12.5, 0.2, 0.1, -7.0]


async def test_a_reranker_that_fuses_is_one_more_list_of_the_first_stage() -> None:
    fused = [replace(candidate(f"d{n}"), score=1 / (61 + n)) for n in range(4)]
    ranked = await reranked(fused, [0.1, 0.2, 0.3, 0.9], fuses=True)
    # first stage 1 2 3 4, reranker 4 3 2 1: the outer two tie, and so do the inner two
    assert positions(ranked, fused) == [0, 3, 1, 2]
    assert ranked[0].score == pytest.approx(1 / 61 + 1 / 64)


@pytest.mark.parametrize("fuses", [True, False])
async def test_equal_scores_keep_the_order_of_the_first_stage(fuses: bool) -> None:
    fused = [candidate(f"d{n}") for n in range(5)]
    assert positions(await reranked(fused, [0.5] * 5, fuses=fuses), fused) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("count", [0, 1, 100])
@pytest.mark.parametrize("fuses", [True, False])
async def test_any_number_of_candidates_is_reranked_without_loss(count: int, fuses: bool) -> None:
    fused = [candidate(f"d{n}") for n in range(count)]
    ranked = await reranked(fused, [float(-n) for n in range(min(count, 50))], fuses=fuses)
    assert positions(ranked, fused) == list(range(count))


async def test_candidates_below_the_depth_stay_behind_in_their_order() -> None:
    fused = [candidate(f"d{n}") for n in range(6)]
    ranked = await reranked(fused, [1.0, 2.0, 3.0], fuses=False, depth=3)
    assert positions(ranked, fused) == [2, 1, 0, 3, 4, 5]
    assert ranked[5].signals.rerank_score is None


async def reranked(
    fused: Sequence[Candidate],
    values: list[float],
    *,
    fuses: bool,
    depth: int = 50,
    question: str = "tents",
) -> list[Candidate]:
    async def model(question: str, passages: Sequence[str]) -> Scores:
        return Scores(values=values, fuses=fuses)

    run = Run(Deadline(30))
    ranked, _ = await rerank(fused, asked(question), model=model, depth=depth, rrf_k=60, run=run)
    assert run.degraded == []
    return ranked


def positions(ranked: Sequence[Candidate], fused: Sequence[Candidate]) -> list[int]:
    before = [c.chunk.chunk_id for c in fused]
    return [before.index(c.chunk.chunk_id) for c in ranked]


# ------------------------------------------------------------------------------------ evidence


async def test_evidence_is_numbered_from_the_best() -> None:
    evidence, record = await chosen([candidate("a"), candidate("b")])
    assert [(e.label, e.document.uri) for e in evidence] == [("S1", "a"), ("S2", "b")]
    assert record.count == 2


async def test_the_lowest_sources_are_dropped_when_the_budget_is_full() -> None:
    many = [candidate(f"d{n}", text=f"word{n} " * 100) for n in range(5)]
    evidence, record = await chosen(many, tokens=300)
    assert [e.document.uri for e in evidence] == ["d0", "d1"]
    assert record.detail["tokens"] <= 300


async def test_there_are_no_more_sources_than_asked_for() -> None:
    assert len((await chosen([candidate(f"d{n}") for n in range(9)], sources=3))[0]) == 3


async def test_a_copy_with_a_word_changed_is_no_second_source() -> None:
    pair = [candidate(name, text=f"{LONG}{end}") for name, end in (("a", "Ask."), ("b", "Call."))]
    assert [e.document.uri for e in (await chosen(pair))[0]] == ["a"]


async def test_an_exact_copy_is_no_second_source() -> None:
    copy = "Time off is 25 days a year. Ask your lead two weeks before."
    same = [candidate(name, text=copy, header="Time off") for name in ("wiki", "shared-drive")]
    evidence, record = await chosen([*same, candidate("other")])
    assert [e.document.uri for e in evidence] == ["wiki", "other"]
    assert record.detail["near_duplicates"] == 1


LONG = " ".join(f"word{chr(97 + n % 26)}{chr(97 + n // 26)}" for n in range(200)) + ". "
"""So long that one other word leaves nearly all three-word runs the same."""


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ((f"{LONG}Parents get 20 weeks.", ""), (f"{LONG}Parents get 16 weeks.", "")),
        ((f"{LONG}It is covered.", ""), (f"{LONG}It is not covered.", "")),
        ((f"{LONG}The same words.", "Canada"), (f"{LONG}The same words.", "Germany")),
        ((f"{LONG}E-1042 stops it.", ""), (f"{LONG}E-1024 stops it.", "")),
    ],
    ids=["number", "negation", "header", "code"],
)
async def test_passages_that_differ_where_it_counts_are_both_kept(
    one: tuple[str, str], other: tuple[str, str]
) -> None:
    pair = [
        candidate(name, text=text, header=header)
        for name, (text, header) in (("a", one), ("b", other))
    ]
    evidence, _ = await chosen(pair)
    assert len(evidence) == 2


async def test_a_short_passage_is_read_with_its_neighbours_of_the_section() -> None:
    world = World()
    world.add("page", "First step.", "Second step.", "Third step.", section=("Steps",))
    world.generator = recording = Recorder()
    await world.ask("Second step?", top_k=1)
    assert recording.evidence[0].text == "First step.\n\nSecond step.\n\nThird step."


async def test_neighbours_of_another_section_or_used_already_are_left_out() -> None:
    chunks = [chunk_of("d", n, f"text {n}", section=("A",) if n < 2 else ("B",)) for n in range(3)]
    middle = Candidate(chunk=replace(chunks[1], row_id="r1"), document=document("d"))
    around = [replace(chunk, row_id=f"r{n}") for n, chunk in enumerate(chunks)]
    evidence, _ = await chosen([middle], around=around)
    assert evidence[0].text == "text 0\n\ntext 1"
    first = Candidate(chunk=around[0], document=document("d"))
    evidence, _ = await chosen([middle, first], around=around)
    assert [e.text for e in evidence] == ["text 1", "text 0"]


async def test_pages_cover_the_neighbours_that_were_added() -> None:
    chunks = [
        replace(chunk_of("d", n, f"text {n}", pages=(n + 1, n + 1)), row_id=f"r{n}")
        for n in range(3)
    ]
    middle = Candidate(chunk=chunks[1], document=document("d"))
    evidence, _ = await chosen([middle], around=chunks)
    assert evidence[0].chunk.pages == (1, 3)


async def chosen(
    ranked: Sequence[Candidate],
    *,
    sources: int = 8,
    tokens: int = 10_000,
    around: Sequence[Chunk] = (),
    widen: Widen = "short",
) -> Any:
    async def count_tokens(texts: Sequence[str]) -> list[int]:
        return [len(text.split()) for text in texts]

    async def near(chunk: Chunk, reach: int) -> list[Chunk]:
        return [other for other in around if abs(other.ordinal - chunk.ordinal) <= reach]

    budget = Budget(sources=sources, tokens=tokens, count=count_tokens)
    chosen, record = await choose(ranked, budget=budget, around=near, widen=widen)
    return list(chosen.evidence), record


class Recorder:
    """A generator that keeps the evidence it was given."""

    name = "recorder"

    def __init__(self) -> None:
        self.evidence: tuple[Evidence, ...] = ()

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        return [len(text.split()) for text in texts]

    def count_prompt(self, messages: Sequence[Message]) -> int:
        return 0

    async def stream(self, prompt: Any) -> Any:
        self.evidence = prompt.evidence
        return
        yield


# ------------------------------------------------------------------------------------- helpers


def document(name: str, **facts: Any) -> Document:
    return Document(
        doc_id=name, source="t", address=name, uri=name, **{"title": name, "revision": "r", **facts}
    )


def candidate(name: str, *, text: str = "", header: str = "") -> Candidate:
    chunk = chunk_of(name, 0, text or f"the text of {name}", header=header)
    return Candidate(chunk=replace(chunk, row_id=name), document=document(name))


def asked(question: str) -> Any:
    return ask(request(question), World().settings.retrieval)[0]
