"""The header of a chunk: title, version, scope and section path, short enough to leave room."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

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


class Header(NamedTuple):
    text: str
    left_out: int
    """Titles of the path, from its start, that there was no room for."""


def fitted_header(head: Head, path: tuple[str, ...], *, limit: int, meter: TokenMeter) -> Header:
    """The fullest header of at most `limit` tokens: outer sections go first, then the title."""
    for left_out in range(len(path) + 1):
        text = full_header(head, path[left_out:])
        if meter.cost(text) <= limit:
            return Header(text, left_out)
    return Header(_cut_document_line(head, limit, meter), len(path))


def _cut_document_line(head: Head, limit: int, meter: TokenMeter) -> str:
    room = limit - meter.cost(_document_line(replace(head, title="")))
    if head.title and room > 0:
        line = _document_line(replace(head, title=cut(head.title, room, meter)[0]))
        if meter.cost(line) <= limit:
            return line
    return cut(_document_line(head), limit, meter)[0]


def _document_line(head: Head) -> str:
    version = f"version {head.version}" if head.version else ""
    return ", ".join(part for part in (head.title, version, head.scope) if part)
