"""Messages of a stream are joined, but neither its first nor its last waits."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing

import pytest

from quarry.records import Piece, StopReason
from serve.serving.pacing import LONGEST_S, pace, paced

FOREVER = 3600.0
LAST = Piece(stop=StopReason.LENGTH, prompt_tokens=7, completion_tokens=3)


class Source:
    def __init__(self, *pieces: Piece, error: Exception | None = None) -> None:
        self._pieces = pieces
        self._error = error
        self.closed = False

    async def __call__(self) -> AsyncGenerator[Piece, None]:
        try:
            for piece in self._pieces:
                yield piece
            if self._error:
                raise self._error
            await asyncio.sleep(FOREVER if not self._pieces[-1].stop else 0)
        finally:
            self.closed = True


def texts(*words: str) -> list[Piece]:
    return [Piece(text=word) for word in words]


async def test_the_first_piece_comes_at_once_and_the_rest_together_at_the_end() -> None:
    source = Source(*texts("a", "b", "c", "d"), LAST)
    pieces = [piece async for piece in paced(source(), FOREVER)]
    assert [piece.text for piece in pieces] == ["a", "bcd"]
    assert pieces[-1] == Piece(
        text="bcd", stop=StopReason.LENGTH, prompt_tokens=7, completion_tokens=3
    )
    assert source.closed


async def test_what_came_is_sent_when_the_interval_is_over_though_nothing_follows() -> None:
    source = Source(*texts("a", "b", "c"))
    async with aclosing(paced(source(), 0.01)) as pieces:
        assert (await anext(pieces)).text == "a"
        assert (await anext(pieces)).text == "bc"
    assert source.closed


async def test_without_an_interval_nothing_is_lost() -> None:
    source = Source(*texts(*"abcdef"), LAST)
    assert "".join([piece.text async for piece in paced(source(), 0.0)]) == "abcdef"


async def test_an_error_comes_through_and_the_source_is_closed() -> None:
    source = Source(*texts("a"), error=ValueError("broken"))
    with pytest.raises(ValueError, match="broken"):
        async for _ in paced(source(), FOREVER):
            pass
    assert source.closed


async def test_a_reader_who_goes_away_closes_the_source() -> None:
    source = Source(*texts("a"))

    async def read() -> None:
        async for _ in paced(source(), FOREVER):
            reached.set()

    reached = asyncio.Event()
    task = asyncio.create_task(read())
    await reached.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert source.closed


def test_streams_share_the_messages_of_a_second_but_no_reader_waits_long() -> None:
    assert pace(1) < pace(2) < pace(4) < LONGEST_S
    assert 1 / pace(1) == pytest.approx(4 / pace(4))
    assert pace(100) == LONGEST_S
