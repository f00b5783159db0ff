"""What every Generator does; an implementation's test inherits this and gives `generator`."""

from __future__ import annotations

from contextlib import aclosing

import pytest

from quarry.ports import Generator
from quarry.records import (
    Chunk,
    Document,
    Evidence,
    Message,
    Piece,
    Prompt,
    StopReason,
)

USED_GEAR = (
    "Gear that you have already used outdoors can be returned within 60 days of delivery for "
    "store credit only. Tents and sleeping bags must be clean and dry."
)


def source(label: str, text: str, *, header: str = "Returns", title: str = "Returns") -> Evidence:
    chunk = Chunk(
        row_id=f"{label}.1-a",
        chunk_id=label,
        doc_id="d" + label,
        revision="1-a",
        ordinal=0,
        text=text,
        header=header,
    )
    document = Document(doc_id="d" + label, source="s", address="a.md", uri="a.md", title=title)
    return Evidence(label=label, chunk=chunk, document=document, text=text, score=1.0)


def prompt(question: str, *evidence: Evidence, max_tokens: int = 200) -> Prompt:
    return Prompt(
        question=question,
        evidence=evidence,
        messages=(Message(role="user", content=question),),
        max_tokens=max_tokens,
        request_id="r1",
    )


async def pieces(generator: Generator, asked: Prompt) -> list[Piece]:
    return [piece async for piece in generator.stream(asked)]


async def text_of(generator: Generator, asked: Prompt) -> str:
    return "".join(piece.text for piece in await pieces(generator, asked))


class GeneratorContract:
    @pytest.fixture
    def generator(self) -> Generator:
        raise NotImplementedError

    @pytest.fixture
    def asked(self) -> Prompt:
        return prompt("May I return a tent that I used outdoors?", source("S1", USED_GEAR))

    async def test_only_the_last_piece_says_why_it_stopped(
        self, generator: Generator, asked: Prompt
    ) -> None:
        *before, last = await pieces(generator, asked)
        assert before
        assert all(piece.stop is None for piece in before)
        assert last.stop is StopReason.END
        assert last.completion_tokens > 0

    async def test_there_is_text_with_a_citation(self, generator: Generator, asked: Prompt) -> None:
        assert "[S1]" in await text_of(generator, asked)

    async def test_the_same_prompt_gives_the_same_answer(
        self, generator: Generator, asked: Prompt
    ) -> None:
        assert await text_of(generator, asked) == await text_of(generator, asked)

    async def test_a_stream_may_be_closed_after_its_first_piece(
        self, generator: Generator, asked: Prompt
    ) -> None:
        async with aclosing(generator.stream(asked)) as stream:
            assert (await anext(stream)).text
        assert await text_of(generator, asked)

    def test_tokens_are_counted_in_order(self, generator: Generator) -> None:
        nothing, short, long = generator.count_tokens(["", "a tent", "a dry tent " * 50])
        assert 0 <= nothing <= short < long
        assert generator.count_tokens([]) == []

    def test_a_prompt_counts_at_least_as_much_as_its_texts(self, generator: Generator) -> None:
        turns = [
            Message(role="system", content="Be brief."),
            Message(role="user", content="A tent"),
        ]
        alone = generator.count_tokens([turn.content for turn in turns])
        assert generator.count_prompt(turns) >= sum(alone)
        longer = [*turns, Message(role="user", content="a dry tent " * 50)]
        assert generator.count_prompt(longer) > generator.count_prompt(turns)

    def test_it_has_a_name(self, generator: Generator) -> None:
        assert generator.name
