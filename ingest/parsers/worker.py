"""The process that parses: `python -m ingest.parsers.worker FD` with one end of a pipe.

It may hang, swell or crash over a hostile file; its owner (`ingest.parsers.sandbox`) kills it and
starts another. It has a memory limit, no network, and starts no programs.
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable, Iterator
from importlib import import_module
from multiprocessing.connection import Connection
from typing import Any, TypeAlias

from quarry.errors import ParseError
from quarry.records import DocState, ParsedDocument, SourceItem
from quarry.settings import IngestSettings

BATCH_DOCUMENTS = 64
BATCH_CHARACTERS = 2_000_000
"""A message holds at most so many documents, and little more text than this."""

Parse: TypeAlias = Callable[[bytes, SourceItem, IngestSettings], Iterator[ParsedDocument]]

_FORBIDDEN = frozenset(
    {"socket.connect", "socket.bind", "socket.sendto", "socket.getaddrinfo", "subprocess.Popen"}
    | {"os.system", "os.exec", "os.posix_spawn", "os.fork", "os.forkpty"}
)
_OUT_OF_MEMORY = ("alloc", "memory")


def main(connection: Connection) -> None:
    """Parses what comes in until the other end closes.

    In: once settings and the function to parse with, then `(content, item)`. Out: once None when it
    is ready; for each file batches of documents, then None, or `(state, reason)`, or
    `(type of the fault, its place, "fault")`.
    """
    settings, entry = connection.recv()
    limit_memory(settings.parse_memory_mb)
    sys.addaudithook(_refuse)
    parse = _resolved(entry)
    connection.send(None)
    while True:
        try:
            content, item = connection.recv()
        except EOFError:
            return
        for message in _messages(parse, content, item, settings):
            connection.send(message)


def limit_memory(megabytes: int) -> None:
    """Bounds the private memory of this process, where the system can."""
    import resource

    size = megabytes * 1_000_000
    kind = resource.RLIMIT_DATA if sys.platform == "linux" else resource.RLIMIT_AS
    _, hard = resource.getrlimit(kind)
    if hard == resource.RLIM_INFINITY or size <= hard:
        resource.setrlimit(kind, (size, hard))


def _messages(
    parse: Parse, content: bytes, item: SourceItem, settings: IngestSettings
) -> Iterator[Any]:
    batch: list[ParsedDocument] = []
    characters = 0
    try:
        for document in parse(content, item, settings):
            batch.append(document)
            characters += sum(len(block.text) for block in document.blocks)
            if len(batch) >= BATCH_DOCUMENTS or characters >= BATCH_CHARACTERS:
                yield batch
                batch, characters = [], 0
        if batch:
            yield batch
        yield None
    except ParseError as error:
        if batch:
            yield batch
        yield (str(error.state), error.reason)
    except Exception as error:  # whatever a library makes of a hostile file
        yield _fault(error, settings)


def _fault(error: Exception, settings: IngestSettings) -> Any:
    """What went wrong, without the error's text, which may quote the document."""
    if isinstance(error, MemoryError) or any(word in str(error).lower() for word in _OUT_OF_MEMORY):
        limit = settings.parse_memory_mb
        reason = f"It needs more memory than ingest.parse_memory_mb allows ({limit} MB)."
        return (str(DocState.TOO_LARGE), reason)
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return (type(error).__name__, f"{frame.name}:{frame.lineno}", "fault")


def _refuse(event: str, arguments: Any) -> None:
    if event in _FORBIDDEN:
        raise PermissionError(f"{event} is refused while documents are parsed")


def _resolved(entry: str) -> Parse:
    module, _, name = entry.partition(":")
    found: Parse = getattr(import_module(module), name)
    return found


if __name__ == "__main__":
    main(Connection(int(sys.argv[1])))
