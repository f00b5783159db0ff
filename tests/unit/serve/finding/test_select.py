"""Options that choose among ranked passages: off unless set, named in the trace when they are."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from quarry.calibration import Calibration, load_calibration, reranker_name
from quarry.errors import ConfigError, StoreUnavailable
from quarry.explanation import Lost
from quarry.models.extractive import ExtractiveGenerator
from quarry.models.fakes import FakeReranker
from quarry.records import Answer, SearchResult
from quarry.settings import Settings, load_settings
from serve.finding.select import mmr
from tests.unit.serve.serve_world import OneOf, World, failing, names, request

DOWN = StoreUnavailable("The store cannot be reached; check that it runs.")


def world_with(select: dict[str, Any], **sections: Any) -> World:
    retrieval = {**sections.pop("retrieval", {}), "select": select}
    return World(settings=Settings.model_validate({"retrieval": retrieval, **sections}))


def record(result: SearchResult | Answer, stage: str) -> Any:
    return next((each for each in result.trace if each.stage == stage), None)


async def test_nothing_is_selected_unless_an_option_is_set() -> None:
    world = World()
    world.add("a", "tents")
    assert record(await world.search("tents"), "select") is None


# ----------------------------------------------------------------------------------------- mmr


def unit(*rows: list[float]) -> Any:
    matrix = np.array(rows, np.float32)
    return matrix / np.linalg.norm(matrix, axis=1, keepdims=True)


def test_with_all_weight_on_relevance_the_order_stands() -> None:
    assert mmr([3.0, 2.0, 1.0], unit([1, 0], [1, 0], [0, 1]), 1.0) == [0, 1, 2]


def test_a_passage_like_one_before_it_makes_way_for_another() -> None:
    """By hand, weight 0.5: after 0, passage 1 gains 0.5·0.9 − 0.5·1, passage 2 gains 0."""
    vectors = unit([1, 0], [1, 0], [0, 1])
    assert mmr([1.0, 0.9, 0.0], vectors, 0.5) == [0, 2, 1]


def test_equal_gains_keep_their_order_and_nothing_is_lost() -> None:
    assert mmr([1.0, 1.0, 1.0], unit([1, 0], [1, 0], [1, 0]), 0.5) == [0, 1, 2]
    assert mmr([], np.zeros((0, 4), np.float32), 0.5) == []
    assert mmr([7.0], unit([1, 0]), 0.0) == [0]


async def test_mmr_lifts_what_says_something_else() -> None:
    world = world_with({"mmr": 0.3})
    world.add("one", "used tents go back for credit")
    world.add("two", "used tents go back for credit today")
    world.add("other", "tents wear out")
    plain = replace(world, settings=Settings.model_validate({}))
    assert names(await plain.search("used tents go back")) == ["one", "two", "other"]
    found = await world.search("used tents go back")
    assert names(found) == ["one", "other", "two"]
    assert record(found, "select").detail == {"mmr": 0.3}


async def test_mmr_over_nothing_gives_nothing() -> None:
    assert (await world_with({"mmr": 0.5}).search("tents")).candidates == ()


async def test_mmr_leaves_exact_codes_in_front() -> None:
    world = world_with({"mmr": 0.0})
    for name in ("one", "two"):
        world.add(name, f"E-1042 is an overcurrent, {name}")
    world.add("other", "tents wear out")
    assert set(names(await world.search("E-1042 tents"))[:2]) == {"one", "two"}


async def test_without_the_stored_vectors_the_order_stands_and_the_result_says_so() -> None:
    world = world_with({"mmr": 0.0})
    world.add("one", "used tents")
    world.add("two", "used tents as well")
    world.replace_store(vectors=OneOf(world.stores.vectors, fetch=failing(DOWN)))
    found = await world.search("used tents")
    assert names(found) == ["one", "two"]
    assert found.degraded == ("mmr",)


# ------------------------------------------------------------------------------- one a section


async def test_the_best_passage_of_a_section_stands_for_it() -> None:
    world = world_with({"one_per_section": True})
    world.add("page", "used tents go back", "tents", section=("Returns",))
    world.add("other", "tents burn", section=("Returns",))
    found = await world.search("used tents go back")
    assert names(found) == ["page", "other"]
    assert record(found, "select").count == 2
    explanation = await world.engine().explain(request("used tents go back"))
    (stage,) = [s for s in explanation.stages if s.record.stage == "select"]
    (left_out,) = stage.left_out
    assert left_out.reason == "same_section"
    assert explanation.passages[left_out.beside].chunk.text == "used tents go back"


async def test_passages_under_no_heading_are_of_no_section() -> None:
    world = world_with({"one_per_section": True})
    world.add("book", *(f"chapter text {n} of tents" for n in range(30)))
    found = await world.search("tents", top_k=10)
    assert len(found.candidates) == 10


async def test_a_second_code_of_the_question_stays_though_it_is_of_the_same_section() -> None:
    world = world_with({"one_per_section": True})
    codes = ("E-1001 means a red lamp.", "E-1042 means a blue lamp.", "Other lamps mean nothing.")
    world.add("codes", *codes, section=("Codes",))
    found = await world.search("What do E-1001 and E-1042 mean?")
    assert {candidate.chunk.text for candidate in found.candidates} == set(codes[:2])


# ----------------------------------------------------------------------------------- threshold


@pytest.fixture
def calibrated(tmp_path: Path) -> World:
    """Rerank scores from 0 to 1, worth 0.5 at a score of 0.5."""
    path = tmp_path / "calibration.json"
    settings = Settings.model_validate({"reranker": {"kind": "fake"}})
    calibration(settings).save(path)
    world = world_with({"threshold": 0.5, "calibration_file": path}, reranker={"kind": "fake"})
    world.reranker = FakeReranker()
    world.add("good", "used tents")
    world.add("half", "used boots of another kind")
    world.add("poor", "customs duties")
    return world


def calibration(settings: Settings) -> Calibration:
    return Calibration(
        reranker=reranker_name(settings),
        slope=20.0,
        intercept=-10.0,
        questions=10,
        evidence=10,
        others=10,
        made_at=datetime(2026, 11, 30, tzinfo=UTC),
    )


async def test_passages_below_the_threshold_are_left_out(calibrated: World) -> None:
    found = await calibrated.search("used tents")
    assert names(found) == ["good", "half"]
    assert record(found, "select").detail == {"threshold": 0.5}


async def test_below_the_threshold_nothing_is_answered(calibrated: World) -> None:
    calibrated.generator = ExtractiveGenerator()
    answer = await calibrated.ask("parental leave")
    assert answer.status == "refused"
    assert answer.degraded == ()


async def test_an_exact_code_needs_no_score(calibrated: World) -> None:
    calibrated.add("fault", "E-1042 is an overcurrent")
    assert names(await calibrated.search("please tell me about E-1042 now")) == ["fault"]


async def test_without_rerank_scores_there_is_no_threshold(calibrated: World) -> None:
    calibrated.reranker = OneOf(FakeReranker(), score=failing(DOWN))
    found = await calibrated.search("used tents")
    assert len(found.candidates) == 3
    assert found.degraded == ("rerank", "threshold")


async def test_what_the_threshold_took_is_explained(calibrated: World) -> None:
    explanation = await calibrated.engine().explain(request("used tents"), [("customs duties",)])
    assert (explanation.expected[0].lost, explanation.expected[0].reason) == (
        Lost.SELECT,
        "below_threshold",
    )


def test_a_threshold_without_a_calibration_says_how_to_make_one(tmp_path: Path) -> None:
    path = tmp_path / "quarry.yaml"
    path.write_text("retrieval: {select: {threshold: 0.1}}")
    with pytest.raises(ConfigError, match="quarry calibrate QUESTIONS"):
        load_settings(path, {})


def test_a_threshold_without_a_reranker_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "quarry.yaml"
    path.write_text(
        "retrieval: {select: {threshold: 0.1, calibration_file: c.json}}\nreranker: {kind: none}"
    )
    with pytest.raises(ConfigError, match="needs a reranker"):
        load_settings(path, {})


def test_a_calibration_holds_for_its_reranker_wherever_its_folder_is() -> None:
    places = ("/models/ce", "/elsewhere/ce")
    named = [Settings.model_validate(cross_encoder(place)) for place in places]
    assert {reranker_name(settings) for settings in named} == {"cross_encoder:ce"}
    hub = Settings.model_validate(cross_encoder("BAAI/bge-reranker-base"))
    assert reranker_name(hub) == "cross_encoder:BAAI/bge-reranker-base"


def cross_encoder(model: str) -> dict[str, Any]:
    return {"reranker": {"kind": "cross_encoder", "model": model}}


def test_the_calibration_file_is_found_beside_the_settings(tmp_path: Path) -> None:
    path = tmp_path / "quarry.yaml"
    path.write_text("retrieval: {select: {threshold: 0.1, calibration_file: c.json}}")
    settings = load_settings(path, {})
    calibration(settings).save(tmp_path / "c.json")
    assert load_calibration(settings) == calibration(settings)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "cannot be read"),
        ("{}", "is no calibration"),
        ("\xff", "is no calibration"),
        (json.dumps({"threshold": 0.5}), "is no calibration"),
    ],
)
def test_a_calibration_that_cannot_be_used_is_said(
    tmp_path: Path, content: str | None, said: str
) -> None:
    path = tmp_path / "c.json"
    if content is not None:
        path.write_text(content, encoding="latin-1")
    settings = Settings.model_validate(
        {"retrieval": {"select": {"threshold": 0.1, "calibration_file": path}}}
    )
    with pytest.raises(ConfigError, match=said):
        load_calibration(settings)


def test_a_calibration_of_another_reranker_does_not_hold(tmp_path: Path) -> None:
    path = tmp_path / "c.json"
    calibration(Settings.model_validate({"reranker": {"kind": "fake"}})).save(path)
    settings = Settings.model_validate(
        {"retrieval": {"select": {"threshold": 0.1, "calibration_file": path}}}
    )
    with pytest.raises(ConfigError, match="does not hold for late_interaction"):
        load_calibration(settings)


def test_probabilities_stay_within_0_and_1_whatever_the_score() -> None:
    curve = calibration(Settings())
    assert curve.probability(-1e9) < 1e-100
    assert curve.probability(1e9) == 1.0
    assert curve.probability(0.5) == 0.5


async def test_one_passage_a_section_still_gives_as_many_as_were_asked_for() -> None:
    world = world_with({"one_per_section": True})
    for number in range(30):
        texts = [f"motor fault {number} {part}" for part in "abcd"]
        world.add(f"page-{number}", *texts, section=("Faults",))
    found = await world.search("motor fault", top_k=20)
    assert len(found.candidates) == len({c.document.doc_id for c in found.candidates}) == 20
