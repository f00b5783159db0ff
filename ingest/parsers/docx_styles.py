"""What the styles and list definitions of a Word document make of a paragraph."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any

from ingest.parsers.docx_text import W

_HEADING = re.compile(r"heading ([1-9])", re.I)
_MAX_DEPTH = 20
"""Styles that a style may be based on, one after another."""
_PLACEHOLDER = re.compile(r"%([1-9])")


@dataclass(frozen=True, slots=True, kw_only=True)
class Style:
    level: int = 0
    """Heading level from 1, 0 for text."""
    title: bool = False
    contents: bool = False
    """A line of a table of contents."""
    list_id: str = ""
    list_level: int = 0


@dataclass(frozen=True, slots=True)
class Number:
    level: int
    text: str
    """Such as `2.1`; empty for bullets."""


class Styles:
    """Styles by their id, with what they inherit."""

    def __init__(self, document: Any) -> None:
        self._elements = {
            e.get(f"{W}styleId"): e for e in document.styles.element.iter(f"{W}style")
        }
        self._known: dict[str | None, Style] = {None: Style()}

    def of(self, paragraph: Any) -> Style:
        """The style of a paragraph, with what the paragraph itself says on top."""
        properties = paragraph.find(f"{W}pPr")
        if properties is None:
            return Style()
        named = properties.find(f"{W}pStyle")
        style = self._resolved(named.get(f"{W}val") if named is not None else None)
        level = _outline(properties)
        return style if level is None else replace(style, level=min(level, 6))

    def _resolved(self, style_id: str | None) -> Style:
        if style_id not in self._known:
            self._known[style_id] = self._read(style_id)
        return self._known[style_id]

    def _read(self, style_id: str | None) -> Style:
        level: int | None = None
        title = contents = False
        list_id, list_level = "", 0
        for _ in range(_MAX_DEPTH):
            element = self._elements.get(style_id)
            if element is None:
                break
            name = _value(element.find(f"{W}name")).lower()
            heading = _HEADING.fullmatch(name)
            title = title or name == "title"
            contents = contents or name.startswith("toc ")
            properties = element.find(f"{W}pPr")
            if level is None:
                level = int(heading[1]) if heading else _outline(properties)
            if not list_id:
                list_id, list_level = _list_of(properties) or ("", 0)
            style_id = _value(element.find(f"{W}basedOn")) or None
        level = 1 if title and not level else level or 0
        return Style(
            level=min(level, 6),
            title=title,
            contents=contents,
            list_id=list_id,
            list_level=list_level,
        )


class Numbering:
    """Counts list items as Word does, so that the numbers that readers cite are in the text."""

    def __init__(self, document: Any) -> None:
        self._formats: dict[tuple[str, int], tuple[str, str, int]] = {}
        """By list and level: number format, pattern such as `%1.%2`, first number."""
        self._abstract: dict[str, str] = {}
        self._counts: dict[str, list[int]] = {}
        for relation in document.part.rels.values():
            if not relation.is_external and relation.reltype.endswith("/numbering"):
                self._read(relation.target_part.element)

    def next(self, paragraph: Any, style: Style) -> Number | None:
        """The number of this paragraph, None if it is in no list."""
        own = _list_of(paragraph.find(f"{W}pPr"))
        list_id, level = own or (style.list_id, style.list_level)
        if list_id in ("", "0"):
            return None
        kind, pattern, _ = self._format(list_id, level)
        if kind in ("bullet", "none", ""):
            return Number(level, "")
        counts = self._counts.setdefault(self._abstract.get(list_id, list_id), [])
        while len(counts) <= level:
            counts.append(self._format(list_id, len(counts))[2] - 1)
        counts[level] += 1
        del counts[level + 1 :]
        text = _PLACEHOLDER.sub(lambda m: self._shown(list_id, int(m[1]) - 1, counts), pattern)
        return Number(level, text.strip())

    def _shown(self, list_id: str, level: int, counts: list[int]) -> str:
        return _numeral(
            counts[level] if level < len(counts) else 1, self._format(list_id, level)[0]
        )

    def _format(self, list_id: str, level: int) -> tuple[str, str, int]:
        return self._formats.get((self._abstract.get(list_id, list_id), level), ("", "", 1))

    def _read(self, root: Any) -> None:
        for definition in root.iter(f"{W}abstractNum"):
            key = definition.get(f"{W}abstractNumId", "")
            for level in definition.iter(f"{W}lvl"):
                start = _value(level.find(f"{W}start"))
                self._formats[key, int(level.get(f"{W}ilvl", "0"))] = (
                    _value(level.find(f"{W}numFmt")),
                    _value(level.find(f"{W}lvlText")),
                    int(start) if start.isdecimal() else 1,
                )
        for number in root.iter(f"{W}num"):
            self._abstract[number.get(f"{W}numId", "")] = _value(number.find(f"{W}abstractNumId"))


def _value(element: Any) -> str:
    return "" if element is None else str(element.get(f"{W}val") or "")


def _outline(properties: Any) -> int | None:
    """Heading level from 1; None if nothing is said or it says: body text."""
    text = _value(properties.find(f"{W}outlineLvl")) if properties is not None else ""
    return int(text) + 1 if text.isdecimal() and int(text) < 9 else None


def _list_of(properties: Any) -> tuple[str, int] | None:
    numbering = properties.find(f"{W}numPr") if properties is not None else None
    if numbering is None:
        return None
    level = _value(numbering.find(f"{W}ilvl"))
    return _value(numbering.find(f"{W}numId")), int(level) if level.isdecimal() else 0


def _numeral(number: int, kind: str) -> str:
    match kind:
        case "lowerLetter" | "upperLetter":
            letter = chr(ord("a") + (number - 1) % 26) * ((number - 1) // 26 + 1)
            return letter if kind == "lowerLetter" else letter.upper()
        case "lowerRoman" | "upperRoman":
            roman = _roman(number)
            return roman.lower() if kind == "lowerRoman" else roman
        case _:
            return str(number)


def _roman(number: int) -> str:
    signs = zip(
        (1000, 900, 500, 400, 100, 90, 50, 40, 10, 9, 5, 4, 1),
        "M CM D CD C XC L XL X IX V IV I".split(),
        strict=True,
    )
    text = ""
    for value, sign in signs:
        text += sign * (number // value)
        number %= value
    return text
