"""What happens when parts fail or do not make it in time."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from pydantic import SecretStr
from structlog.testing import capture_logs

from quarry.errors import DeadlineExceeded, ModelError, Overloaded, StoreUnavailable
from quarry.models.extractive import ExtractiveGenerator
from quarry.models.fakes import FakeEmbedder, FakeReranker
from quarry.models.openai import OpenAIGenerator
from quarry.records import AnswerStatus, Mode
from quarry.settings import GeneratorSettings, Settings
from quarry.text import REFUSAL
from serve.answering.generate import Delta
from serve.index import impatient
from serve.results import Final
from serve.stage import Deadline, Threads
from tests.unit.serve.serve_world import OneOf, Scripted, World, failing, names, request

DOWN = StoreUnavailable("The store cannot be reached; check that it runs.")
BROKEN = ModelError("The model failed; try again.")


@pytest.fixture
def world() -> World:
    world = World()
    world.add("returns", "Used tents are returned for store credit.")
    world.add("faults", "E-1042 is an overcurrent of axis 2.")
    return world


@pytest.fixture
def hang() -> Iterator[Any]:
    """A call that does not return before the test ends."""
    end = threading.Event()

    def wait(*_args: Any, **_kwargs: Any) -> Any:
        end.wait(30)
        raise DOWN

    yield wait
    end.set()


# ---------------------------------------------------------------------------------------- legs


async def test_without_the_vector_store_the_words_still_find(world: World) -> None:
    world.replace_store(vectors=OneOf(world.stores.vectors, search=failing(DOWN)))
    found = await world.search("used tents")
    assert names(found)[0] == "returns"
    assert found.degraded == ("dense",)


async def test_without_bm25_the_vectors_still_find(world: World) -> None:
    world.replace_store(text=OneOf(world.stores.text, search=failing(DOWN)))
    found = await world.search("used tents")
    assert names(found)[0] == "returns"
    assert found.degraded == ("lexical",)


@pytest.mark.parametrize("error", [BROKEN, Overloaded("Busy; try later.")])
async def test_without_the_embedder_the_words_still_find(world: World, error: Exception) -> None:
    world.embedder = OneOf(FakeEmbedder(), embed_question=failing(error))
    found = await world.search("used tents")
    assert names(found)[0] == "returns"
    assert found.degraded == ("dense",)


async def test_without_either_leg_the_search_fails(world: World) -> None:
    world.replace_store(
        vectors=OneOf(world.stores.vectors, search=failing(DOWN)),
        text=OneOf(world.stores.text, search=failing(DOWN)),
    )
    with pytest.raises(StoreUnavailable):
        await world.search("used tents")


async def test_a_mode_of_one_leg_does_not_fall_back_to_the_other(world: World) -> None:
    world.replace_store(vectors=OneOf(world.stores.vectors, search=failing(DOWN)))
    with pytest.raises(StoreUnavailable):
        await world.search("used tents", mode=Mode.DENSE)


@pytest.mark.parametrize("method", ["get", "series"])
async def test_without_the_catalogs_word_nothing_is_shown(world: World, method: str) -> None:
    world.add("v1", "tents of version 1", series="S", version="1")
    world.replace_store(catalog=OneOf(world.stores.catalog, **{method: failing(DOWN)}))
    with pytest.raises(StoreUnavailable):
        await world.search("used tents")


async def test_a_leg_that_hangs_is_left_out(world: World, hang: Any) -> None:
    world.replace_store(vectors=OneOf(world.stores.vectors, search=hang))
    found = await world.search("used tents", deadline_s=1.0)
    assert names(found)[0] == "returns"
    assert found.degraded == ("dense",)


async def test_a_leg_that_is_down_is_asked_once(world: World) -> None:
    calls: list[int] = []

    def search(*_args: Any, **_kwargs: Any) -> Any:
        calls.append(1)
        raise DOWN

    for number in range(300):
        world.add(f"v{number}", f"used tents {number}", series="S", version=str(number))
    world.replace_store(vectors=OneOf(world.stores.vectors, search=search))
    await world.search("used tents")
    assert len(calls) == 1


async def test_a_catalog_that_hangs_ends_at_the_deadline(world: World, hang: Any) -> None:
    world.replace_store(catalog=OneOf(world.stores.catalog, get=hang))
    with pytest.raises(DeadlineExceeded):
        await world.search("used tents", deadline_s=1.0)


async def test_a_fault_of_ours_is_not_taken_for_a_store_that_is_down(world: World) -> None:
    world.replace_store(vectors=OneOf(world.stores.vectors, search=failing(ZeroDivisionError())))
    with pytest.raises(ZeroDivisionError):
        await world.search("used tents")


# ------------------------------------------------------------------------------------ reranker


@pytest.mark.parametrize(
    "score",
    [
        failing(BROKEN),
        lambda question, passages: [float("nan")] * len(passages),
        lambda question, passages: [1.0],
    ],
    ids=["fails", "gives no numbers", "gives too few"],
)
async def test_without_a_reranker_the_fused_order_stands(world: World, score: Any) -> None:
    expected = names(await world.search("used tents E-1042"))
    world.reranker = OneOf(FakeReranker(), score=score)
    found = await world.search("used tents E-1042")
    assert names(found) == expected
    assert found.degraded == ("rerank",)
    assert all(c.signals.rerank_score is None for c in found.candidates)


async def test_a_reranker_that_hangs_is_skipped(world: World, hang: Any) -> None:
    world.reranker = OneOf(FakeReranker(), score=hang)
    found = await world.search("used tents", deadline_s=1.0)
    assert found.degraded == ("rerank",)
    assert len(found.candidates) == 2


async def test_a_request_may_do_without_the_reranker(world: World) -> None:
    world.reranker = OneOf(FakeReranker(), score=failing(BROKEN))
    assert (await world.search("used tents", rerank=False)).degraded == ()


# ----------------------------------------------------------------------------------- generator


async def test_a_generator_that_fails_is_replaced_by_quotation(world: World) -> None:
    world.generator = Scripted(error=BROKEN)
    world.fallback = ExtractiveGenerator()
    answer = await world.ask("What are used tents returned for?")
    assert answer.status is AnswerStatus.ANSWERED
    assert "store credit" in answer.text
    assert answer.degraded == ("generate",)


async def test_a_generator_that_fails_half_way_leaves_nothing_of_its_own(world: World) -> None:
    world.generator = Scripted("Half of an", " answer", error=BROKEN)
    world.fallback = ExtractiveGenerator()
    question = request("What are used tents returned for?")
    events = [event async for event in world.engine().answer(question)]
    final = events[-1]
    assert isinstance(final, Final)
    assert "Half" not in final.answer.text
    assert "store credit" in final.answer.text
    shown = "".join(event.text for event in events if isinstance(event, Delta))
    assert "store credit" not in shown, "two answers must not run into each other"


async def test_a_generator_that_takes_too_long_is_replaced_and_closed(world: World) -> None:
    slow = Scripted("never", delay_s=30)
    world.generator, world.fallback = slow, ExtractiveGenerator()
    answer = await world.ask("What are used tents returned for?", deadline_s=1.0)
    assert "store credit" in answer.text
    assert answer.degraded == ("generate",)
    assert slow.closed


async def test_a_generator_that_is_down_altogether_is_replaced_too(world: World) -> None:
    down = Scripted(error=BROKEN)
    world.generator = OneOf(down, count_tokens=failing(BROKEN))
    world.fallback = ExtractiveGenerator()
    answer = await world.ask("What are used tents returned for?")
    assert "store credit" in answer.text
    assert answer.degraded == ("generate",)


async def test_without_a_fallback_the_generators_error_is_the_answers(world: World) -> None:
    world.generator = Scripted(error=BROKEN)
    with pytest.raises(ModelError):
        await world.ask("What are used tents returned for?")


async def test_a_caller_who_goes_away_stops_the_generator(world: World) -> None:
    generator = Scripted("one", "two", "three")
    world.generator = generator
    events = world.engine().answer(request("used tents"))
    await anext(events)
    await events.aclose()
    assert generator.closed


async def test_without_evidence_the_generator_is_not_called() -> None:
    world = World()
    world.add("closed", "Severance is 3 weeks.", acl=("hr",))
    world.generator = Scripted("I know it anyway [S1].")
    answer = await world.ask("How much is severance?")
    assert (answer.status, answer.text) == (AnswerStatus.REFUSED, REFUSAL)
    assert answer.citations == ()
    assert world.generator.prompts == []


async def test_what_may_not_be_read_and_what_does_not_exist_look_the_same() -> None:
    closed, empty = World(), World()
    closed.add("closed", "Severance is 3 weeks.", acl=("hr",))
    answers = [await world.ask("How much is severance?") for world in (closed, empty)]
    first, second = (
        (a.status, a.text, a.citations, a.degraded, [(r.stage, r.count, r.detail) for r in a.trace])
        for a in answers
    )
    assert first == second


async def test_the_answer_counts_the_time_of_each_stage(world: World) -> None:
    answer = await world.ask("What are used tents returned for?")
    stages = [record.stage for record in answer.trace]
    assert stages == [
        "question",
        "embed",
        "dense",
        "lexical",
        "catalog",
        "fuse",
        "evidence",
        "prompt",
        "generate",
        "check",
    ]
    assert set(answer.timings_ms) == {*stages, "total"}


async def test_a_vector_store_that_hangs_holds_up_no_call_of_the_others(hang: Any) -> None:
    threads = Threads(workers=2)
    hanging = [asyncio.ensure_future(threads.apart(hang)) for _ in range(8)]
    try:
        assert await asyncio.wait_for(threads(sorted, [2, 1]), 5) == [1, 2]
    finally:
        for call in hanging:
            call.cancel()
        threads.close()


def test_questions_wait_for_a_store_less_long_than_an_ingest() -> None:
    settings = Settings()
    quick = impatient(settings).stores
    assert (quick.milvus.total_s, quick.elasticsearch.total_s) == (settings.serve.store_s,) * 2
    assert quick.milvus.timeout_s <= settings.serve.store_s < settings.stores.milvus.total_s


async def test_a_refused_key_is_logged_with_what_to_do_and_seen_by_readiness(world: World) -> None:
    settings = GeneratorSettings(
        kind="openai", model="m", base_url="http://h/v1", api_key=SecretStr("SECRET")
    )
    refused = httpx.MockTransport(lambda _: httpx.Response(401))
    world.generator = OpenAIGenerator(settings, transport=refused)
    world.fallback = ExtractiveGenerator()
    with capture_logs() as logs:
        answer = await world.ask("What are used tents returned for?")
    assert (answer.status, answer.degraded) == (AnswerStatus.ANSWERED, ("generate",))
    (told,) = [log for log in logs if log["event"] == "generator_failed"]
    assert told["error"] == "config_error"
    assert told["message"].endswith("check generator.api_key.")
    assert "SECRET" not in str(logs)
    ready = await world.engine().ready()
    assert (ready["generator"], ready["text"]) == ("config_error", "ok")


async def test_a_part_that_fails_is_logged_with_its_sentence_but_not_with_a_strangers(
    world: World,
) -> None:
    world.replace_store(vectors=OneOf(world.stores.vectors, search=failing(DOWN)))
    world.reranker = OneOf(FakeReranker(), score=failing(TimeoutError("used tents")))
    with capture_logs() as logs:
        await world.search("used tents")
    told = {log["event"]: (log["error"], log.get("message")) for log in logs}
    assert told["leg_down"] == ("store_unavailable", str(DOWN))
    assert told["reranker_failed"] == ("TimeoutError", None)


async def test_nothing_is_begun_when_the_time_is_up() -> None:
    begun: list[int] = []

    async def work() -> None:
        begun.append(1)

    with pytest.raises(TimeoutError):
        await Deadline(0).within(work())
    assert begun == []
