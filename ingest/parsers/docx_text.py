"""The text of one Word paragraph."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_M = "{http://schemas.openxmlformats.org/officeDocument/2006/math}"
_MC = "{http://schemas.openxmlformats.org/markup-compatibility/2006}"

_NOT_TEXT = frozenset(
    {
        f"{W}pPr",
        f"{W}rPr",
        f"{W}del",  # tracked deletions
        f"{W}moveFrom",
        f"{W}instrText",
        f"{W}txbxContent",  # boxes are blocks of their own
        f"{_MC}Fallback",  # the same again for old readers
    }
)
_SIGNS = {
    f"{W}tab": " ",
    f"{W}br": "\n",
    f"{W}cr": "\n",
    f"{W}noBreakHyphen": "-",
    f"{W}ptab": " ",
}
_COUNTERS = ("PAGE", "NUMPAGES", "SECTIONPAGES", "PAGEREF")


def paragraph_text(paragraph: Any) -> str:
    """What a reader sees, without deleted text, field codes, page counters and text boxes."""
    lines = "".join(_pieces(paragraph)).split("\n")
    return "\n".join(filter(None, (" ".join(line.split()) for line in lines)))


def boxes(paragraph: Any) -> Iterator[Any]:
    """Contents of the text boxes that hang on a paragraph, each once, not those inside others."""
    stack = [paragraph]
    while stack:
        element = stack.pop()
        if element.tag == f"{W}txbxContent":
            yield element
        elif element.tag != f"{_MC}Fallback":
            stack.extend(reversed(list(element.iterchildren())))


def is_on(switch: Any) -> bool:
    """Whether a property that is there or not, such as bold, is switched on."""
    return switch is not None and switch.get(f"{W}val") not in ("0", "false", "off")


def _pieces(paragraph: Any) -> Iterator[str]:
    fields: list[str | None] = []
    """Open fields: their code while it is read, then None to show the result, "" to hide it."""
    for element in _walk(paragraph):
        if element.tag == f"{W}fldChar":
            _field(element.get(f"{W}fldCharType"), fields)
        elif element.tag == f"{W}instrText":
            if fields and fields[-1] is not None:
                fields[-1] += _own_text(element)
        elif all(field is None for field in fields):
            yield _SIGNS.get(element.tag, "")
            if element.tag in (f"{W}t", f"{_M}t"):
                yield _own_text(element)


def _own_text(element: Any) -> str:
    """All characters of an element: also those after a comment or an entity reference in it.

    References stay as they are written: what they stand for is never looked up.
    """
    from lxml import etree

    parts = [element.text or ""]
    for child in element.iterchildren():
        if child.tag is etree.Entity:
            parts.append(child.text)
        parts.append(child.tail or "")
    return "".join(parts)


def _walk(paragraph: Any) -> Iterator[Any]:
    stack = list(reversed(list(paragraph.iterchildren())))
    while stack:
        element = stack.pop()
        yield element
        if element.tag == f"{W}fldSimple" and _counts(element.get(f"{W}instr", "")):
            continue
        if element.tag == f"{W}r" and is_on(element.find(f"{W}rPr/{W}vanish")):
            continue
        if element.tag not in _NOT_TEXT:
            stack.extend(reversed(list(element.iterchildren())))


def _field(kind: str | None, fields: list[str | None]) -> None:
    if kind == "begin":
        fields.append("")
    elif kind == "separate" and fields:
        code = fields[-1] or ""
        fields[-1] = "" if _counts(code) else None
    elif kind == "end" and fields:
        fields.pop()


def _counts(code: str) -> bool:
    return code.strip().upper().startswith(_COUNTERS)
