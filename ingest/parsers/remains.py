"""What a file says of itself although it could not be read as a whole.

Its front matter may name who reads the document, and that holds whatever became of the rest.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ingest.metadata import MAX_YAML_CHARS
from ingest.parsers.decoding import decode
from ingest.parsers.front_matter import front_matter, may_begin
from ingest.parsers.routing import RECORD_FORMATS, Format, named_format
from quarry.errors import ParseError
from quarry.records import DocState

_HEAD = 4 * MAX_YAML_CHARS
"""Bytes that hold any front matter that would be read."""


def own_metadata(
    content: bytes | None, address: str, *, state: DocState, is_records: bool
) -> Mapping[str, Any] | None:
    """The front matter of a file that ended in `state`; None: what it says cannot be known.

    Only Markdown and files of records say anything of themselves, and of records that were not
    reached nothing is known. `content` is None if the file could not be read at all.
    """
    kind = named_format(address)
    if is_records or kind in RECORD_FORMATS:
        return {} if state is DocState.EMPTY else None
    if kind is not Format.MARKDOWN:
        return {}
    if content is None:
        return None
    return _front_matter(content[:_HEAD], is_whole=len(content) <= _HEAD)


def _front_matter(head: bytes, *, is_whole: bool) -> Mapping[str, Any] | None:
    text = decode(head)
    try:
        found, body = front_matter(head.decode("utf-8-sig", "replace") if text is None else text)
    except ParseError:
        return None
    is_plain = is_whole and text is not None
    return found if body or is_plain or not may_begin(head) else None
