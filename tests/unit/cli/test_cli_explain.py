"""What a person reads of an explanation."""

from __future__ import annotations

import re
from typing import Any

import pytest

from quarry.cli.render_explain import _LOST, _WHY, explanation_lines
from quarry.models.extractive import ExtractiveGenerator
from serve.http.explanations import explanation_json
from tests.unit.serve.serve_world import Scripted, World, request


async def text_of(world: World, question: str, *expect: str, **options: Any) -> str:
    pieces = [(phrase,) for phrase in expect]
    explanation = await world.engine().explain(request(question, **options), pieces)
    return "\n".join(explanation_lines(explanation_json(explanation), 0.1))


@pytest.fixture
def world() -> World:
    world = World(generator=ExtractiveGenerator())
    world.add("returns.md", "Used tents are returned for store credit.", title="Returns")
    world.add("faults.md", "E-1042 is an overcurrent of axis 2.", title="Faults")
    return world


async def test_the_fate_of_each_expected_phrase_is_one_sentence(world: World) -> None:
    text = await text_of(world, "What are used tents returned for?", "store credit", "a refund")
    assert "Expected “store credit”: not lost.\n  It was cited as S1." in text
    assert "Expected “a refund”: lost at documents.\n  No document that may be read says" in text


async def test_each_stage_stands_with_its_passages_in_order(world: World) -> None:
    text = await text_of(world, "What are used tents returned for?")
    stages = "question embed dense lexical catalog fuse evidence prompt generate check".split()
    places = [text.index(f"\n{stage}: ") for stage in stages]
    assert places == sorted(places)
    fused = text[text.index("\nfuse: ") : text.index("\nevidence: ")]
    assert fused.index("Returns  returns.md") < fused.index("Faults  faults.md")


async def test_the_prompt_tells_which_sources_went_in_and_how_long_they_are(world: World) -> None:
    text = await text_of(world, "What are used tents returned for?")
    prompt = text[text.index("\nprompt: ") : text.index("\ngenerate: ")]
    assert re.search(r"^ +1  S1  \d+ tokens  Returns  returns.md$", prompt, re.MULTILINE)


async def test_sentences_to_doubt_are_shown(world: World) -> None:
    world.generator = Scripted("Used tents give store credit [S1]. Pandas eat bamboo.")
    text = await text_of(world, "used tents")
    assert "Check these sentences\n  “Pandas eat bamboo.”\n    names no source that says so" in text


async def test_what_was_left_out_stands_with_the_reason(world: World) -> None:
    world.add("new.md", "Tents, new.", title="New rules", series="S", version="2")
    world.add("old.md", "Tents, old.", title="Old rules", series="S", version="1")
    text = await text_of(world, "tents")
    assert "left out: Old rules  old.md: another version is current" in text


async def test_long_lists_are_shortened_and_say_so(world: World) -> None:
    for number in range(20):
        world.add(f"d{number}", f"tents of kind {number}")
    assert "… and 12 more; --json has them all" in await text_of(world, "tents")


async def test_terminal_control_characters_of_documents_are_not_obeyed(world: World) -> None:
    world.add("evil.md", "tents", title="evil\x1b[2J")
    assert "\x1b" not in await text_of(world, "tents \x1b[2J", "x\x1b[2J")


def test_every_reason_has_its_sentence() -> None:
    from quarry.access.check import Verdict
    from serve.answering import evidence
    from serve.explaining import explain
    from serve.finding import select

    passed_over = {v.value for v in Verdict} - {"admitted", "unreadable"}
    left_out = {
        evidence.NEAR_DUPLICATE,
        evidence.NO_ROOM,
        select.BELOW_THRESHOLD,
        select.NOT_SCORED,
        select.SAME_SECTION,
    }
    assert set(_WHY) == passed_over | left_out
    reasons = {
        explain.NOT_FOUND,
        explain.SPLIT,
        explain.NOT_RETRIEVED,
        explain.BELOW_DEPTH,
        explain.BELOW_SOURCES,
        explain.LEFT_OUT,
        explain.NOT_CITED,
        explain.REFUSED,
        explain.CITED,
    }
    assert set(_LOST) == passed_over | left_out | reasons
