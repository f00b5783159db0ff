"""Text that a page hides by the style of an element: it is there for machines, not for readers.

Only `style` attributes are read, no style sheets. What unfolds or fades in (a box without height,
`opacity: 0` in what servers send of animated pages), and text in the colour of its background, is
not told from text that is seen.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

_QUOTED = re.compile(r"\"[^\"]*\"?|'[^']*'?|url\([^)]*\)?", re.I)
_COMMENT = re.compile(r"/\*.*?(?:\*/|\Z)", re.S)
_ESCAPE = re.compile(r"\\(?:([0-9a-f]{1,6})\s?|(.))", re.I | re.S)
_IMPORTANT = re.compile(r"\s*!\s*important$")
_LENGTH = re.compile(r"([+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?)([a-z%]*)")
_FONT = re.compile(r"(?:^|\s)(0+\.?0*|[\d.]+[a-z%]+)(?=\s|/)")
"""The size in the shorthand `font`, which stands before the family."""
_SIZES = re.compile(r"(?:x{1,3}-)?(?:small|large)|medium|initial|revert|\w+\(.*")
"""Sizes that do not follow from that of the parent, or may not."""

_PIXELS = {"": 1, "px": 1, "pt": 4 / 3, "pc": 16, "in": 96, "cm": 37.8, "mm": 3.78, "q": 0.945}
_FROM_PARENT = {"em": 16, "ex": 8, "ch": 8}
_FROM_PAGE = {"rem": 16, "vw": 10, "vh": 10, "vmin": 10, "vmax": 10}
_FONT_UNITS = _PIXELS | _FROM_PARENT | _FROM_PAGE
"""Pixels of a unit, on a page of a common size where the unit follows from something else."""
_MOVES = _PIXELS | _FROM_PARENT | {"rem": 16}
"""A part of the window moves things about in it and not out of it."""

_TINY = 1.0
"""Pixels of a font that nobody can read."""
_FAR = -999.0
"""Pixels: what lies so far to the left or above is meant to be off the screen."""

_SIDES = frozenset({"left", "right", "top", "bottom", "inset"})
_MARGINS = frozenset({"margin-left", "margin-top"})
_ALSO_IMAGES = frozenset({"visibility", "text-indent"})
"""Inherited properties that hide pictures too; those are seen in a font without size."""


def strip_hidden(tree: Any) -> None:
    """Takes what no reader sees out of the tree, but not what a hidden element shows again."""
    if tree.css_first("[style]") is None:
        return
    hidden: list[Any] = []
    stack: list[tuple[Any, frozenset[str]]] = [(tree.root, frozenset())]
    while stack:
        node, unseen = stack.pop()
        if node.is_text_node and unseen:
            hidden.append(node)
        if not node.is_element_node:
            continue
        style = list(_declarations(node.attributes.get("style") or ""))
        unseen = _inherited(style, unseen)
        if _hides_all(style) or (node.tag == "img" and unseen & _ALSO_IMAGES):
            hidden.append(node)
        else:
            stack.extend((child, unseen) for child in node.iter(include_text=True))
    for node in hidden:
        node.decompose()


def _declarations(style: str) -> Iterator[tuple[str, str]]:
    """Names and values as a browser reads them: without comments, strings, escapes and case."""
    plain = _ESCAPE.sub(_unescaped, _QUOTED.sub("", _COMMENT.sub("", style)))
    for declaration in plain.lower().split(";"):
        name, _, value = (part.strip() for part in declaration.partition(":"))
        value = _IMPORTANT.sub("", value)
        size = _FONT.search(value) if name == "font" else None
        yield ("font-size", size[1]) if size else (name, value)


def _unescaped(match: re.Match[str]) -> str:
    code = int(match[1], 16) if match[1] else 0
    return chr(code) if 0 < code < 0x110000 else match[2] or ""


def _hides_all(style: list[tuple[str, str]]) -> bool:
    """Whether an element and all that is in it cannot be seen."""
    names = {name for name, _ in style}
    is_placed = any(n == "position" and value in ("absolute", "fixed") for n, value in style)
    is_padded = any(name.startswith("padding") for name in names)  # which takes a margin back
    for name, value in style:
        if (name, value) in {("display", "none"), ("content-visibility", "hidden")}:
            return True
        is_moved = (is_placed and name in _SIDES) or (not is_padded and name in _MARGINS)
        if is_moved and any(_pixels(part, _MOVES, 0) <= _FAR for part in value.split()):
            return True
    return False


def _inherited(style: list[tuple[str, str]], unseen: frozenset[str]) -> frozenset[str]:
    """By which properties, its own or its parent's, the text of an element is hidden.

    Of several values of one property the one that hides counts: which of them a browser knows is
    not for this to say.
    """
    hiding: set[str] = set()
    showing: set[str] = set()
    for name, value in style:
        is_hidden = _hides_text(name, value)
        if is_hidden is not None:
            (hiding if is_hidden else showing).add(name)
    return frozenset((unseen - showing) | hiding)


def _hides_text(name: str, value: str) -> bool | None:
    """None: as its parent does."""
    if name == "visibility":
        return {"hidden": True, "collapse": True, "visible": False}.get(value)
    if name == "text-indent" and _LENGTH.match(value):
        return _pixels(value.split(maxsplit=1)[0], _MOVES, 0) <= _FAR
    if name != "font-size":
        return None
    if _pixels(value, _FONT_UNITS, 16) <= _TINY:
        return True
    length = _LENGTH.fullmatch(value)
    is_own = length and length[2] in _PIXELS | _FROM_PAGE
    return False if is_own or _SIZES.fullmatch(value) else None


def _pixels(length: str, units: Mapping[str, float], default: float) -> float:
    """`default` for what is no length, and for percentages of what is not known here, but of 0."""
    match = _LENGTH.fullmatch(length)
    if match and (match[2] in units or float(match[1]) == 0):
        return float(match[1]) * units.get(match[2], 1)
    return default
