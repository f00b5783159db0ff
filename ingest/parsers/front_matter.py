"""Front matter: YAML at the top of a Markdown file, between a line `---` and the next one.

It may say who reads the document, so in doubt it is not taken for text: what begins like it and
cannot be read as fields, or does not end, fails unless it is plainly prose below a thematic break.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ingest.acl import visible
from ingest.metadata import read_mapping
from quarry.errors import ParseError
from quarry.records import DocState

_OPENS = re.compile(r"---(?:\s+(?P<rest>[#{].*))?")
"""YAML may begin on the line that opens it: with a comment, or in braces."""
_CLOSES = re.compile(r"(?:---|\.\.\.)(?:\s+#.*)?")
_IS_FIELD = re.compile(
    r"[\w\"'-][\w \"'.-]*:(?:\s|$)"  # a key
    r"|\?(?:\s|$)|<<\s*:|%[A-Z]"  # YAML that may lead to one
    r"|\{(?![{%:#])"  # braces that are none of a template or an attribute list
)
_PROPERTIES = r"\s*(?:[!&]\S*\s+)*"
"""YAML tags and anchors, which may stand before a key."""
_NAMES_ACL = re.compile(
    rf"(?:^|[{{,]){_PROPERTIES}[\"']?acl[\"']?\s*:"
    rf"|\?\s+{_PROPERTIES}[\"']?acl\b"
    r"|\"[^\"\n]*\\[uUx][^\"\n]*\"\s*:",  # a key that is spelled by codes may be any
    re.I | re.M,
)
_NO_END = (
    "Its front matter does not end; put --- below it, or write its first line as *** if it is none."
)
_BEGINS = re.compile(rb"[^!-~]*-[^!-~]*-[^!-~]*-")
"""The same line in bytes of any encoding, damaged ones too."""


@dataclass(frozen=True, slots=True)
class _Found:
    text: str
    """Without the lines around it; all that follows if it is not closed."""
    body: int
    """Where the body starts; 0: it is not closed."""


def front_matter(text: str) -> tuple[Mapping[str, Any], int]:
    """The fields between a first line `---` and the next `---` or `...`, and where the body starts.

    Prose between two rules is body. Raises ParseError (state failed) for what may be fields and
    cannot be read, or does not end.
    """
    found = _found(text)
    if found is None:
        return {}, 0
    if not found.body:
        if _is_prose(found.text):
            return {}, 0
        raise ParseError(DocState.FAILED, _NO_END)
    try:
        fields = read_mapping(found.text)
    except ValueError as error:
        if _is_prose(found.text):
            return {}, 0
        raise ParseError(DocState.FAILED, f"Its front matter {error}") from None
    return fields, found.body if fields else 0


def may_begin(head: bytes) -> bool:
    """Whether a file that begins with these bytes may begin with front matter."""
    return _BEGINS.match(head) is not None


def _found(text: str) -> _Found | None:
    lines = text.splitlines(keepends=True)
    offset, first = 0, 0
    while first < len(lines) and not visible(lines[first]).strip():
        offset += len(lines[first])
        first += 1
    opened = _OPENS.fullmatch(visible(lines[first]).strip()) if first < len(lines) else None
    if opened is None:
        return None
    start = offset = offset + len(lines[first])
    rest = f"{opened['rest']}\n" if opened["rest"] else ""
    for line in lines[first + 1 :]:
        if _CLOSES.fullmatch(visible(line.rstrip()).rstrip()):
            return _Found(rest + text[start:offset], offset + len(line))
        offset += len(line)
    return _Found(rest + text[start:], 0)


def _is_prose(text: str) -> bool:
    """Whether it cannot be meant as fields: it does not begin with one, and names no ACL."""
    lines = [visible(line).strip() for line in text.splitlines()]
    said = (line for line in lines if line and not line.startswith("#"))
    return not _IS_FIELD.match(next(said, "")) and not _NAMES_ACL.search("\n".join(lines))
