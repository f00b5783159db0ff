"""Plain text: paragraphs as they were meant, headings only where they are underlined or shouted."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from itertools import pairwise

from ingest.parsers.decoding import mangled, mended
from quarry.records import Block, BlockKind

_LINE = re.compile(r"([^\r\n]*)(\r\n|\r|\n|\Z)")
_UNDERLINE = re.compile(r"\s*([=\-~^#*])\1{2,}\s*")
_BULLET = re.compile(r"\s*(?:[-*•‣◦▪●·–]|\(?[1-9]\d{0,2}[.)]|[a-z]\))\s+(?=\S)")
_ENDS_SENTENCE = re.compile(r"[.!?:;…。！？؟][\"'”’»)\]]*(?:\[\d+\])*\s*$")
_NEIGHBOURS = 15
"""Lines before and after that tell how wide the lines are here."""
_MIN_WRAP, _MAX_WRAP = 40, 160
"""Widths of lines that were wrapped by hand: shorter ones are meant, longer ones paragraphs."""


class _End(Enum):
    WRAP = "the next word had no room"
    LINE = "meant, as in an address"
    PARAGRAPH = "the last line of a paragraph"


@dataclass(frozen=True, slots=True)
class _Line:
    text: str
    start: int

    @property
    def end(self) -> int:
        return self.start + len(self.text.rstrip())

    @property
    def blank(self) -> bool:
        return not self.text.strip()


def text_blocks(text: str) -> Iterator[Block]:
    """Blocks with their exact character offsets in `text`.

    Lines that were wrapped by hand are joined: a line end becomes a blank where the next word would
    not have fitted, which keeps the length, and stays a line end elsewhere.
    """
    lines = [_Line(match[1], match.start()) for match in _LINE.finditer(text) if match[0]]
    mend = mangled(text)
    group: list[_Line] = []
    for line in [*lines, _Line("", len(text))]:
        if not line.blank:
            group.append(line)
            continue
        for block in _group_blocks(text, group):
            yield replace(block, text=mended(block.text)) if mend else block
        group = []


def _group_blocks(text: str, lines: list[_Line]) -> Iterator[Block]:
    """The blocks of lines between two blank lines."""
    if len(lines) == 2 and _UNDERLINE.fullmatch(lines[1].text):
        level = 1 if lines[1].text.strip()[0] == "=" else 2
        yield _block(text, lines[:1], [], BlockKind.HEADING, level)
        return
    if len(lines) == 1 and _shouted(lines[0].text):
        yield _block(text, lines, [], BlockKind.HEADING, 2)
        return
    ends = _line_ends(lines)
    start = 0
    for position in range(1, len(lines) + 1):
        parted = position == len(lines) or _BULLET.match(lines[position].text) is not None
        if parted or ends[position - 1] is _End.PARAGRAPH:
            part = lines[start:position]
            kind = BlockKind.LIST_ITEM if _BULLET.match(part[0].text) else BlockKind.PARAGRAPH
            if not _UNDERLINE.fullmatch(part[0].text):
                yield _block(text, part, ends[start : position - 1], kind, 0)
            start = position


def _line_ends(lines: Sequence[_Line]) -> list[_End]:
    """What the end of each line but the last means.

    A line that is about as long as the longest ones around was wrapped; one that ends a sentence
    well before that ends a paragraph.
    """
    lengths = [len(line.text.rstrip()) for line in lines]
    ends: list[_End] = []
    for position in range(len(lines) - 1):
        around = sorted(lengths[max(0, position - _NEIGHBOURS) : position + _NEIGHBOURS])
        width = around[int(len(around) * 0.9)]
        word = lines[position + 1].text.split(maxsplit=1)[0]
        room = width - lengths[position]
        stopped = _ENDS_SENTENCE.search(lines[position].text) is not None
        if not _MIN_WRAP <= width <= _MAX_WRAP:
            ends.append(_End.LINE)
        elif room <= len(word) or (not stopped and (room <= width / 4 or word[0].islower())):
            ends.append(_End.WRAP)
        else:
            ends.append(_End.PARAGRAPH if stopped and room > width * 0.15 else _End.LINE)
    return ends


def _block(
    text: str, lines: list[_Line], ends: Sequence[_End], kind: BlockKind, level: int
) -> Block:
    start = lines[0].start + len(lines[0].text) - len(lines[0].text.lstrip())
    if kind is BlockKind.LIST_ITEM:
        first = lines[0].text.expandtabs(4)
        level = min((len(first) - len(first.lstrip())) // 2, 5)
    end = lines[-1].end
    content = list(text[start:end])
    for (before, after), line_end in zip(pairwise(lines), ends, strict=True):
        if line_end is _End.WRAP or kind is BlockKind.LIST_ITEM:
            joint = slice(before.end - start, after.start - start)
            content[joint] = " " * (joint.stop - joint.start)
    return Block(kind=kind, text="".join(content), level=level, start=start, end=end)


def _shouted(line: str) -> bool:
    """A short line of capitals that stands alone."""
    letters = [char for char in line if char.isalpha()]
    return (
        len(letters) >= 4
        and len(line.strip()) <= 70
        and all(char.isupper() for char in letters)
        and len(letters) > len(line.strip()) // 2
        and not line.rstrip().endswith((".", ",", ";"))
    )
