"""Labels as stores hold them and filter values as they are compared: one rule for every store.

Every store and `matches` compare what `stored` and `operand` give, so that they cannot disagree
about what a date, a version or a number is.
"""

from __future__ import annotations

import math
from datetime import date, datetime
from typing import TypeAlias

from quarry.access.filters import Op, Value
from quarry.access.versions import version_key
from quarry.errors import FilterError
from quarry.records import Document, Labels, Scalar

Key: TypeAlias = str | int | float | bool
"""What is compared: text by code point, numbers by size, dates as yyyymmdd, truth values."""

TEXT_FIELDS = frozenset({"source", "tenant", "series", "status"})
COLUMNS = {name: name for name in (*sorted(TEXT_FIELDS), "effective")} | {"version": "version_key"}
"""Fields that are not metadata, with the column that stores keep them in."""
ORDERED = frozenset({Op.LT, Op.LE, Op.GT, Op.GE})

MAX_WHOLE = 2**53
"""Whole numbers up to this are exact in every store; longer ones are compared as text."""
LABEL_BYTES = 1024
"""Stores with length limits keep this much of a label; filters on longer ones find too much,
never too little, and the catalog check decides."""


def labels_of(document: Document) -> Labels:
    """The labels of a document's rows, free of what some store cannot hold."""
    return Labels(
        source=clean_text(document.source),
        tenant=clean_text(document.tenant),
        acl=tuple(clean_text(scope) for scope in document.acl),
        series=clean_text(document.series),
        version=clean_text(document.version),
        status=document.status,
        effective=document.effective,
        metadata={clean_text(k): scalar_key(v) for k, v in document.metadata.items()},
    )


def clean_text(text: str) -> str:
    """Without NUL and lone surrogates, which no store holds."""
    if text.isascii() and "\0" not in text:
        return text
    return text.replace("\0", "").encode("utf-8", "replace").decode("utf-8")


def scalar_key(value: Scalar) -> Key:
    """A metadata value as it is compared; numbers that not every store holds are text."""
    if isinstance(value, bool):
        return value
    if isinstance(value, int):
        return value if abs(value) <= MAX_WHOLE else str(value)
    if isinstance(value, float):
        if not math.isfinite(value):
            return str(value)
        whole = value.is_integer() and abs(value) <= MAX_WHOLE
        return int(value) if whole else value
    return clean_text(value)


def date_key(day: date | None) -> int:
    """yyyymmdd, 0 for no date."""
    return day.year * 10_000 + day.month * 100 + day.day if day else 0


def stored(field: str, labels: Labels) -> Key | None:
    """What a document holds of a field; None: it lacks it."""
    if field == "effective":
        return date_key(labels.effective) or None
    if field == "version":
        return version_key(labels.version) or None
    if field == "status":
        return labels.status.value
    if field in TEXT_FIELDS:
        text: str = getattr(labels, field)
        return text or None
    value = labels.metadata.get(field)
    return None if value is None else scalar_key(value)


def operand(field: str, value: Value) -> Key | None:
    """A filter's value as it is compared with `field`; None: no document can match it.

    Raises FilterError for a field that cannot be asked about and for text that is not text.
    """
    if field == "acl":
        raise FilterError("A filter cannot name acl; who may read is decided by who asks.")
    if isinstance(value, str) and clean_text(value) != value:
        raise FilterError("A filter value holds characters that are not text; take them out.")
    if field == "effective":
        if isinstance(value, datetime):
            return date_key(value.date())
        return date_key(value) if isinstance(value, date) else None
    if isinstance(value, date):
        value = value.isoformat()
    if field == "version":
        return None if isinstance(value, bool) else version_key(str(value)) or None
    if field in TEXT_FIELDS:
        return (value or None) if isinstance(value, str) else None
    return scalar_key(value)


def comparable(left: Key, right: Key) -> bool:
    """Whether two keys have an order: both text, or both numbers."""
    return kind(left) == kind(right) != "truth"


def kind(key: Key) -> str:
    if isinstance(key, bool):
        return "truth"
    return "text" if isinstance(key, str) else "number"


def clip(text: str, limit: int = LABEL_BYTES) -> str:
    """At most `limit` bytes of UTF-8, cut at a character's border."""
    if len(text) * 4 <= limit:
        return text
    return text.encode("utf-8")[:limit].decode("utf-8", "ignore")


def is_clipped(text: str, limit: int = LABEL_BYTES) -> bool:
    """Whether a stored text equal to clip(text) may come from a longer one."""
    return len(text.encode("utf-8")) > limit - 4


def loosened(op: Op, text: str) -> tuple[Op, str]:
    """A comparison with a text that stores cut, as it finds all rows that it should, and more.

    What is stored may be cut, which makes it smaller: lower bounds give way, upper ones hold. Not
    for NE: what differs from the whole text may be stored as what it is cut to.
    """
    if op is Op.EQ:
        return op, clip(text)
    if op in (Op.GT, Op.GE):
        return Op.GE, clip(text, LABEL_BYTES - 8)
    return op, text
