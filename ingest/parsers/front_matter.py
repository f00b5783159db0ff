"""Front matter: YAML at the top of a Markdown file, between a line `---` and the next one.

It may say who reads the document, so in doubt it is not taken for text: what begins like it and
cannot be read as fields, or does not end, fails unless it is plainly prose below a thematic break.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice, takewhile
from typing import Any

from ingest.acl import visible
from ingest.metadata import read_mapping
from quarry.errors import ParseError
from quarry.records import DocState

_OPENS = re.compile(r"---(?:\s+(?P<rest>\S.*))?")
"""YAML may begin on the line that opens it, such as with a comment, in braces, with a tag."""
_DIRECTIVE = re.compile(r"%(?:YAML|TAG)\b.*", re.I)
"""YAML may have such lines above the one that opens it."""
_ALMOST_OPENS = re.compile(r"(?:[-\u2010-\u2015\u2212]{2,}|\+{3,}|;{3,})\s*\w*|%(?:YAML|TAG)\b.*")
"""What a keyboard or another program makes of it: `---yaml`, `+++`, dashes of other kinds."""
_ALMOST_LINES = 64
"""Lines below it that are looked at for an ACL."""
_CLOSES = re.compile(r"(?:---|\.\.\.)(?:\s+#.*)?")
_IS_FIELD = re.compile(
    r"[\w\"'-][\w \"'.-]*:(?:\s|$)"  # a key
    r"|\?(?:\s|$)|<<\s*:|%[A-Z]|%yaml|[!&][\w!]*(?:\s|$)"  # YAML that may lead to one
    r"|\{(?![{%:#])"  # braces that are none of a template or an attribute list
)
_PROPERTIES = r"[ \t]*(?:[!&][^\s,{]*\s+)*"
"""YAML tags and anchors, which may stand before a key."""
_ACL = r"[\"']?(?:a+c+l+s?|acl[ _-]?lists?|acces+[ _-]?(?:control[ _-]?)?lists?)\b[\"']?"
_NAMES_ACL = re.compile(
    rf"(?:^|[{{,]){_PROPERTIES}{_ACL}\s*[:=]"
    rf"|\?\s+{_PROPERTIES}{_ACL}"
    r"|\"(?=[^\"\n]*\\[uUx])[^\"\n]*\"\s*:",  # a key that is spelled by codes may be any
    re.I | re.M,
)
_NO_END = (
    "Its front matter does not end; put --- below it, or write its first line as *** if it is none."
)
_NO_BEGINNING = (
    "Its front matter does not begin as such, and names an acl; put --- alone into the line above "
    "it and below it."
)
_BEGINS = re.compile(rb"[^!-~]*(?:-[^!-~]*-|\+[^!-~]*\+|;[^!-~]*;|%)")
"""The first of these lines in bytes of any encoding, damaged ones too."""


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
        if _is_almost_one(text):
            raise ParseError(DocState.FAILED, _NO_BEGINNING)
        return {}, 0
    if not found.body:
        if _is_prose(found.text):
            return {}, 0
        raise ParseError(DocState.FAILED, _NO_END)
    try:
        fields = read_mapping(found.text)
    except ValueError as error:
        if not _is_prose(found.text):
            raise ParseError(DocState.FAILED, f"Its front matter {error}") from None
        fields = {}
    if not fields and _begins_again(text[found.body :]):
        raise ParseError(DocState.FAILED, _NO_BEGINNING)
    return fields, found.body if fields else 0


def may_begin(head: bytes) -> bool:
    """Whether a file that begins with these bytes may begin with front matter."""
    return _BEGINS.match(head) is not None


def _found(text: str) -> _Found | None:
    lines = text.splitlines(keepends=True)
    said, offset, first = "", 0, 0
    while first < len(lines):
        line = visible(lines[first]).strip()
        if line and not _DIRECTIVE.fullmatch(line):
            break
        said += f"{line}\n" if line else ""
        offset += len(lines[first])
        first += 1
    opened = _OPENS.fullmatch(visible(lines[first]).strip()) if first < len(lines) else None
    if opened is None:
        return None
    start = offset = offset + len(lines[first])
    said += f"{opened['rest']}\n" if opened["rest"] else ""
    for line in lines[first + 1 :]:
        if _CLOSES.fullmatch(visible(line.rstrip()).rstrip()):
            return _Found(said + text[start:offset], offset + len(line))
        offset += len(line)
    return _Found(said + text[start:], 0)


def _is_almost_one(text: str) -> bool:
    """Whether an ACL stands below a first line that is meant to open front matter, and does not."""
    lines = _said(text)
    return bool(_ALMOST_OPENS.fullmatch(next(lines, ""))) and _names_acl(lines)


def _begins_again(text: str) -> bool:
    """Whether fields with an ACL follow at once on lines that open and close none."""
    return bool(_IS_FIELD.match(next(_said(text), ""))) and _names_acl(_said(text))


def _said(text: str) -> Iterator[str]:
    return filter(None, (visible(line).strip() for line in text.splitlines()))


def _names_acl(lines: Iterator[str]) -> bool:
    """Whether it is named before the next line that would open or close front matter."""
    upper = takewhile(lambda line: not _ALMOST_OPENS.fullmatch(line), islice(lines, _ALMOST_LINES))
    return _NAMES_ACL.search("\n".join(upper)) is not None


def _is_prose(text: str) -> bool:
    """Whether it cannot be meant as fields: it does not begin with one, and names no ACL."""
    lines = [visible(line).strip() for line in text.splitlines()]
    said = (line for line in lines if line and not line.startswith("#"))
    return not _IS_FIELD.match(next(said, "")) and not _NAMES_ACL.search("\n".join(lines))
