"""The lines of one page: upright, with their style, and with mistaken glyphs mended."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

Box: TypeAlias = tuple[float, float, float, float]
"""x0, y0, x1, y1 in points, y downwards."""
Turn: TypeAlias = Callable[[Box], Box]

_BOLD = re.compile(r"bold|black|heavy|semibold|demi\b|-medi", re.I)
_MONO = re.compile(r"courier|mono|consol|menlo|typewriter|CMTT", re.I)
_TEX = re.compile(r"^(?:[A-Z]{6}\+)?(?:CM[A-Z]+\d+|SF[A-Z]{2}\d{4}|LM(?:Roman|Sans|Mono)\w*)")
_WIDE_BLANK = re.compile(r"\s{3,}")
_BREAKS = re.compile("[\t-\r\x85\u2028\u2029]")
_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f]")
_ACCENTS = {
    "˘": "\u0306", "ˇ": "\u030c", "¨": "\u0308", "˚": "\u030a", "˙": "\u0307", "˝": "\u030b",
    "¸": "\u0327", "˛": "\u0328", "˜": "\u0303", "ˆ": "\u0302", "´": "\u0301", "`": "\u0300",
}  # fmt: skip
_ACCENTED = re.compile(f"([{''.join(_ACCENTS)}]) ?([A-Za-zı])")
_RAISED = str.maketrans("0123456789+-−=()", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁻⁼⁽⁾")
_RAISED_TEXT = re.compile(r"[-+−]?\d{1,3}")

_MOST = 0.8
_BESIDE = 0.15
"""Font sizes by which a second drawing of the same text is moved at most."""
_CELL = 4.0
"""Points; where something was drawn is remembered in squares of this size."""
_LETTERS = re.compile(r"[^\W\d_]{3}")
_ODD_SIGNS = frozenset('#?!"@;$&')

_SUPERSCRIPT, _MONOSPACED, _BOLD_FLAG = 1, 8, 16


@dataclass(slots=True, kw_only=True)
class Line:
    """A run of text on one baseline, or a table that takes part in the layout as one box."""

    x0: float
    y0: float
    x1: float
    y1: float
    text: str
    size: float
    """Font size in points, of most of its letters."""
    bold: bool = False
    mono: bool = False
    spaced: bool = False
    """Whether a blank follows on the page: scripts that break words at line ends need to know."""
    table: Any = None
    aside: bool = False
    """Runs another way than the page, such as a stamp in the margin."""

    @property
    def height(self) -> float:
        return self.y1 - self.y0

    @property
    def middle(self) -> float:
        return (self.y0 + self.y1) / 2


@dataclass(frozen=True, slots=True)
class PageLines:
    upright: list[Line]
    aside: list[Line]
    """Lines that run another way than most, such as a stamp in the margin."""
    lost: int
    """Letters of lines that mean nothing, since their font does not say what its glyphs are."""
    turn: Turn
    """Brings a box of the page into the coordinates of the lines."""
    width: float
    height: float


def page_lines(page: Any) -> PageLines:
    """Lines in the order of the content stream. The page must not be rotated (`Rotate` 0)."""
    import pymupdf

    flags = pymupdf.TEXT_PRESERVE_LIGATURES | pymupdf.TEXT_PRESERVE_WHITESPACE
    flags |= pymupdf.TEXT_MEDIABOX_CLIP
    raw = [
        line
        for block in page.get_text("dict", flags=flags)["blocks"]
        for line in block.get("lines", ())
    ]
    direction = _main_direction(raw)
    turn = turned(direction, page.rect.width, page.rect.height)
    tex = any(_TEX.match(span["font"]) for line in raw for span in line["spans"])
    upright: list[Line] = []
    aside: list[Line] = []
    lost = 0
    drawn = Drawn()
    for line in raw:
        same = _quarter(line["dir"]) == direction
        for found in _lines(line, turn, tex=tex):
            if _meaningless(found):
                lost += len(found.text)
            elif not drawn.again(found.text, found.x0, found.y0, found.size):
                found.aside = not same
                (upright if same else aside).append(found)
    _, _, width, height = turn(tuple(page.rect))
    return PageLines(upright, aside, lost, turn, width, height)


class Drawn:
    """What has been drawn where: fake bold and shadows draw the same once more beside itself."""

    def __init__(self) -> None:
        self._places: dict[tuple[str, int, int], list[tuple[float, float]]] = {}

    def again(self, text: str, x: float, y: float, size: float) -> bool:
        """Whether this text stands already within a fraction of its font size.

        The fraction is less than the width of the narrowest letter: there are two l in "null".
        """
        near = _BESIDE * size
        column, row = int(x / _CELL), int(y / _CELL)
        reach = range(-1, 2) if near < _CELL else range(-2, 3)
        for i in reach:
            for j in reach:
                for a, b in self._places.get((text, column + i, row + j), ()):
                    if abs(x - a) <= near and abs(y - b) <= near:
                        return True
        self._places.setdefault((text, column, row), []).append((x, y))
        return False


def _meaningless(line: Line) -> bool:
    """Signs in the place of letters: no three letters in a row, many signs, some that no formula
    uses."""
    text = line.text.strip()
    if line.mono or len(text) < 4 or _LETTERS.search(text):
        return False
    signs = sum(1 for char in text if not char.isalnum() and not char.isspace())
    odd = sum(1 for char in text if char in _ODD_SIGNS)
    return signs > 0.3 * len(text) and odd > 0.07 * len(text)


def turned(direction: tuple[int, int], width: float, height: float) -> Turn:
    """The map that makes lines of this direction run from left to right."""
    match direction:
        case (0, -1):
            return lambda b: (height - b[3], b[0], height - b[1], b[2])
        case (0, 1):
            return lambda b: (b[1], width - b[2], b[3], width - b[0])
        case (-1, 0):
            return lambda b: (width - b[2], height - b[3], width - b[0], height - b[1])
        case _:
            return lambda b: b


def mended(text: str, *, tex: bool) -> str:
    """Control characters out; what TeX fonts draw as two glyphs or name wrongly made one letter."""
    text = _CONTROLS.sub("", _BREAKS.sub(" ", text))
    if not tex or text.isascii():
        return text
    text = text.replace("↵", "ff").replace("c⃝", "©").replace("c \u20dd", "©")
    return _ACCENTED.sub(_composed, text)


def _composed(match: re.Match[str]) -> str:
    letter = "i" if match[2] == "ı" else match[2]
    composed = unicodedata.normalize("NFC", letter + _ACCENTS[match[1]])
    return composed if len(composed) == 1 else match[0]


def _main_direction(raw: Iterable[Any]) -> tuple[int, int]:
    weights: Counter[tuple[int, int]] = Counter()
    for line in raw:
        weights[_quarter(line["dir"])] += sum(len(span["text"]) for span in line["spans"])
    return weights.most_common(1)[0][0] if weights else (1, 0)


def _quarter(direction: tuple[float, float]) -> tuple[int, int]:
    """The nearest of the four directions; a few degrees of skew are none of their own."""
    x, y = direction
    return (0, 1 if y > 0 else -1) if abs(y) > abs(x) else (1 if x > 0 else -1, 0)


def _lines(raw: Any, turn: Turn, *, tex: bool) -> list[Line]:
    spans = [span for span in raw["spans"] if span["text"]]
    if not any(span["text"].strip() for span in spans):
        return []
    sizes: Counter[float] = Counter()
    bold = mono = letters = 0
    for span in spans:
        count = len(span["text"].strip())
        letters += count
        sizes[round(span["size"] * 2) / 2] += count
        bold += count * (bool(span["flags"] & _BOLD_FLAG) or bool(_BOLD.search(span["font"])))
        mono += count * (bool(span["flags"] & _MONOSPACED) or bool(_MONO.search(span["font"])))
    size = sizes.most_common(1)[0][0] or 1.0
    text = "".join(_span_text(span, size, first=span is spans[0]) for span in spans)
    x0, y0, x1, y1 = turn(tuple(raw["bbox"]))
    line = Line(
        x0=x0,
        y0=y0,
        x1=x1,
        y1=y1,
        text=mended(text, tex=tex and mono <= letters * _MOST),
        size=size,
        bold=bold > letters * 0.6,
        mono=mono > letters * _MOST,
        spaced=text[-1:].isspace(),
    )
    return [line] if line.mono else _split(line)


def _span_text(span: Any, size: float, *, first: bool) -> str:
    """The text of a span; raised figures stay raised, so that a note's mark is not a digit more."""
    text = str(span["text"])
    raised = span["size"] < size * 0.85 and (first or span["flags"] & _SUPERSCRIPT)
    return text.translate(_RAISED) if raised and _RAISED_TEXT.fullmatch(text.strip()) else text


def _split(line: Line) -> list[Line]:
    """Parts between wide blanks, which separate the cells of a row; places are in proportion."""
    text = line.text
    scale = (line.x1 - line.x0) / max(len(text), 1)
    parts: list[Line] = []
    start = 0
    for blank in [*_WIDE_BLANK.finditer(text), None]:
        end = blank.start() if blank else len(text)
        part = text[start:end].strip()
        if part:
            x0, x1 = line.x0 + start * scale, line.x0 + end * scale
            parts.append(replace(line, text=part, x0=x0, x1=x1, spaced=line.spaced or bool(blank)))
        start = blank.end() if blank else end
    return parts
