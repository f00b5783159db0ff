"""Markdown: CommonMark with tables, definition lists, admonitions and front matter."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ingest.parsers.blocks import says_something, table, without_pictures
from ingest.parsers.decoding import mangled, mended
from ingest.parsers.front_matter import front_matter
from ingest.parsers.html import html_blocks
from ingest.parsers.markdown_nesting import TOO_DEEP, is_too_deep, keep_the_deepest
from quarry.records import Block, BlockKind, DocState, ParsedDocument

_LINE_END = re.compile(r"\r\n|\r|\n")
_ATTRIBUTES = re.compile(
    r"[ \t]*\{:?[ \t]*((?:[#.][\w:.-]+|[\w-]+=(?:\"[^\"]*\"|\S+))[^{}]*)\}[ \t]*$"
)
_MARK_ATTRIBUTES = re.compile(r"^\{:?[ \t]*[#.][^{}]*\}")
_MARKED = frozenset({"code_inline", "link_close", "image", "strong_close", "em_close"})
"""After these an attribute list belongs to the mark, not to the text."""
_ID = re.compile(r"#([\w:.-]+)")
_FENCE_LANGUAGE = re.compile(r"(?:\{\s*)?\.?([\w+#.-]+)")
_BREAK = re.compile(r"<br\s*/?>", re.I)


def parse_markdown(text: str) -> ParsedDocument:
    """Blocks with the character offsets of their source lines in `text`.

    Raises ParseError (state failed) if there is front matter that cannot be read: it may hold an
    ACL, so the text must not be taken without it. Partial if its structure is lost at the bottom.
    """
    metadata, body = front_matter(text)
    reader = _Reader(text, body)
    blocks = tuple(reader.blocks())
    if mangled(text):
        blocks = tuple(replace(block, text=mended(block.text)) for block in blocks)
    titles = (b.text for b in blocks if b.kind is BlockKind.HEADING and b.level == 1)
    parsed = ParsedDocument(title=next(titles, ""), blocks=blocks, metadata=metadata)
    if is_too_deep(reader.env):
        return replace(parsed, state=DocState.PARTIAL, reason=TOO_DEEP)
    return parsed


@dataclass
class _Reader:
    """Walks the token stream once; offsets come from the line numbers that tokens carry."""

    text: str
    body: int
    """Offset after the front matter."""
    starts: list[int] = field(default_factory=list)
    """Offset of each line of the body."""
    lists: list[int | None] = field(default_factory=list)
    """Open lists, the number of the current item for ordered ones."""
    item_open: bool = False
    """Whether the current list item still waits for its first line."""
    slugs: dict[str, int] = field(default_factory=dict)
    env: dict[str, Any] = field(default_factory=dict)
    """What the library notes of the whole text."""

    def blocks(self) -> Iterator[Block]:
        tokens = _parser().parse(self.text[self.body :], self.env)
        self.starts = [
            self.body,
            *(self.body + m.end() for m in _LINE_END.finditer(self.text[self.body :])),
        ]
        position = 0
        while position < len(tokens):
            token = tokens[position]
            if token.type == "table_open":
                last = next(
                    n for n in range(position, len(tokens)) if tokens[n].type == "table_close"
                )
                found: Iterator[Block] = self._table(tokens[position:last])
                position = last
            else:
                found = self._token(token, tokens[position - 1] if position else None)
            yield from (block for block in found if says_something(block))
            position += 1

    def _token(self, token: Any, before: Any) -> Iterator[Block]:
        match token.type:
            case "bullet_list_open":
                self.lists.append(None)
            case "ordered_list_open":
                self.lists.append(int(token.attrs.get("start", 1)) - 1)
            case "bullet_list_close" | "ordered_list_close":
                self.lists.pop()
                self.item_open = False
            case "list_item_open":
                number = self.lists[-1]
                self.lists[-1] = None if number is None else number + 1
                self.item_open = True
            case "inline":
                yield self._inline(token, before)
            case "fence" | "code_block":
                yield self._code(token)
            case "html_block":
                start, end = self._span(token)
                for block in html_blocks(token.content):
                    yield replace(block, start=start, end=end)

    def _inline(self, token: Any, before: Any) -> Block:
        text = _plain(token.children or ())
        if before is not None and before.type == "heading_open":
            return self._heading(token, text, level=int(before.tag[1]))
        kind, level = BlockKind.PARAGRAPH, 0
        text = _ATTRIBUTES.sub("", text)
        if self.item_open and self.lists:
            kind, level = BlockKind.LIST_ITEM, min(len(self.lists) - 1, 5)
            text = text if self.lists[-1] is None else f"{self.lists[-1]}. {text}"
        self.item_open = False
        return self._exact(Block(kind=kind, text=text, level=level), *self._span(token))

    def _heading(self, token: Any, text: str, *, level: int) -> Block:
        attributes = _ATTRIBUTES.search(text)
        named = _ID.search(attributes[1]) if attributes else None
        text = text[: attributes.start()] if attributes else text
        anchor = self._anchor(named[1] if named else _slug(text))
        block = Block(kind=BlockKind.HEADING, text=text, level=level, anchor=anchor)
        return self._exact(block, *self._span(token))

    def _anchor(self, slug: str) -> str:
        """The slug, numbered if an earlier heading of this document has it already."""
        anchor, count = slug, self.slugs.get(slug, 0)
        while anchor in self.slugs:
            count += 1
            anchor = f"{slug}-{count}"
        self.slugs[slug] = count
        self.slugs.setdefault(anchor, 0)
        return anchor

    def _code(self, token: Any) -> Block:
        match = _FENCE_LANGUAGE.match(token.info.strip()) if token.info else None
        language = match[1] if match else ""
        first, last = token.map
        if token.type == "fence":
            first += 1
        start = self.starts[min(first, len(self.starts) - 1)]
        code = without_pictures(token.content).rstrip()
        block = Block(kind=BlockKind.CODE, text=code, language=language)
        return self._exact(block, start, self._end(last))

    def _table(self, tokens: Sequence[Any]) -> Iterator[Block]:
        rows: list[list[str]] = []
        for token in tokens:
            if token.type == "tr_open":
                rows.append([])
            elif token.type == "inline":
                rows[-1].append(_plain(token.children or ()))
        block = table(rows, header_rows=1)
        if block:
            start, end = self._span(tokens[0])
            yield replace(block, start=start, end=end)

    def _span(self, token: Any) -> tuple[int, int]:
        first, last = token.map
        return self.starts[first], self._end(max(last, first + 1))

    def _end(self, line: int) -> int:
        """Offset after the last visible character of the lines before this one."""
        end = self.starts[line] if line < len(self.starts) else len(self.text)
        while end > self.body and self.text[end - 1].isspace():
            end -= 1
        return end

    def _exact(self, block: Block, start: int, end: int) -> Block:
        """With the offsets narrowed to the text itself, where the source holds just that."""
        lines = self.text[start:end]
        found = _LINE_END.sub(lambda match: " " * len(match[0]), lines).find(block.text)
        if block.kind is BlockKind.CODE:
            found = lines.find(block.text)
        if found >= 0 and block.text:
            start, end = start + found, start + found + len(block.text)
        return replace(block, start=start, end=end)


def _parser() -> Any:
    from markdown_it import MarkdownIt
    from mdit_py_plugins.admon import admon_plugin
    from mdit_py_plugins.deflist import deflist_plugin

    parser = MarkdownIt("commonmark").enable(["table", "strikethrough"])
    parser.validateLink = _is_read  # type: ignore[assignment,method-assign]
    return keep_the_deepest(parser.use(admon_plugin).use(deflist_plugin))


def _is_read(address: str) -> bool:
    """Whether `[text](address)` is a link: a picture in the text always is, else the library says.

    Where it leads never matters here: addresses are left out of the text.
    """
    from markdown_it.common.normalize_url import validateLink

    return address.lower().startswith("data:image/") or validateLink(address)


def _plain(tokens: Sequence[Any]) -> str:
    """Inline tokens as a reader sees them: no marks, no link targets, pictures by their text."""
    parts: list[str] = []
    before = ""
    for token in tokens:
        match token.type:
            case "text" if before in _MARKED:
                parts.append(_MARK_ATTRIBUTES.sub("", token.content))
            case "text" | "code_inline":
                parts.append(token.content)
            case "softbreak":
                parts.append(" ")
            case "hardbreak":
                parts.append("\n")
            case "image":
                parts.append(_plain(token.children or ()))
            case "html_inline" if _BREAK.fullmatch(token.content):
                parts.append("\n")
        before = token.type
    return without_pictures("".join(parts)).strip()


def _slug(text: str) -> str:
    """The anchor that common renderers give a heading: lower case, dashes, no punctuation."""
    return re.sub(r"\s+", "-", re.sub(r"[^\w\s-]", "", text.lower()).strip()) or "section"
