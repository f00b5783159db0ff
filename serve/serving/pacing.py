"""Fewer, larger messages of a stream, without making its reader wait for the first."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator
from contextlib import suppress
from dataclasses import replace

from quarry.records import Piece

PIECES_PER_S = 12.0
"""Messages of all streams together; they take time of the cores that a model computes on."""
LONGEST_S = 0.6
"""Longest that a reader waits for what is written already."""


def pace(streams: int) -> float:
    """Seconds between the messages of one stream among so many."""
    return min(LONGEST_S, streams / PIECES_PER_S)


async def paced(
    pieces: AsyncGenerator[Piece, None], interval_s: float
) -> AsyncGenerator[Piece, None]:
    """The first piece at once, later ones joined to one every `interval_s`, the last at once.

    Closing it closes what it reads.
    """
    text, due = "", time.monotonic()
    coming = asyncio.ensure_future(anext(pieces))
    try:
        while True:
            wait = max(0.0, due - time.monotonic()) if text else None
            done, _ = await asyncio.wait({coming}, timeout=wait)
            if done:
                try:
                    piece = coming.result()
                except StopAsyncIteration:
                    break
                if piece.stop is not None:
                    yield replace(piece, text=text + piece.text)
                    return
                text += piece.text
                coming = asyncio.ensure_future(anext(pieces))
            if text and time.monotonic() >= due:
                yield Piece(text=text)
                text, due = "", time.monotonic() + interval_s
        if text:
            yield Piece(text=text)
    finally:
        coming.cancel()
        with suppress(asyncio.CancelledError, StopAsyncIteration, Exception):
            await coming  # what it raises was raised above already, or nobody waits for it
        await pieces.aclose()
