"""Writes the answer's text: streams the generator, falls back if it fails or takes too long."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass

import structlog

from quarry.errors import QuarryError
from quarry.records import Piece, Prompt, StopReason
from serve.answering.citations import Mark
from serve.answering.writing import AnswerWriter
from serve.models import Generate
from serve.stage import Deadline, Run, Stopwatch, late, told

_log = structlog.get_logger(__name__)

SHARE = 0.9
"""Of the time that is left; the rest is for the fallback if the generator does not make it."""


@dataclass(frozen=True, slots=True)
class Delta:
    """Text to show while the answer is being written."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """All that was shown of what a generator wrote, and how it ended."""

    text: str
    last: Piece
    marks: tuple[Mark, ...]
    """Its citations, in the order of the text."""
    unknown_citations: int = 0
    """Citation marks left out because they name no source."""
    removed_links: int = 0
    """Images and links left out because they are not from the sources."""


async def write(
    prompt: Prompt, *, generate: Generate, fallback: Generate | None, run: Run
) -> AsyncGenerator[Delta | Written, None]:
    """Deltas as they come, then all that was written.

    A generator that fails or does not make it in time is replaced by `fallback` and named in
    `degraded`; if deltas of the first are out already, those of the second are held back. Without
    a fallback raises what the generator raised, or DeadlineExceeded.
    """
    watch = Stopwatch("generate")
    shown = False
    try:
        async with aclosing(_fit_to_show(prompt, generate, run.deadline)) as events:
            async for event in events:
                if isinstance(event, Written):
                    _record(run, watch, event)
                shown = True
                yield event
        return
    except (QuarryError, TimeoutError) as error:
        if fallback is None or run.deadline.left() <= 0:
            raise late() if isinstance(error, TimeoutError) else error from error
        _log.warning("generator_failed", shown=shown, **told(error))
        run.without("generate")
    async with aclosing(_fit_to_show(prompt, fallback, run.deadline)) as events:
        async for event in events:
            if isinstance(event, Written):
                _record(run, watch, event)
            if isinstance(event, Written) or not shown:
                yield event


async def _fit_to_show(
    prompt: Prompt, generate: Generate, deadline: Deadline
) -> AsyncGenerator[Delta | Written, None]:
    writer = AnswerWriter(prompt.evidence)
    shown: list[str] = []
    last = Piece(stop=StopReason.END)
    async with aclosing(_timed(generate(prompt), deadline)) as pieces:
        async for piece in pieces:
            last = piece
            shown.append(writer.feed(piece.text))
            if shown[-1]:
                yield Delta(shown[-1])
    shown.append(writer.finish())
    if shown[-1]:
        yield Delta(shown[-1])
    yield Written(
        text="".join(shown),
        last=last,
        marks=writer.marks,
        unknown_citations=writer.unknown_citations,
        removed_links=writer.removed_links,
    )


async def _timed(
    stream: AsyncGenerator[Piece, None], deadline: Deadline
) -> AsyncGenerator[Piece, None]:
    """The pieces, each awaited within the generator's share; closes the stream at the end."""
    reserve = deadline.left() * (1 - SHARE)
    try:
        while True:
            try:
                piece = await asyncio.wait_for(anext(stream), deadline.left() - reserve)
            except StopAsyncIteration:
                return
            yield piece
    finally:
        await stream.aclose()


def _record(run: Run, watch: Stopwatch, written: Written) -> None:
    stop = written.last.stop.value if written.last.stop else None
    record = watch.done(
        written.last.completion_tokens, prompt_tokens=written.last.prompt_tokens, stop=stop
    )
    run.add(written, record)
