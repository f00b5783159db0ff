"""Keeps foreign links and all images out of an answer, while it streams.

A generator may be told by a document, or make up by itself, an address that carries what it read
to somebody else: as an image it is fetched without a click. So only addresses that stand in the
sources pass, and only as links.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import regex

from quarry.records import Evidence
from serve.answering.markdown_code import BlockTracker, CodeTracker

_TEXT = r"[^\[\]\n]{0,200}"
_TARGET = r"[^()\s]{0,2000}(?:\([^()\s]{0,500}\)[^()\s]{0,500}){0,3}"
_TITLE = r"""(?:\s(?:"[^"\n]{0,200}"|'[^'\n]{0,200}'))?"""
_PLAIN_TITLE = r"""(?:\s(?:"[^"<>\[\]`\\\n]{0,200}"|'[^'<>\[\]`\\\n]{0,200}'))?"""
_BEGUN = r"(?:(?:https?|ftp|wss?|file)://|www\.)"
_URL = _BEGUN + r"[^\s<>\"'`\[\]{}|\\^]{1,2000}"
_LOADING = (
    "a|applet|area|audio|base|body|button|embed|form|frame|frameset|iframe|image|img|input|link|"
    "math|meta|object|picture|script|source|style|svg|track|video"
)
_ATTRIBUTED = r"[a-z][\w-]{0,30}\s{1,3}[^\s<>=/]{1,50}\s?="
_PATTERNS = {
    # Tried in this order; every repeat is bounded, so that what a stream holds back is short.
    "link": rf"!?\[(?P<text>{_TEXT})\]\(\s?<?(?P<target>{_TARGET})>?{_TITLE}\s?\)",
    "address": rf"<(?P<target>{_URL})>",
    "scheme": r"<(?P<target>[a-z][a-z0-9+.-]{1,31}:[^\s<>]{0,2000})>",
    "break": r"</?(?:br|sub|sup)\s?/?>",
    "tag": rf"</?(?:(?:{_LOADING})\b[^<>]{{0,1000}}|{_ATTRIBUTED}[^<>]{{0,1000}})>",
    "opened": r"<(?=[a-z/!?]|[\w.!#$%&'*+/=?^`{|}~-]{1,200}@)",
    # A renderer may take all up to the next blank for the address.
    "url": rf"(?P<target>{_URL})[\]}}\"'`|>)*_.,;:!?…]{{0,9}}(?P<more>(?!(?<=\])\()[^\s<])?",
    "begun": rf"{_BEGUN}(?=[^\s<])",
    "image": r"!(?=\[)",
    "target": (rf"\]\(\s?(?:<(?P<target>{_TARGET})>|(?P<target>{_TARGET})){_PLAIN_TITLE}\s?\)"),
    "into": r"\](?=\()",
    "definition": r"\](?=:)",
}
_TOKENS = tuple((kind, regex.compile(each, regex.IGNORECASE)) for kind, each in _PATTERNS.items())
_IN_CODE = tuple(token for token in _TOKENS if token[0] not in ("link", "scheme", "tag"))
"""Where code is likely nothing is left out but foreign addresses; the rest is set apart. Backticks
in a line are never more than likely code: those of a line before may belong to them."""
_IN_FENCE = tuple(token for token in _TOKENS if token[0] in ("address", "url"))
_CANDIDATE = regex.compile(r"[!\[\]<hfw]", regex.IGNORECASE)
_LABEL = regex.compile(r"S\s?\d{1,3}", regex.IGNORECASE)
_ADDRESS = regex.compile(_URL, regex.IGNORECASE)
_TRAILING = ".,;:!?)'\"*_~…"
_JOINED = regex.compile(
    # What was apart and would now be read as one: a link, an image, a tag, backticks, an address.
    r"(?:[\]!<`~]\S|[\p{L}\p{N}:/.][\p{L}\p{N}]|(?:https?|ftp|wss?|file):|[:/]\S"
    r"|www\.|(?:://|www\.)\S+)$",
    regex.IGNORECASE,
)
_TAIL = 2100
"""Characters before a gap that tell whether something would be joined over it."""


class LinkGuard:
    """Passes generated text on without images, without links that are not allowed, and without
    HTML that links, loads or runs anything.

    However a text is cut into pieces, what comes out is the same. The text has plain characters
    alone (`writing.PlainCharacters`). The guard must be the last that changes it: what joins pieces
    of it afterwards could make links of them.
    """

    def __init__(self, allowed: Iterable[str]) -> None:
        self._allowed = frozenset(_bare(address) for address in allowed)
        self._held = ""
        self._gap = False
        self._tail = ""
        self._code = CodeTracker()
        self._blocks = BlockTracker()
        self.removed = 0
        """Images and links left out."""

    def feed(self, text: str) -> str:
        """What can be shown already; the rest may be the start of a link."""
        self._held += text
        return self._flow(last=False)

    def finish(self) -> str:
        """What was held back; nothing may be fed afterwards."""
        return self._flow(last=True)

    def _flow(self, *, last: bool) -> str:
        shown: list[str] = []
        while (candidate := _CANDIDATE.search(self._held)) is not None:
            shown.append(self._pass(candidate.start()))
            kind, found = self._token(last=last)
            if kind and found is None:
                return "".join(shown)
            shown.append(self._settle(kind, found) if found else self._pass(1))
        shown.append(self._pass(len(self._held)))
        return "".join(shown)

    def _token(self, *, last: bool) -> tuple[str, regex.Match[str] | None]:
        """What begins here: its kind and match; a kind alone if more text is needed to tell."""
        for kind, pattern in self._tokens():
            found = pattern.match(self._held, partial=not last)
            if found is None:
                continue
            grows = kind == "url" and found.end() == len(self._held)
            return kind, None if found.partial or (grows and not last) else found
        return "", None

    def _tokens(self) -> Sequence[tuple[str, regex.Pattern[str]]]:
        if self._blocks.in_fence():
            return _IN_FENCE
        return _IN_CODE if self._code.inside() else _TOKENS

    def _settle(self, kind: str, found: regex.Match[str]) -> str:
        if kind in ("address", "scheme", "url"):
            return self._address(kind, found)
        if kind == "link":
            return self._link(found)
        if kind == "tag":
            return self._drop(found.end())
        whole = (
            (kind == "target" and self._may(found["target"]))
            or (kind == "break" and not self._blocks.at_beginning())
            or (kind == "definition" and not self._blocks.may_define)
        )
        if whole:
            return self._pass(found.end())
        length = found.end() if kind == "begun" else 1
        return self._pass(length) + self._pass_blank()  # apart, none of these marks means anything

    def _address(self, kind: str, found: regex.Match[str]) -> str:
        if kind != "url":
            may = self._may(found["target"])
            return self._pass(found.end()) if may else self._drop(found.end())
        target = found["target"].rstrip(_TRAILING)
        if not self._may(target):
            return self._drop(len(target))
        passed = self._pass(found.end("target"))
        return passed + self._pass_blank() if found["more"] else passed

    def _link(self, found: regex.Match[str]) -> str:
        is_image = found.group().startswith("!")
        if not is_image and self._may(found["target"]):
            return self._pass(1)  # its text may hold anything
        text = found["text"]
        label = not is_image and _LABEL.fullmatch(text)
        return self._drop(found.end(), put_back=f"[{text}]" if label else text)

    def _may(self, address: str) -> bool:
        return address.rstrip("/") in self._allowed

    def _pass(self, length: int) -> str:
        """Takes so much of what is held as it is, apart from what it must not be joined to."""
        text, self._held = self._held[:length], self._held[length:]
        if not text:
            return ""
        if self._gap and _JOINED.search(self._tail + text[0]):
            text = " " + text
        self._gap = False
        return self._note(text)

    def _pass_blank(self) -> str:
        return self._note(" ")

    def _note(self, text: str) -> str:
        self._code.pass_over(text)
        self._blocks.pass_over(text)
        self._tail = (self._tail + text)[-_TAIL:]
        return text

    def _drop(self, length: int, *, put_back: str = "") -> str:
        """Leaves out so much of what is held; what is put back is looked at again."""
        self._held = put_back + self._held[length:]
        self._gap = True
        self.removed += 1
        return ""


def addresses(evidence: Iterable[Evidence]) -> set[str]:
    """The web addresses that the sources of an answer hold, or are at."""
    found: set[str] = set()
    for item in evidence:
        found.update(match.group().rstrip(_TRAILING) for match in _ADDRESS.finditer(item.text))
        found.update(filter(None, (item.document.url, item.document.uri)))
    return found


def _bare(address: str) -> str:
    return address.rstrip(_TRAILING).rstrip("/")
