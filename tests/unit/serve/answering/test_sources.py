"""What an answer is written from: passages with what stands beside them, or everything."""

from __future__ import annotations

import asyncio
import re
import time
from typing import Any

import pytest

from quarry.errors import StoreUnavailable
from quarry.settings import Settings
from tests.unit.serve.finding.test_select import record, world_with
from tests.unit.serve.serve_world import OneOf, World, failing, request

DOWN = StoreUnavailable("The store cannot be reached; check that it runs.")

STEPS = ("First the tents.", "Then wipe the frame.", "Then fold it.", "Last, store it.")


async def read(world: World, question: str, **options: Any) -> list[str]:
    explanation = await world.engine().explain(request(question, **options))
    user = explanation.prompt[-1].content
    return re.findall(r"<source id=.*?>\n(.*?)\n</source>", user, re.DOTALL)


@pytest.mark.parametrize(
    ("widen", "text"),
    [
        ("none", "Then wipe the frame."),
        ("short", "\n\n".join(STEPS[:3])),
        ("neighbours", "\n\n".join(STEPS[:3])),
        ("section", "\n\n".join(STEPS)),
    ],
)
async def test_a_source_is_read_alone_with_its_neighbours_or_with_its_section(
    widen: str, text: str
) -> None:
    world = world_with({"widen": widen}, retrieval={"evidence_chunks": 1})
    world.add("steps", *STEPS, section=("Steps",))
    answer = await world.ask("wipe the frame")
    assert record(answer, "evidence").detail["widen"] == widen
    assert await read(world, "wipe the frame") == [text]


async def test_a_section_takes_no_more_than_an_equal_share_of_the_budget() -> None:
    world = world_with(
        {"widen": "section"},
        retrieval={"evidence_chunks": 2},
        generator={"context_tokens": 1024, "max_tokens": 256},
    )
    fillers = [f"filler {n} " * 40 for n in range(8)]
    world.add("long", "wipe the frame", *fillers, section=("Long",))
    world.add("other", "the frame is blue")
    sources = await read(world, "wipe the frame")
    assert len(sources) == 2
    assert "the frame is blue" in sources[1]
    assert 1 <= sum(f"filler {n} " in sources[0] for n in range(8)) <= 4


async def test_a_passage_that_is_a_source_itself_is_not_repeated_in_another() -> None:
    world = world_with({"widen": "section"}, retrieval={"evidence_chunks": 2})
    world.add("steps", *STEPS, section=("Steps",))
    sources = await read(world, "wipe the frame, fold it")
    told = "\n".join(sources)
    assert len(sources) == 2
    assert all(told.count(step) == 1 for step in STEPS)


async def test_without_the_neighbours_a_source_is_read_alone() -> None:
    world = World()
    world.add("steps", *STEPS, section=("Steps",))
    world.replace_store(text=OneOf(world.stores.text, chunks=failing(DOWN)))
    answer = await world.ask("wipe the frame")
    assert answer.status == "answered"
    assert "neighbours" in answer.degraded


# ------------------------------------------------------------------------------------ long context


@pytest.fixture
def small() -> World:
    world = world_with({"long_context": True}, retrieval={"evidence_chunks": 1})
    world.add("tents", "Used tents go back.", "Tents are green.")
    world.add("stoves", "Stoves burn gas.")
    world.add("secret", "Severance is three weeks.", acl=("hr",))
    world.add("old", "Tents of version one.", series="S", version="1")
    world.add("new", "Tents of version two.", series="S", version="2")
    return world


async def test_everything_that_may_be_read_is_sent_where_it_fits(small: World) -> None:
    sources = await read(small, "used tents")
    assert sources[0] == "Used tents go back."
    assert set(sources) == {
        "Used tents go back.",
        "Tents are green.",
        "Stoves burn gas.",
        "Tents of version two.",
    }
    assert len(await read(small, "used tents", groups=["hr"])) == 5
    assert record(await small.ask("used tents"), "evidence").detail["long_context"] is True


async def test_the_filter_holds_in_long_context_too(small: World) -> None:
    assert set(await read(small, "used tents", filter="series = S")) == {"Tents of version two."}


async def test_what_does_not_fit_is_searched_as_always(small: World) -> None:
    small.settings = Settings.model_validate(
        {
            "retrieval": {"select": {"long_context": True}, "evidence_chunks": 1},
            "generator": {"context_tokens": 512, "max_tokens": 128},
        }
    )
    small.add("long", *(f"words of page {n}. " * 40 for n in range(5)))
    answer = await small.ask("used tents")
    assert "long_context" not in record(answer, "evidence").detail
    assert record(answer, "evidence").count == 1


@pytest.mark.parametrize(("store", "method"), [("catalog", "scan"), ("text", "chunks")])
@pytest.mark.parametrize("fault", ["down", "slow"])
async def test_what_cannot_be_read_whole_in_time_is_searched_as_always(
    small: World, store: str, method: str, fault: str
) -> None:
    broken = failing(DOWN) if fault == "down" else slow
    inner = getattr(small.stores, store)
    small.replace_store(**{store: OneOf(inner, **{method: broken})})
    answer = await small.ask("used tents", deadline_s=2.0)
    assert answer.status == "answered"
    assert "long_context" in answer.degraded
    assert "long_context" not in record(answer, "evidence").detail


async def test_nothing_goes_on_being_read_once_nobody_waits_for_it(small: World) -> None:
    pages: list[str] = []
    inner = small.stores.catalog

    def endless(*, after: str = "", limit: int = 1000, **_: Any) -> list[Any]:
        pages.append(after)
        time.sleep(0.3)
        return inner.scan()[:1] * limit

    small.replace_store(catalog=OneOf(inner, scan=endless))
    answer = await small.ask("used tents", deadline_s=1.5)
    assert "long_context" in answer.degraded
    read = len(pages)
    await asyncio.sleep(1.0)
    assert len(pages) == read < 10


def slow(*_args: Any, **_options: Any) -> list[Any]:
    time.sleep(2.5)
    return []


async def test_a_document_that_is_replaced_meanwhile_is_not_sent_by_halves(small: World) -> None:
    small.replace_store(
        text=OneOf(small.stores.text, chunks=lambda *_args: [])  # swept since the catalog was read
    )
    answer = await small.ask("used tents")
    assert record(answer, "evidence").count == 1
