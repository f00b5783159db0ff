"""Keeps foreign links and all images out of an answer, while it streams.

A generator may be told by a document, or make up by itself, an address that carries what it read
to somebody else: as an image it is fetched without a click. So only addresses that stand in the
sources pass, and only as links.
"""

from __future__ import annotations

from collections.abc import Iterable

import regex

from quarry.records import Evidence
from serve.answering.markdown_code import CodeTracker

_TEXT = r"[^\[\]\n]{0,200}"
_TARGET = r"[^()\s]{0,2000}(?:\([^()\s]{0,500}\)[^()\s]{0,500}){0,3}"
_TITLE = r"""(?:\s(?:"[^"\n]{0,200}"|'[^'\n]{0,200}'))?"""
_URL = r"(?:(?:https?|ftp|wss?|file)://|www\.)[^\s<>\"'`\[\]{}|\\^]{1,2000}"
_LOADING = (
    "a|applet|area|audio|base|body|button|embed|form|frame|frameset|iframe|image|img|input|link|"
    "math|meta|object|picture|script|source|style|svg|track|video"
)
_ATTRIBUTED = r"[a-z][\w-]{0,30}\s{1,3}[^\s<>=/]{1,50}\s?="
_TOKENS = tuple(
    (kind, regex.compile(pattern, regex.IGNORECASE))
    for kind, pattern in (
        # Tried in this order; every repeat is bounded, so that what a stream holds back is short.
        ("link", rf"!?\[(?P<text>{_TEXT})\]\(\s?<?(?P<target>{_TARGET})>?{_TITLE}\s?\)"),
        ("address", rf"<(?P<target>{_URL})>"),
        ("tag", rf"</?(?:(?:{_LOADING})\b[^<>]{{0,1000}}|{_ATTRIBUTED}[^<>]{{0,1000}})>"),
        ("opened", rf"</?(?:(?:{_LOADING})\b|{_ATTRIBUTED})"),
        ("url", rf"(?P<target>{_URL})"),
        ("image", r"!(?=\[)"),
        ("into", r"\](?=\()"),
        ("definition", r"\](?=:)"),
    )
)
_CANDIDATE = regex.compile(r"[!\[\]<hfw]", regex.IGNORECASE)
_LABEL = regex.compile(r"S\s?\d{1,3}", regex.IGNORECASE)
_ADDRESS = regex.compile(_URL, regex.IGNORECASE)
_TRAILING = ".,;:!?)'\"*_~…"
_DEFINED = regex.compile(r"[\s>*+\-.)\d]*\[[^\[\]]*")
"""A line up to the `]:` of a reference definition, in a list or a quotation too."""
_LINE = 1200
"""Characters of a line that are remembered; a definition's label is at most 999 long."""


class LinkGuard:
    """Passes generated text on without images, without links that are not allowed, and without
    HTML that links, loads or runs anything.

    However a text is cut into pieces, what comes out is the same.
    """

    def __init__(self, allowed: Iterable[str]) -> None:
        self._allowed = frozenset(_bare(address) for address in allowed)
        self._held = ""
        self._line = ""
        self._code = CodeTracker()
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
        for kind, pattern in _TOKENS:
            found = pattern.match(self._held, partial=not last)
            if found is None:
                continue
            grows = kind in ("url", "opened") and found.end() == len(self._held)
            return kind, None if found.partial or (grows and not last) else found
        return "", None

    def _settle(self, kind: str, found: regex.Match[str]) -> str:
        in_code = self._code.inside()
        if kind in ("address", "url"):
            return self._address(kind, found)
        if in_code:  # nothing is rendered there
            return self._pass(1)
        if kind == "link":
            return self._link(found)
        if kind == "tag":
            return self._drop(found.end())
        if kind == "definition" and not _DEFINED.fullmatch(self._line):
            return self._pass(1)
        return self._pass(1) + " "  # apart, none of these marks means anything

    def _address(self, kind: str, found: regex.Match[str]) -> str:
        target = found["target"].rstrip(_TRAILING)
        if self._may(target):
            return self._pass(found.end())
        behind = found["target"][len(target) :] if kind == "url" else ""
        return self._drop(found.end(), put_back=behind)

    def _link(self, found: regex.Match[str]) -> str:
        is_image = found.group().startswith("!")
        if not is_image and self._may(found["target"]):
            return self._pass(found.end())
        text = found["text"]
        label = not is_image and _LABEL.fullmatch(text)
        return self._drop(found.end(), put_back=f"[{text}]" if label else text)

    def _may(self, address: str) -> bool:
        return _bare(address) in self._allowed

    def _pass(self, length: int) -> str:
        """Takes so much of what is held as it is."""
        text, self._held = self._held[:length], self._held[length:]
        self._code.pass_over(text)
        self._line = (self._line + text)[-_LINE:].rpartition("\n")[2]
        return text

    def _drop(self, length: int, *, put_back: str = "") -> str:
        """Leaves out so much of what is held; what is put back is looked at again."""
        self._held = put_back + self._held[length:]
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
