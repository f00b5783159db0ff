"""What a Markdown renderer that lets HTML through would make of an answer."""

from __future__ import annotations

from collections.abc import Iterator

import regex
from markdown_it import MarkdownIt
from markdown_it.token import Token

_MARKDOWN = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
_HARMLESS = regex.compile(r"</?(?:br|sub|sup)\s?/?>", regex.IGNORECASE)
_BARE = regex.compile(r"(?:(?:https?|ftp|wss?|file)://|www\.)[^\s<]+", regex.IGNORECASE)


def dangers(text: str, known: str) -> list[str]:
    """Images, HTML and links to anything but the known address, bare addresses too."""
    tokens = list(_flat(_MARKDOWN.parse(text)))
    found = [token.type for token in tokens if token.type == "image"]
    found += [
        token.content
        for token in tokens
        if token.type in ("html_inline", "html_block") and not _HARMLESS.fullmatch(token.content)
    ]
    found += [
        str(token.attrGet("href"))
        for token in tokens
        if token.type == "link_open" and not _is(known, str(token.attrGet("href")))
    ]
    # A renderer that makes links of bare addresses takes all up to the next blank.
    bare = [address for token in tokens for address in _BARE.findall(_text(token))]
    return found + [address for address in bare if not _is(known, address)]


def _flat(tokens: list[Token]) -> Iterator[Token]:
    for token in tokens:
        yield token
        yield from _flat(token.children or [])


def _text(token: Token) -> str:
    """Of what is not code, which no renderer makes a link of."""
    return token.content if token.type == "text" else ""


def _is(known: str, address: str) -> bool:
    return (
        regex.fullmatch(regex.escape(known) + r"""/*[\]})"'`|>*_.,;:!?…~]*""", address) is not None
    )
