"""Versions as keys that sort: 10 after 9, 1.2 before 1.10, 2.0-rc1 before 2.0."""

from __future__ import annotations

import re
import unicodedata

from quarry.ids import digest

MAX_TEXT = 64
"""Characters of a version that are compared; longer ones are told apart by a hash only."""
MAX_KEY = 200
"""Longest key, in bytes; keys are ASCII."""

_PREFIX = re.compile(r"(?:version|ver|v|release|revision|rev|r)[\s._-]*(?=\d)")
_RUN = re.compile(r"\d+|[^\W\d_]+")
_BEFORE = {
    "dev": "0",
    "snapshot": "0",
    "nightly": "0",
    "draft": "0",
    "a": "1",
    "alpha": "1",
    "b": "2",
    "beta": "2",
    "c": "3",
    "rc": "3",
    "pre": "3",
    "preview": "3",
}
"""Words that put a version before the one without them, in their order (as in PEP 440)."""


def version_key(version: str) -> str:
    """A string that compares as versions do; ASCII, at most MAX_KEY bytes, "" for no version.

    A key is a row of parts: `1` a word such as rc, `2` the end, `3` any other word, `4` a number
    with its length before it. Case, separators, a leading `v` and zeros at the end of a row of
    numbers do not count, so that 1.0, v1 and 1 are equal.
    """
    text = unicodedata.normalize("NFKC", version.strip()).casefold()
    if not text:
        return ""
    text = _PREFIX.sub("", text, count=1) if _PREFIX.match(text) else text
    key = "".join(_parts(text[:MAX_TEXT])) + "2"
    if len(text) > MAX_TEXT or len(key) > MAX_KEY:
        return f"{key[: MAX_KEY - 33]}~{digest(text)}"
    return key


def _parts(text: str) -> list[str]:
    parts: list[str] = []
    runs = _RUN.findall(text)
    for run, following in zip(runs, [*runs, ""][1:], strict=True):
        if run[0].isdecimal():
            parts.append(_number(run))
            continue
        _drop_zeros(parts)
        parts.append(_word(run, numbered=following[:1].isdecimal()))
    _drop_zeros(parts)
    return parts


def _number(run: str) -> str:
    digits = "".join(str(unicodedata.decimal(c)) for c in run).lstrip("0")
    return f"4{len(digits):02d}{digits}"


def _word(run: str, *, numbered: bool) -> str:
    rank = _BEFORE.get(run)
    if rank is not None and (len(run) > 1 or numbered):  # 2.0a1 is an alpha, 1.0.2a is a patch
        return f"1{rank}"
    return "3" + "".join(c if "a" <= c <= "z" else f"~{ord(c):06x}" for c in run)


def _drop_zeros(parts: list[str]) -> None:
    while parts and parts[-1] == "400":
        parts.pop()
