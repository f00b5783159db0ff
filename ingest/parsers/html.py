"""HTML: what a reader of the page sees, without its scripts, menus and hidden parts."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urljoin, urlsplit

from ingest.parsers.blocks import placed, without_pictures
from ingest.parsers.html_hidden import strip_hidden
from ingest.parsers.html_tables import is_data_table, table_blocks
from quarry.records import Block, BlockKind, ParsedDocument, Scalar

_DROPPED = (
    "head, script, style, noscript, template, nav, iframe, object, embed, svg, canvas, audio,"
    " video, map, dialog, button, select, option, datalist, input, textarea, [hidden],"
    " [aria-hidden=true], [role=navigation], [role=search], [role=menu], [role=menubar],"
    " [role=dialog], [role=alert]"
)
_BLOCKS = frozenset(
    "address article aside blockquote body caption center dd details dialog div dl dt fieldset"
    " figcaption figure footer form h1 h2 h3 h4 h5 h6 header hgroup hr html legend li main ol p pre"
    " section summary table tbody td tfoot th thead tr ul".split()
)
_PERMALINKS = frozenset("§¶#🔗")
"""What stands in a heading as a link to itself."""
_HEADING = re.compile(r"h([1-6])")
_SPACE = re.compile(r"[ \t\r\n\f]+")
_CHARSET = re.compile(rb"<(?:meta|\?xml)[^>]*?(?:charset|encoding)\s*=\s*[\"']?\s*([\w.:-]+)", re.I)
_LANGUAGE = re.compile(r"(?:^|\s)(?:lang(?:uage)?|highlight|brush)[-:]\s*([\w+#-]+)")


def parse_html(text: str) -> ParsedDocument:
    """Blocks of the page, or of its main part where it marks one; offsets in the extracted text."""
    from selectolax.lexbor import LexborHTMLParser

    tree = LexborHTMLParser(text)
    properties = _properties(tree)
    title = _title(tree)
    _strip(tree)
    blocks = placed(_Walker().blocks(_root(tree)))
    heading = next((b.text for b in blocks if b.kind is BlockKind.HEADING and b.level == 1), "")
    if not title or (heading and heading.casefold() in title.casefold()):
        title = heading or title
    return ParsedDocument(title=title, blocks=blocks, properties=properties)


def declared_encoding(content: bytes) -> str:
    """The encoding that the head of a page names, empty if none."""
    match = _CHARSET.search(content[:2048])
    return match[1].decode("ascii") if match else ""


def html_blocks(fragment: str) -> Iterator[Block]:
    """Blocks of a piece of HTML inside another format; offsets are left to the caller."""
    from selectolax.lexbor import LexborHTMLParser

    tree = LexborHTMLParser(fragment)
    _strip(tree)
    if tree.body is not None:
        yield from _Walker().blocks(tree.body)


def _title(tree: Any) -> str:
    node = tree.css_first("head > title") or tree.css_first("title")
    if node is None or node.parent.tag == "svg":
        return ""
    return _SPACE.sub(" ", node.text()).strip()


def _properties(tree: Any) -> dict[str, Scalar]:
    """Canonical address and author, where the page names them."""
    found: dict[str, Scalar] = {}
    base = _attribute(tree, "base[href]", "href")
    graph = _attribute(tree, "meta[property='og:url']", "content")
    canonical = _attribute(tree, "link[rel=canonical]", "href")
    url = _joined(graph or base, canonical) if canonical else graph
    if _is_absolute(url):
        found["url"] = url
    author = _attribute(tree, "meta[name=author]", "content")
    if author:
        found["author"] = author
    return found


def _joined(base: str, address: str) -> str:
    try:
        return urljoin(base, address)
    except ValueError:  # brackets round what is no host
        return ""


def _is_absolute(url: str) -> bool:
    try:
        return urlsplit(url).scheme in ("http", "https")
    except ValueError:  # as above
        return False


def _attribute(tree: Any, selector: str, name: str) -> str:
    node = tree.css_first(selector)
    return (node.attributes.get(name) or "").strip() if node is not None else ""


def _strip(tree: Any) -> None:
    for node in tree.css(_DROPPED):
        node.decompose()
    strip_hidden(tree)


def _root(tree: Any) -> Any:
    """The one main part of the page if it holds a good share of the text, else the body."""
    body = tree.body if tree.body is not None else tree.root
    for selector in ("main, [role=main]", "article"):
        marked = tree.css(selector)
        if len(marked) == 1 and len(marked[0].text()) >= len(body.text()) * 0.25:
            return marked[0]
    return body


@dataclass
class _Walker:
    """Collects inline text until a block element opens or closes, without recursion."""

    inline: list[str] = field(default_factory=list)
    kind: BlockKind = BlockKind.PARAGRAPH
    level: int = 0
    anchor: str = ""
    lists: list[tuple[str, int]] = field(default_factory=list)
    """Open lists with the number of their current item."""
    section: str = ""
    """Id of a section that has just opened: the anchor of a heading right after it."""

    def blocks(self, root: Any) -> Iterator[Block]:
        stack: list[tuple[Any, bool]] = [(root, False)]
        while stack:
            node, closing = stack.pop()
            if closing:
                yield from self._close(node.tag)
            elif node.is_text_node:
                self.inline.append(node.text_content or "")
            elif node.is_element_node:
                descend = yield from self._open(node)
                if descend:
                    stack.append((node, True))
                    stack.extend((child, False) for child in reversed(_children(node)))
        yield from self._flush()

    def _open(self, node: Any) -> Any:
        """Blocks that this element ends or is; returns whether its children are to be walked."""
        tag = node.tag
        if tag not in _BLOCKS:
            return self._open_inline(node)
        yield from self._flush()
        if tag == "pre":
            yield from _code(node)
            return False
        if tag == "table" and is_data_table(node):
            yield from table_blocks(node)
            return False
        heading = _HEADING.fullmatch(tag)
        if heading:
            self.kind, self.level = BlockKind.HEADING, int(heading[1])
            self.anchor = _anchor(node) or self.section
        elif tag in ("ul", "ol"):
            self.lists.append((tag, int(_digits(node.attributes.get("start"), 1)) - 1))
        elif tag == "li":
            self._open_item()
        self.section = "" if heading else (node.attributes.get("id") or self.section)
        return True

    def _open_inline(self, node: Any) -> bool:
        if node.tag == "br":
            self.inline.append("\v")
        elif node.tag == "img":
            self.inline.append(f" {node.attributes.get('alt') or ''} ")
        elif node.tag == "a" and self.kind is BlockKind.HEADING:
            named = node.attributes.get("id") or node.attributes.get("name") or ""
            self.anchor = self.anchor or named
            return node.text().strip() not in _PERMALINKS
        return True

    def _open_item(self) -> None:
        self.kind = BlockKind.LIST_ITEM
        if self.lists:
            tag, number = self.lists[-1]
            self.lists[-1] = (tag, number + 1)
            if tag == "ol":
                self.inline.append(f"{number + 1}. ")
        self.level = min(max(len(self.lists) - 1, 0), 5)

    def _close(self, tag: str) -> Iterator[Block]:
        if tag not in _BLOCKS:
            return
        yield from self._flush()
        if tag in ("ul", "ol") and self.lists:
            self.lists.pop()

    def _flush(self) -> Iterator[Block]:
        text = flowed(without_pictures("".join(self.inline)))
        marker_only = self.kind is BlockKind.LIST_ITEM and re.fullmatch(r"\d+\.", text)
        if text and not marker_only:
            yield Block(kind=self.kind, text=text, level=self.level, anchor=self.anchor)
            self.section = ""
        if text and marker_only:
            self.inline[:] = [f"{text} "]
            return
        self.inline.clear()
        if text or self.kind is BlockKind.HEADING:
            self.kind, self.level, self.anchor = BlockKind.PARAGRAPH, 0, ""


def flowed(text: str) -> str:
    """Blanks collapsed as a browser does; \\v stands for a line break that was asked for."""
    lines = (_SPACE.sub(" ", line).strip() for line in text.split("\v"))
    return "\n".join(line for line in lines if line)


def _children(node: Any) -> list[Any]:
    return list(node.iter(include_text=True))


def _anchor(node: Any) -> str:
    inner = node.css_first("[id]")
    return node.attributes.get("id") or (inner.attributes.get("id") if inner else "") or ""


def _code(node: Any) -> Iterator[Block]:
    code = node.css_first("code")
    classes = " ".join((n.attributes.get("class") or "") for n in (node, code) if n is not None)
    language = _LANGUAGE.search(classes)
    text = without_pictures(node.text()).strip("\n").rstrip()
    yield Block(kind=BlockKind.CODE, text=text, language=language[1] if language else "")


def _digits(text: str | None, default: int) -> int:
    return int(text) if text and text.isdecimal() and len(text) < 7 else default
