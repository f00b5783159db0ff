"""An explanation names what each stage did, and the first one that lost an expected passage."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from typing import Any

import pytest

from quarry.explanation import Explanation, Lost
from quarry.models.fakes import FakeReranker
from quarry.records import Mode
from quarry.settings import Settings
from quarry.text import REFUSAL
from serve.http.explanations import ExplainOut, explanation_json
from tests.unit.serve.serve_world import OneOf, Scripted, World, request

CITES_FIRST = "Store credit [S1]."


@pytest.fixture
def world() -> World:
    world = World(generator=Scripted(CITES_FIRST))
    world.add("returns", "Used tents are returned for store credit.")
    world.add("faults", "E-1042 is an overcurrent of axis 2.")
    return world


def with_settings(world: World, **sections: Any) -> World:
    return replace(world, settings=Settings.model_validate(sections))


async def explained(world: World, question: str, *expect: str, **options: Any) -> Explanation:
    pieces = [(phrase,) for phrase in expect]
    return await world.engine().explain(request(question, **options), pieces)


async def lost(world: World, phrase: str, question: str = "used tents", **options: Any) -> Any:
    (piece,) = (await explained(world, question, phrase, **options)).expected
    return piece.lost, piece.reason


# -------------------------------------------------------------------------------------- stages


async def test_an_explanation_is_of_the_answer_that_people_get(world: World) -> None:
    world.generator = Scripted(CITES_FIRST)
    explanation = await explained(world, "used tents")
    answer = await world.ask("used tents")
    assert (explanation.answer.text, explanation.answer.citations) == (
        answer.text,
        answer.citations,
    )
    stages = [stage.record.stage for stage in explanation.stages]
    assert stages == [record.stage for record in answer.trace]
    assert stages[-3:] == ["prompt", "generate", "check"]


async def test_each_stage_lists_what_left_it_with_rank_and_score(world: World) -> None:
    world.reranker = OneOf(FakeReranker(), score=lambda _, passages: [0.1, 0.9][: len(passages)])
    explanation = await explained(world, "used tents")
    items = {s.record.stage: s.items for s in explanation.stages}
    titles = {
        stage: [explanation.passages[item.chunk_id].document.uri for item in listed]
        for stage, listed in items.items()
    }
    assert titles["dense"] == titles["fuse"] == ["returns", "faults"]
    assert titles["lexical"] == ["returns"]
    assert titles["rerank"] == titles["evidence"] == ["faults", "returns"]
    assert [item.before for item in items["rerank"]] == [2, 1]
    assert [item.score for item in items["rerank"]] == [0.9, 0.1]
    assert [item.label for item in items["evidence"]] == ["S1", "S2"]
    assert items["dense"][0].score > items["dense"][1].score
    assert (
        items["lexical"][0].score
        == explanation.passages[items["lexical"][0].chunk_id].signals.lexical_score
    )


async def test_the_prompt_is_shown_as_the_generator_read_it(world: World) -> None:
    explanation = await explained(world, "used tents")
    assert explanation.prompt == world.generator.prompts[0].messages


async def test_a_refusal_for_want_of_evidence_is_explained_too() -> None:
    explanation = await explained(World(), "used tents", "store credit")
    assert (explanation.answer.text, explanation.prompt) == (REFUSAL, ())
    assert explanation.expected[0].lost is Lost.DOCUMENTS


async def test_near_duplicates_name_the_passage_that_stands_for_them(world: World) -> None:
    world.add("copy", "Used tents are returned for store credit.", header="returns")
    explanation = await explained(world, "used tents")
    (evidence,) = [s for s in explanation.stages if s.record.stage == "evidence"]
    (left_out,) = evidence.left_out
    assert left_out.reason == "near_duplicate"
    kept = {explanation.passages[i.chunk_id].document.uri for i in evidence.items}
    pair = {explanation.passages[key].document.uri for key in (left_out.chunk_id, left_out.beside)}
    assert pair == {"returns", "copy"} and len(kept & pair) == 1


@pytest.fixture
def read_whole(world: World) -> World:
    """Everything is read, and two pages that no leg finds say the same."""
    whole = with_settings(world, retrieval={"select": {"long_context": True}})
    for name in ("fox", "copy"):
        whole.add(name, "The quick brown fox jumps over the lazy dog at noon.", header="fox")
    return whole


async def test_every_passage_that_is_named_is_shown_also_where_everything_is_read(
    read_whole: World,
) -> None:
    explanation = await explained(read_whole, "used tents", mode=Mode.LEXICAL)
    named = {
        key
        for stage in explanation.stages
        for each in (*stage.items, *stage.left_out)
        for key in (each.chunk_id, getattr(each, "beside", ""))
        if key
    }
    assert {explanation.passages[key].document.uri for key in named} >= {"fox", "copy"}


async def test_a_duplicate_that_no_leg_found_was_left_out_where_everything_is_read(
    read_whole: World,
) -> None:
    explanation = await explained(read_whole, "used tents", "lazy dog", mode=Mode.LEXICAL)
    places = {place.lost: place.reason for place in explanation.expected[0].places}
    assert places == {Lost.ANSWER: "not_cited", Lost.EVIDENCE: "near_duplicate"}


async def test_the_prompt_lists_its_sources_with_their_tokens(world: World) -> None:
    world.generator = OneOf(Scripted(CITES_FIRST), count_prompt=_one_source_fits)
    explanation = await explained(world, "used tents")
    (prompt,) = [stage for stage in explanation.stages if stage.record.stage == "prompt"]
    assert [item.label for item in prompt.items] == ["S1"]
    text = explanation.prompt[1].content
    source = text[text.index("<source id=") : text.index("</sources>")]
    assert [item.tokens for item in prompt.items] == [len(source.split())]
    assert [left_out.reason for left_out in prompt.left_out] == ["no_room"]


def _one_source_fits(messages: Any) -> int:
    return 100 + 3900 * max(0, messages[1].content.count("<source id=") - 1)


async def test_the_json_has_the_documented_shape(world: World) -> None:
    body = explanation_json(await explained(world, "used tents", "store credit", "nowhere"))
    assert ExplainOut.model_validate(body).model_dump() == body


# -------------------------------------------------------------------------------- where it is lost


async def test_what_was_cited_is_lost_nowhere(world: World) -> None:
    assert await lost(world, "STORE  credit") == (None, "cited")


async def test_what_no_document_says(world: World) -> None:
    assert await lost(world, "a full refund") == (Lost.DOCUMENTS, "not_found")


async def test_what_may_not_be_read_is_told_like_what_does_not_exist(world: World) -> None:
    world.add("severance", "Severance is three weeks.", acl=("hr",))
    forbidden = await explained(world, "severance", "three weeks")
    absent = await explained(world, "severance", "four weeks")
    assert replace(forbidden.expected[0], phrases=()) == replace(absent.expected[0], phrases=())
    assert await lost(world, "three weeks", "severance", groups=["hr"]) != (
        Lost.DOCUMENTS,
        "not_found",
    )


async def test_what_a_document_says_across_the_end_of_a_chunk(world: World) -> None:
    world.add("rental", "Tents are rented for", "fourteen days at most.")
    assert await lost(world, "rented for fourteen days") == (Lost.CHUNKS, "split")


async def test_what_neither_leg_found(world: World) -> None:
    for number in range(5):
        world.add(f"noise{number}", "used tents " * 3)
    far = with_settings(world, retrieval={"candidates": 2, "top_k": 1})
    assert await lost(far, "overcurrent of axis", top_k=1) == (Lost.CANDIDATES, "not_retrieved")


@pytest.mark.parametrize(
    ("facts", "options", "reason"),
    [
        ({"series": "S", "version": "1"}, {}, "superseded"),
        ({"effective": date(2999, 1, 1)}, {}, "superseded"),
        ({"status": "draft"}, {}, "not_current"),
        ({"metadata": {"region": "norway"}}, {"filter": "region = sweden"}, "filtered"),
    ],
)
async def test_what_the_catalog_check_passed_over(
    world: World, facts: dict[str, Any], options: dict[str, Any], reason: str
) -> None:
    from quarry.records import Status

    if "status" in facts:
        facts = {**facts, "status": Status(facts["status"])}
    world.add("new", "Used tents of the new version.", series="S", version="2")
    world.add("old", "Used tents go to the museum.", **facts)
    assert await lost(world, "the museum", **options) == (Lost.CATALOG, reason)


async def test_rows_that_the_catalog_passed_over_are_listed_with_the_reason(world: World) -> None:
    world.add("new", "Used tents of the new version.", series="S", version="2")
    world.add("old", "Used tents of the old version.", series="S", version="1")
    explanation = await explained(world, "used tents")
    (catalog,) = [s for s in explanation.stages if s.record.stage == "catalog"]
    told = [(explanation.passages[o.chunk_id].document.uri, o.reason) for o in catalog.left_out]
    assert told == [("old", "superseded")]


async def test_what_ranked_too_low_after_fusion(world: World) -> None:
    few = with_settings(world, retrieval={"evidence_chunks": 1})
    assert await lost(few, "overcurrent") == (Lost.FUSE, "below_sources")


async def test_what_the_reranker_never_saw(world: World) -> None:
    shallow = with_settings(world, retrieval={"evidence_chunks": 1}, reranker={"depth": 1})
    shallow.reranker = FakeReranker()
    assert await lost(shallow, "overcurrent") == (Lost.FUSE, "below_depth")


async def test_what_the_reranker_put_too_low(world: World) -> None:
    few = with_settings(world, retrieval={"evidence_chunks": 1})
    few.reranker = OneOf(FakeReranker(), score=lambda _, passages: [0.1, 0.9][: len(passages)])
    assert await lost(few, "store credit") == (Lost.RERANK, "below_sources")


async def test_what_had_no_room(world: World) -> None:
    world.add("long", "used tents " * 200 + "are long")
    tight = with_settings(world, generator={"context_tokens": 512, "max_tokens": 16})
    stage, reason = await lost(tight, "are long")
    assert (stage, reason) == (Lost.EVIDENCE, "no_room")


async def test_what_the_answer_did_not_cite(world: World) -> None:
    assert await lost(world, "overcurrent") == (Lost.ANSWER, "not_cited")


async def test_what_the_generator_refused_to_answer_from(world: World) -> None:
    world.generator = Scripted(REFUSAL)
    assert await lost(world, "store credit") == (Lost.ANSWER, "refused")


async def test_a_phrase_in_a_neighbour_that_was_added_counts_as_read(world: World) -> None:
    world.add("steps", "First the tents.", "Then wipe the frame.", section=("Steps",))
    world.generator = Scripted("First the tents, then the frame [S1].")
    narrow = with_settings(world, retrieval={"evidence_chunks": 1})
    assert await lost(narrow, "wipe the frame", "first tents") == (None, "cited")


async def test_the_place_that_came_furthest_decides_between_several(world: World) -> None:
    world.add("new", "Tents: the museum takes used ones.", series="S", version="2")
    world.add("old", "Used tents: the museum takes them.", series="S", version="1")
    explanation = await explained(world, "used tents", "the museum takes")
    (piece,) = explanation.expected
    assert piece.lost is Lost.ANSWER
    assert [place.lost for place in piece.places] == [Lost.ANSWER, Lost.CATALOG]


async def test_any_of_several_phrases_marks_a_piece(world: World) -> None:
    explanation = await world.engine().explain(
        request("used tents"), [("no such words", "store credit"), ("overcurrent",)]
    )
    assert [piece.reason for piece in explanation.expected] == ["cited", "not_cited"]


async def test_a_walk_that_is_cut_short_by_the_time_says_so(world: World) -> None:
    clock = OneOf(world.stores.catalog, scan=_slow(world.stores.catalog.scan))
    world.replace_store(catalog=clock)
    (piece,) = (await explained(world, "used tents", "no such words", deadline_s=0.6)).expected
    assert (piece.lost, piece.whole) == (Lost.DOCUMENTS, False)


def _slow(scan: Any) -> Any:
    import time

    def full_page(**options: Any) -> Any:
        time.sleep(0.1)
        row = scan(**{**options, "after": ""})[0]
        return [row] * options["limit"]

    return full_page


async def test_the_mode_and_the_filter_hold_for_the_explanation_too(world: World) -> None:
    explanation = await explained(world, "used tents", mode=Mode.LEXICAL)
    assert "dense" not in [stage.record.stage for stage in explanation.stages]
