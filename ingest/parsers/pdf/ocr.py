"""Reading scanned pages with a packaged engine; nothing is downloaded."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import median
from typing import Any, TypeAlias

from ingest.parsers.pdf.lines import Line

_Quad: TypeAlias = list[tuple[float, float]]
"""Corners of a line: top left, top right, bottom right, bottom left."""

_DPI = 200
_MAX_PIXELS = 25_000_000
_MIN_SCORE = 0.5
"""Confidence below which a line is noise."""
_SMALLER, _LARGER = 0.7, 1.35
_LETTER = 0.85
"""Font size as a share of the height of a detected line."""
_WORD_GAP = 0.75
"""Share of a usual blank from which the empty columns between two letters are one."""
_MIN_BLANKS = 3
"""Blanks that the engine must have seen on a page to tell how wide they are."""
_SPECKS = 1
"""Dark pixels that an empty column may hold."""


class Reader:
    """One engine for all pages of a process, made when the first scan comes."""

    def __init__(self) -> None:
        self._engine: Any = None

    def lines(self, page: Any) -> list[Line]:
        """Lines of a page as it is seen, in points, with the skew of the scan taken out."""
        import numpy as np

        area = abs(page.rect) / 72**2
        dpi = int(min(_DPI, math.sqrt(_MAX_PIXELS / max(area, 1e-6))))
        pixels = page.get_pixmap(dpi=dpi, colorspace="rgb", alpha=False)
        image = np.frombuffer(pixels.samples, dtype=np.uint8)
        image = image.reshape(pixels.height, pixels.width, 3)[:, :, ::-1]
        found, _ = self._ready()(np.ascontiguousarray(image), return_word_box=True)
        grey = image.min(axis=2)
        dark = grey < (int(np.median(grey)) + int(grey.min())) // 2
        scale = 72 / dpi
        kept = [line for line in found or () if float(line[2]) >= _MIN_SCORE and line[1].strip()]
        texts = _with_blanks(kept, dark)
        quads = [[(x * scale, y * scale) for x, y in line[0]] for line in kept]
        return _upright(list(zip(quads, texts, strict=True)))

    def _ready(self) -> Any:
        if self._engine is None:
            import cv2
            from rapidocr_onnxruntime import RapidOCR

            cv2.setNumThreads(1)  # there is one parser process a core
            self._engine = RapidOCR(intra_op_num_threads=1, inter_op_num_threads=1)
        return self._engine


def _with_blanks(found: Sequence[Any], dark: Any) -> list[str]:
    """The texts with the blanks that the engine overlooked, where the picture shows a word's gap.

    How wide a word's gap is on this page is taken from the blanks that the engine did see. `dark`
    is the page, true where there is ink.
    """
    measured = [(str(line[1]), _gaps(line, dark)) for line in found]
    seen = [
        gap
        for text, gaps in measured
        for position, gap in enumerate(gaps)
        if text[position + 1] == " "
    ]
    if len(seen) < _MIN_BLANKS:
        return [text for text, _ in measured]
    least = _WORD_GAP * median(seen)
    return [_spaced(text, gaps, least) for text, gaps in measured]


def _spaced(text: str, gaps: Sequence[float], least: float) -> str:
    spaced = text[:1]
    for position, gap in enumerate(gaps):
        char = text[position + 1]
        if gap >= least and _splits_words(text[position], char):
            spaced += " "
        spaced += char
    return spaced + text[len(gaps) + 1 :]


def _gaps(line: Any, dark: Any) -> list[float]:
    """Empty columns after each character but the last, in line heights; those after a character
    that a blank follows, up to what follows the blank."""
    quad, text, _, *boxes = line
    if len(boxes) < 2 or "".join(boxes[1]) != text:
        return []
    top, bottom = (int(f(y for _, y in quad)) for f in (min, max))
    ink = dark[max(top, 0) : bottom].sum(axis=0) > _SPECKS
    centres = [int((box[0][0] + box[1][0]) / 2) for box in boxes[0]]
    gaps: list[float] = []
    for position in range(len(text) - 1):
        after = position + 1
        while after < len(text) - 1 and text[after] == " ":
            after += 1
        gaps.append(_longest_gap(ink[centres[position] : centres[after]]) / max(bottom - top, 1))
    return gaps


def _splits_words(before: str, char: str) -> bool:
    """Whether a blank may stand between two characters: not in Chinese, not within a number."""
    if before.isdigit() and char.isdigit():
        return False
    latin = char.isalnum() and ord(char) < 0x250
    return latin and ((before.isalnum() and ord(before) < 0x250) or before in ",;:)")


def _longest_gap(ink: Sequence[bool]) -> int:
    longest = current = 0
    for marked in ink:
        current = 0 if marked else current + 1
        longest = max(longest, current)
    return longest


def _upright(quads: list[tuple[_Quad, str]]) -> list[Line]:
    if not quads:
        return []
    angle = median(math.atan2(q[1][1] - q[0][1], q[1][0] - q[0][0]) for q, _ in quads)
    sine, cosine = math.sin(-angle), math.cos(angle)
    usual = median(_height(quad) for quad, _ in quads)
    lines: list[Line] = []
    for quad, text in quads:
        turned = [(x * cosine - y * sine, x * sine + y * cosine) for x, y in quad]
        height = _height(quad)
        # A box is as high as its letters reach, which says little about the font.
        like = usual if _SMALLER < height / usual < _LARGER else height
        middle = sum(y for _, y in turned) / 4
        lines.append(
            Line(
                x0=min(x for x, _ in turned),
                x1=max(x for x, _ in turned),
                y0=middle - height / 2,
                y1=middle + height / 2,
                text=text.strip(),
                size=max(round(like * _LETTER * 2) / 2, 1.0),
            )
        )
    return lines


def _height(quad: _Quad) -> float:
    return max((quad[3][1] - quad[0][1] + quad[2][1] - quad[1][1]) / 2, 1.0)
