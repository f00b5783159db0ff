"""A tiny OpenAI-compatible server on loopback that plays a script: real HTTP, no model."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

Headers = dict[str, str]


@dataclass(frozen=True)
class Reply:
    """One answer: parts of the body in order, with a pause before each."""

    parts: Sequence[bytes] = ()
    status: int = 200
    headers: Headers = field(default_factory=dict)
    content_type: str = "text/event-stream"
    pause_s: float = 0.0
    ends: bool = True
    """False: the connection is kept open and silent after the last part."""
    begins: bool = True
    """False: the connection is closed before any answer."""


@dataclass
class Server:
    url: str
    requests: list[dict[str, Any]] = field(default_factory=list)
    headers: list[Headers] = field(default_factory=list)
    asked: asyncio.Event = field(default_factory=asyncio.Event)
    hung_up: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when a client closes before its answer is complete."""


def delta(text: str | None, finish: str | None = None) -> bytes:
    return event({"choices": [{"index": 0, "delta": {"content": text}, "finish_reason": finish}]})


def event(body: object) -> bytes:
    # As some servers do, text is sent as it is, line separators of Unicode included.
    return b"data: " + json.dumps(body, ensure_ascii=False).encode() + b"\n\n"


DONE = b"data: [DONE]\n\n"
USAGE = event({"choices": [], "usage": {"prompt_tokens": 12, "completion_tokens": 5}})


def answer(*texts: str, finish: str = "stop") -> Reply:
    return Reply([delta(""), *map(delta, texts), delta(None, finish), USAGE, DONE])


@asynccontextmanager
async def serving(reply: Callable[[int], Reply]) -> AsyncIterator[Server]:
    """`reply` is given the number of the request, from 0."""
    server = Server("")

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await _play(reader, writer, server, reply)
        except (ConnectionError, asyncio.IncompleteReadError):
            server.hung_up.set()
        finally:
            writer.close()

    listener = await asyncio.start_server(handle, "127.0.0.1", 0)
    server.url = f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}/v1"
    try:
        yield server
    finally:
        listener.close()


async def _play(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    server: Server,
    reply: Callable[[int], Reply],
) -> None:
    head = (await reader.readuntil(b"\r\n\r\n")).decode()
    lines = [line.partition(": ") for line in head.split("\r\n")[1:]]
    headers = {name.lower(): value for name, _, value in lines}
    body = await reader.readexactly(int(headers.get("content-length", 0)))
    server.headers.append(headers)
    server.requests.append({"path": head.split()[1], **json.loads(body or "{}")})
    server.asked.set()
    played = reply(len(server.requests) - 1)
    if not played.begins:
        return
    extra = "".join(f"{name}: {value}\r\n" for name, value in played.headers.items())
    writer.write(
        f"HTTP/1.1 {played.status} X\r\ncontent-type: {played.content_type}\r\n{extra}"
        "connection: close\r\n\r\n".encode()
    )
    await writer.drain()
    for part in played.parts:
        await asyncio.sleep(played.pause_s)
        writer.write(part)
        await writer.drain()
    if not played.ends:
        await reader.read()  # returns when the client hangs up
        server.hung_up.set()
