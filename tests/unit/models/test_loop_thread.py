"""A stream that runs in another thread's event loop, read from this one."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing, suppress

import pytest

from quarry.models.loop_thread import LoopThread


@pytest.fixture
def thread() -> Iterator[LoopThread]:
    made = LoopThread("engine")
    yield made
    made.stop()


class Endless:
    """Counts up, without end, until it is closed."""

    def __init__(self) -> None:
        self.thread = ""
        self.began = threading.Event()
        self.closed = threading.Event()

    async def __call__(self) -> AsyncGenerator[int, None]:
        self.thread = threading.current_thread().name
        self.began.set()
        try:
            for number in range(1_000_000):
                yield number
                await asyncio.sleep(0)
        finally:
            self.closed.set()


async def three() -> AsyncGenerator[int, None]:
    for number in (1, 2, 3):
        yield number


async def broken() -> AsyncGenerator[int, None]:
    yield 1
    raise ValueError("no more")


async def test_all_items_come_in_order(thread: LoopThread) -> None:
    groups = [group async for group in thread.iterate(three)]
    assert [item for group in groups for item in group] == [1, 2, 3]


async def test_the_stream_runs_in_its_own_thread(thread: LoopThread) -> None:
    stream = Endless()
    async with aclosing(thread.iterate(stream)) as groups:  # type: ignore[type-var]
        await anext(groups)
    assert stream.thread == "engine"


async def test_items_that_came_while_nobody_read_come_together(thread: LoopThread) -> None:
    async with aclosing(thread.iterate(three)) as groups:  # type: ignore[type-var]
        first = await anext(groups)
        await asyncio.sleep(0.05)
        rest = [item for group in [g async for g in groups] for item in group]
    assert [*first, *rest] == [1, 2, 3]


async def test_closing_the_iterator_closes_the_stream(thread: LoopThread) -> None:
    stream = Endless()
    async with aclosing(thread.iterate(stream)) as groups:  # type: ignore[type-var]
        await anext(groups)
        assert not stream.closed.is_set()
    assert await asyncio.to_thread(stream.closed.wait, 5)


async def test_cancelling_the_reader_closes_the_stream(thread: LoopThread) -> None:
    stream = Endless()

    async def read() -> None:
        async for _ in thread.iterate(stream):
            pass

    task = asyncio.create_task(read())
    assert await asyncio.to_thread(stream.began.wait, 5)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await asyncio.to_thread(stream.closed.wait, 5)


async def test_an_error_of_the_stream_is_raised_after_what_came_before_it(
    thread: LoopThread,
) -> None:
    seen: list[int] = []
    with pytest.raises(ValueError, match="no more"):
        async for group in thread.iterate(broken):
            seen.extend(group)
    assert seen == [1]


def test_several_event_loops_may_read_in_turn(thread: LoopThread) -> None:
    async def read() -> list[int]:
        return [item async for group in thread.iterate(three) for item in group]

    assert [asyncio.run(read()) for _ in range(2)] == [[1, 2, 3], [1, 2, 3]]


def test_stopping_ends_what_still_runs_and_those_who_read_it() -> None:
    thread, stream = LoopThread("engine"), Endless()

    async def read() -> None:
        with suppress(asyncio.CancelledError):
            async for _ in thread.iterate(stream):
                pass

    reader = threading.Thread(target=lambda: asyncio.run(read()))
    reader.start()
    assert stream.began.wait(5)
    thread.stop()
    reader.join(5)
    assert stream.closed.is_set()
    assert not reader.is_alive()
