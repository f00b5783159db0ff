"""The contract of an answer: what is shown is checked, the same streamed and whole, and honest."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quarry.errors import ModelError
from quarry.records import Answer, AnswerStatus, Piece, Prompt, StopReason
from quarry.text import REFUSAL
from serve.answering.answer import Checked, Judge, check
from serve.answering.generate import Delta, Written
from serve.answering.writing import AnswerWriter
from serve.results import Final
from serve.stage import Deadline, Run
from tests.unit.serve.answering.test_citations import evidence
from tests.unit.serve.serve_world import Scripted, World, failing, request

SOURCES = [evidence(), evidence("The shop in Oslo opens at nine.", label="S2")]
CREDIT = "Used tents give store credit only, within 60 days [S1]."


def written(text: str, *, stop: StopReason = StopReason.END) -> Written:
    writer = AnswerWriter(SOURCES)
    shown = writer.feed(text) + writer.finish()
    return Written(text=shown, last=Piece(stop=stop), marks=writer.marks)


async def checked(text: str, judge: Judge | None = None, **options: Any) -> Checked:
    return (await check(written(text, **options), SOURCES, judge=judge, run=Run(Deadline(30))))[0]


def reasons(answer: Checked | Answer) -> list[str]:
    return [doubt.reason for doubt in answer.doubts]


# ------------------------------------------------------------------------------ the whole answer


async def test_an_answer_carries_its_citations_with_all_that_a_reader_needs() -> None:
    answer = await checked(CREDIT)
    assert answer.status is AnswerStatus.ANSWERED
    citation = answer.citations[0]
    assert (citation.label, citation.uri, citation.title) == ("S1", "p.md", "Returns")
    assert (citation.section, citation.pages) == ("Returns > Used", (2, 3))
    assert citation.quote in SOURCES[0].text
    assert (answer.doubts, answer.cut) == ((), False)


@pytest.mark.parametrize(
    "text",
    [
        REFUSAL,
        f" {REFUSAL}\n",
        f'"{REFUSAL}"',
        f"**{REFUSAL}**",
        REFUSAL.upper(),
        REFUSAL.rstrip("."),
        f"{REFUSAL} [S1]",
        f"{REFUSAL} But tents are great [S1].",
        "Tents are great.",
        "",
        "See [1].",
        "Tents are great [S9].",
    ],
)
async def test_a_refusal_or_an_uncited_text_is_refused_exactly(text: str) -> None:
    answer = await checked(text)
    assert (answer.status, answer.text, answer.citations) == (AnswerStatus.REFUSED, REFUSAL, ())
    assert (answer.doubts, answer.cut) == ((), False)


async def test_an_answer_of_which_no_sentence_is_borne_by_what_it_cites_is_refused() -> None:
    for text in (
        "The capital of France is Paris [S1].",
        "Used tents give store credit only, within 90 days [S1].",
        "Used tents give store credit only, within 60 days [S2].",
    ):
        answer = await checked(text)
        assert (answer.status, answer.text, answer.citations) == (AnswerStatus.REFUSED, REFUSAL, ())


@pytest.mark.parametrize(
    "text",
    [
        "The vacation is 90 days for all staff [S1]:",
        "The vacation is 90 days for all staff, right? [S1]",
        "## The vacation is 90 days for all staff [S1]",
        "```\nThe vacation is 90 days for all staff [S1]\n```",
        "`` `` The vacation is 90 days for all staff [S1].",
    ],
)
async def test_what_cites_is_checked_in_any_form(text: str) -> None:
    assert (await checked(text)).status is AnswerStatus.REFUSED
    assert reasons(await checked(f"{CREDIT}\n\n{text}")) == ["numbers"]


async def test_what_could_not_be_compared_bears_no_answer() -> None:
    assert (await checked("Yes [S1].")).status is AnswerStatus.REFUSED
    assert (await checked("Yes [S1].", judge(0.9))).status is AnswerStatus.REFUSED
    assert (await checked("Oslo [S2].")).status is AnswerStatus.ANSWERED
    assert (await checked(f"Yes [S1]. {CREDIT}")).doubts == ()


async def test_a_denial_is_doubted_unless_the_judge_finds_it_said() -> None:
    text = f"{CREDIT} Used tents do not give store credit [S1]."
    assert reasons(await checked(text)) == ["negation"]
    assert reasons(await checked(text, judge(0.9))) == []


async def test_every_factual_sentence_is_cited_or_doubted() -> None:
    answer = await checked(
        "Here is what the sources say:\n\n"
        f"{CREDIT} The shop in Oslo opens at ten [S2]. Pandas eat bamboo all day.\n\n"
        "Anything else?"
    )
    assert answer.status is AnswerStatus.ANSWERED
    assert [(doubt.reason, doubt.labels) for doubt in answer.doubts] == [
        ("numbers", ("S2",)),
        ("uncited", ()),
    ]
    assert answer.doubts[1].sentence == "Pandas eat bamboo all day."


async def test_a_mark_at_the_end_of_a_paragraph_stands_for_what_its_source_says_before() -> None:
    text = "Used tents give store credit only. Unused items are refunded within 30 days [S1]."
    assert (await checked(text)).doubts == ()
    apart = text.replace("only. ", "only.\n\n")
    assert reasons(await checked(apart)) == ["uncited"]


async def test_an_answer_in_another_language_is_given_and_said_to_be_uncompared() -> None:
    answer = await checked("Gebrauchte Zelte nehmen wir nur gegen einen Gutschein zurück [S1].")
    assert answer.status is AnswerStatus.ANSWERED
    assert reasons(answer) == ["language"]


async def test_an_answer_cut_by_the_token_limit_is_said_to_be_cut() -> None:
    assert (await checked(CREDIT, stop=StopReason.LENGTH)).cut
    assert not (await checked(CREDIT)).cut


async def test_a_refusal_for_want_of_citations_says_that_the_text_was_cut() -> None:
    answer = await checked("Used tents give store credit only, within", stop=StopReason.LENGTH)
    assert (answer.status, answer.text, answer.cut) == (AnswerStatus.REFUSED, REFUSAL, True)
    assert not (await checked(REFUSAL, stop=StopReason.LENGTH)).cut


# -------------------------------------------------------------------------- the entailment model


def judge(probability: float, seen: list[Any] | None = None) -> Judge:
    async def entail(pairs: Sequence[tuple[str, str]]) -> list[float]:
        if seen is not None:
            seen.extend(pairs)
        return [probability for _ in pairs]

    return Judge(entail, 0.5)


async def test_a_judge_decides_on_meaning_where_words_cannot() -> None:
    text = f"{CREDIT} Outdoor shelters qualify for vouchers [S1]."
    assert reasons(await checked(text)) == ["words"]
    assert reasons(await checked(text, judge(0.9))) == []
    assert reasons(await checked("Gebrauchte Zelte nehmen wir zurück [S1].", judge(0.9))) == []


async def test_what_no_source_entails_is_refused_though_its_words_are_there() -> None:
    answer = await checked(CREDIT, judge(0.1))
    assert answer.status is AnswerStatus.REFUSED


async def test_a_judge_cannot_talk_a_wrong_number_right() -> None:
    text = f"{CREDIT} Used tents give store credit within 90 days [S1]."
    assert reasons(await checked(text, judge(0.9))) == ["numbers"]


async def test_a_judge_reads_each_source_that_a_sentence_cites() -> None:
    seen: list[tuple[str, str]] = []
    await checked("Used tents give store credit only [S1][S2].", judge(0.9, seen))
    assert [claim for _, claim in seen] == ["Used tents give store credit only."] * 2
    assert "Gift cards" in seen[0][0] and "Oslo" in seen[1][0]


@pytest.mark.parametrize("error", [ModelError("down"), TimeoutError()])
async def test_without_the_judge_in_time_words_decide_and_the_answer_says_so(
    error: Exception,
) -> None:
    run = Run(Deadline(30))
    broken = Judge(failing(error), 0.5)
    answer, _ = await check(written(CREDIT), SOURCES, judge=broken, run=run)
    assert (answer.status, answer.doubts) == (AnswerStatus.ANSWERED, ())
    assert run.degraded == ["entailment"]


# ------------------------------------------------------------------------------- streamed, whole


def world_with(*texts: str, mode: str = "stream") -> World:
    world = World()
    world.settings = world.settings.model_validate({"answers": {"mode": mode}})
    for number, text in enumerate(texts or ("Used tents are returned for store credit.",)):
        world.add(f"page{number}", text)
    return world


async def streamed(world: World, question: str = "used tents") -> tuple[list[str], Answer]:
    events = [event async for event in world.engine().answer(request(question))]
    final = events[-1]
    assert isinstance(final, Final)
    return [event.text for event in events if isinstance(event, Delta)], final.answer


@pytest.mark.parametrize("mode", ["stream", "buffer"])
async def test_streamed_and_whole_answers_are_equal(mode: str) -> None:
    world = world_with(mode=mode)
    for generator in (
        Scripted("Store ", "credit", " [S", "1, S9", "] only."),
        Scripted("Store credit [S1] only."),
        Scripted("\nStore credit ![](http://e.example/q)", "[S1] only.\n"),
    ):
        world.generator = generator
        deltas, final = await streamed(world)
        assert "".join(deltas) == final.text == "Store credit [S1] only."
        whole = await world.ask("used tents")
        assert (whole.text, whole.citations, whole.doubts) == (
            final.text,
            final.citations,
            final.doubts,
        )


@given(cuts=st.sets(st.integers(1, 200)))
def test_how_the_generators_stream_is_cut_changes_nothing(cuts: set[int]) -> None:
    text = (
        "Used tents give [store credit](http://evil.example/q) only [S1, S9]. See ![x](u) below:\n"
        "```\nx[S1] # [S2]\n```\nOslo opens at nine 【S2†3】. <img src=x> Done (S1 and S2)."
    )
    places = [0, *sorted(cut for cut in cuts if cut < len(text)), len(text)]
    writer, whole = AnswerWriter(SOURCES), AnswerWriter(SOURCES)
    pieces = [text[a:b] for a, b in pairwise(places)]
    shown = "".join(writer.feed(piece) for piece in pieces) + writer.finish()
    assert shown == whole.feed(text) + whole.finish()
    assert writer.marks == whole.marks
    assert (writer.unknown_citations, writer.removed_links) == (1, 3)


async def test_in_buffer_mode_nothing_is_shown_before_it_is_checked() -> None:
    world = world_with(mode="buffer")
    world.generator = Scripted("Tents ", "are great.")
    deltas, final = await streamed(world)
    assert deltas == [final.text] == [REFUSAL]
    world.generator = Scripted("Store ", "credit [S1].")
    deltas, final = await streamed(world)
    assert deltas == [final.text] == ["Store credit [S1]."]


async def test_in_stream_mode_text_is_shown_while_it_is_written() -> None:
    world = world_with()
    world.generator = Scripted("Store ", "credit ", "only [S1].")
    deltas, _ = await streamed(world)
    assert len(deltas) > 1


async def test_a_refusal_is_streamed_as_the_refusal_and_nothing_else() -> None:
    world = world_with()
    for pieces in (["The docu", *REFUSAL[8:]], [*REFUSAL, " But", " tents [S1]."], ['"', REFUSAL]):
        world.generator = Scripted(*pieces)
        deltas, final = await streamed(world)
        assert "".join(deltas) == final.text == REFUSAL
        assert final.status is AnswerStatus.REFUSED


async def test_an_answer_that_begins_like_a_refusal_is_not_lost() -> None:
    world = world_with()
    world.generator = Scripted("The documents I may", " return: used tents [S1].")
    deltas, final = await streamed(world)
    assert "".join(deltas) == final.text == "The documents I may return: used tents [S1]."


async def test_stop_reason_and_usage_are_in_the_trace() -> None:
    world = world_with()

    class Cut(Scripted):
        async def stream(self, prompt: Prompt) -> Any:
            yield Piece(text="Store credit [S1]")
            yield Piece(stop=StopReason.LENGTH, prompt_tokens=9, completion_tokens=4)

    world.generator = Cut()
    answer = await world.ask("used tents")
    record = next(record for record in answer.trace if record.stage == "generate")
    assert record.detail["stop"] == "length"
    assert (record.detail["prompt_tokens"], record.count) == (9, 4)
    assert answer.cut


async def test_a_caller_who_goes_away_in_buffer_mode_stops_the_generator() -> None:
    world = world_with(mode="buffer")
    generator = Scripted("one", "two", delay_s=30)
    world.generator = generator
    events = world.engine().answer(request("used tents"))
    asking = asyncio.ensure_future(anext(events))
    async with asyncio.timeout(10):
        while not generator.prompts:  # noqa: ASYNC110 - a script has no event for it
            await asyncio.sleep(0)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    assert generator.closed
