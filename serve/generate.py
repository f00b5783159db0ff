"""Writes the answer's text: streams the generator, falls back if it fails or takes too long."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from dataclasses import dataclass, field

import structlog

from quarry.errors import QuarryError
from quarry.records import Piece, Prompt, StopReason
from serve.citations import MarkWriter
from serve.models import Generate
from serve.stage import Deadline, Run, Stopwatch, late

_log = structlog.get_logger(__name__)

SHARE = 0.9
"""Of the time that is left; the rest is for the fallback if the generator does not make it."""


@dataclass(frozen=True, slots=True)
class Delta:
    """Text to show while the answer is being written."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """All that a generator wrote, its citation marks in one form, and how it ended."""

    text: str
    last: Piece
    unknown_citations: int
    """Citation marks left out because they name no source."""


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
        async with aclosing(_marked(prompt, generate, run.deadline)) as events:
            async for event in events:
                if isinstance(event, Written):
                    _record(run, watch, event)
                shown = True
                yield event
        return
    except (QuarryError, TimeoutError) as error:
        if fallback is None or run.deadline.left() <= 0:
            raise late() if isinstance(error, TimeoutError) else error from error
        _log.warning("generator_failed", error=type(error).__name__, shown=shown)
        run.without("generate")
    async with aclosing(_marked(prompt, fallback, run.deadline)) as events:
        async for event in events:
            if isinstance(event, Written):
                _record(run, watch, event)
            if isinstance(event, Written) or not shown:
                yield event


@dataclass(slots=True)
class _Text:
    parts: list[str] = field(default_factory=list)

    def take(self, text: str) -> list[Delta]:
        if text:
            self.parts.append(text)
        return [Delta(text)] if text else []


async def _marked(
    prompt: Prompt, generate: Generate, deadline: Deadline
) -> AsyncGenerator[Delta | Written, None]:
    marks = MarkWriter({item.label for item in prompt.evidence})
    text, last = _Text(), Piece(stop=StopReason.END)
    async with aclosing(_timed(generate(prompt), deadline)) as pieces:
        async for piece in pieces:
            last = piece
            for delta in text.take(marks.feed(piece.text)):
                yield delta
    for delta in text.take(marks.finish()):
        yield delta
    yield Written(text="".join(text.parts), last=last, unknown_citations=marks.unknown)


async def _timed(stream: AsyncIterator[Piece], deadline: Deadline) -> AsyncGenerator[Piece, None]:
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
        close = getattr(stream, "aclose", None)
        if close is not None:
            await close()


def _record(run: Run, watch: Stopwatch, written: Written) -> None:
    stop = written.last.stop.value if written.last.stop else None
    record = watch.done(
        written.last.completion_tokens, prompt_tokens=written.last.prompt_tokens, stop=stop
    )
    run.add(written, record)
