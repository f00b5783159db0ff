"""Outputs of the engine come in groups; tests/vllm runs the engine itself."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass

from quarry.models.vllm import grouped

FOREVER = 3600.0


@dataclass
class Output:
    number: int
    finished: bool = False


async def outputs(count: int, *, finishes: bool = True) -> AsyncIterator[Output]:
    for number in range(1, count + 1):
        yield Output(number, finished=finishes and number == count)


async def numbers(stream: AsyncIterator[Output], interval_s: float) -> list[list[int]]:
    groups = grouped(stream, lambda: interval_s)
    return [[output.number for output in group] async for group in groups]


async def test_the_first_comes_at_once_and_the_rest_with_the_last() -> None:
    assert await numbers(outputs(5), FOREVER) == [[1], [2, 3, 4, 5]]


async def test_what_ends_without_a_last_one_is_not_lost() -> None:
    assert await numbers(outputs(3, finishes=False), FOREVER) == [[1], [2, 3]]


async def test_without_an_interval_each_comes_by_itself() -> None:
    assert await numbers(outputs(3), 0.0) == [[1], [2], [3]]


async def test_an_answer_of_one_output_is_one_group() -> None:
    assert await numbers(outputs(1), FOREVER) == [[1]]


async def test_the_interval_is_asked_for_at_each_group() -> None:
    intervals = iter([0.0, FOREVER, FOREVER])
    groups = grouped(outputs(4), lambda: next(intervals))
    assert [len(group) async for group in groups] == [1, 1, 2]
