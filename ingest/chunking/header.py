"""The header of a chunk: title, version, scope and section path, short enough to leave room."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from ingest.chunking.meter import TokenMeter, cut
from ingest.chunking.outline import STEP

SHARE = 3
"""A header takes at most one part in three of a chunk."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """What the top of every chunk says about its document."""

    title: str = ""
    version: str = ""
    scope: str = ""
    """Where it holds, such as a region."""


def section_path(head: Head, path: tuple[str, ...]) -> tuple[str, ...]:
    """The path without a first heading that only repeats the document's title."""
    return path[1:] if path and path[0].casefold() == head.title.casefold() else path


def full_header(head: Head, path: tuple[str, ...]) -> str:
    """Two lines at most: the document, the section."""
    return "\n".join(line for line in (_document_line(head), STEP.join(path)) if line)


def fitted_header(head: Head, path: tuple[str, ...], *, limit: int, meter: TokenMeter) -> str:
    """The fullest header of at most `limit` tokens: outer sections go first, then the title."""
    for header in _shorter(head, path):
        if meter.cost(header) <= limit:
            return header
    room = limit - meter.cost(_document_line(replace(head, title="")))
    if head.title and room > 0:
        line = _document_line(replace(head, title=cut(head.title, room, meter)[0]))
        if meter.cost(line) <= limit:
            return line
    return cut(_document_line(head), limit, meter)[0]


def _shorter(head: Head, path: tuple[str, ...]) -> Iterator[str]:
    yield full_header(head, path)
    for first in range(1, len(path) + 1):
        yield full_header(head, path[first:])


def _document_line(head: Head) -> str:
    version = f"version {head.version}" if head.version else ""
    return ", ".join(part for part in (head.title, version, head.scope) if part)
