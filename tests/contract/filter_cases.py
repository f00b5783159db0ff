"""One table of filters and the rows that they match, for text and vector stores alike."""

from __future__ import annotations

from datetime import date

from quarry.access import EVERYTHING, And, Compare, Filter, In, Not, Op, Or, ReadableBy
from quarry.records import Labels, Status
from tests.contract.rows import labels

NASTY = "a\"b'c\\d\ne%f_g*h{i}(j)"

MANY = tuple(f"R{number}" for number in range(200))
"""Values that no row has, nearly as many as a filter may name."""

LABELLED: dict[str, Labels] = {
    "a": labels(acl=("public",), series="HR-014", version="9", effective=date(2025, 7, 1)),
    "b": labels(acl=("hr", "user:ana"), series="HR-014", version="10", effective=date(2026, 7, 1)),
    "c": labels(tenant="north", source="wiki", metadata={"region": "CA", "pages": 3}),
    "d": labels(acl=(), metadata={"region": NASTY, "pages": 12, "signed": True}),
    "e": labels(status=Status.WITHDRAWN, acl=("eng",), metadata={"region": "US", "share": 0.5}),
}
"""Row names with their labels."""

CASES: list[tuple[str, Filter, str]] = [
    ("everything", EVERYTHING, "abcde"),
    ("tenant", Compare("tenant", Op.EQ, "north"), "c"),
    ("tenant not", Compare("tenant", Op.NE, "north"), "abde"),
    ("source in", In("source", ("wiki", "nowhere")), "c"),
    ("status", Compare("status", Op.EQ, "current"), "abcd"),
    ("readable by public", ReadableBy(("public",)), "ac"),
    ("readable by a person", ReadableBy(("public", "user:ana")), "abc"),
    ("readable by a group", ReadableBy(("eng", "hr")), "be"),
    ("a part of a scope's name is not the scope", ReadableBy(("h", "user:an", "pub")), ""),
    ("readable by nobody", ReadableBy(()), ""),
    ("series", Compare("series", Op.EQ, "HR-014"), "ab"),
    ("versions compare as versions", Compare("version", Op.GT, "9"), "b"),
    ("version up to", Compare("version", Op.LE, "9"), "a"),
    ("effective since", Compare("effective", Op.GE, date(2026, 1, 1)), "b"),
    ("effective before", Compare("effective", Op.LT, date(2026, 1, 1)), "a"),
    ("effective on", Compare("effective", Op.EQ, date(2025, 7, 1)), "a"),
    ("metadata text", Compare("region", Op.EQ, "CA"), "c"),
    ("metadata text is matched exactly", Compare("region", Op.EQ, "ca"), ""),
    ("metadata with every quote", Compare("region", Op.EQ, NASTY), "d"),
    ("metadata number", Compare("pages", Op.GT, 3), "d"),
    ("metadata number as number", Compare("pages", Op.LT, 12), "c"),
    ("metadata fraction", Compare("share", Op.GE, 0.25), "e"),
    ("metadata truth", Compare("signed", Op.EQ, True), "d"),
    ("metadata in", In("region", ("CA", "US")), "ce"),
    ("metadata in many", In("region", ("CA", *MANY)), "c"),
    ("metadata in none of many", Not(In("region", ("CA", *MANY))), "abde"),
    ("one of many", Or(tuple(Compare("region", Op.EQ, name) for name in ("US", *MANY))), "e"),
    ("a field that is lacking matches no comparison", Compare("region", Op.NE, "CA"), "de"),
    ("and so every 'not' of one", Not(Compare("region", Op.EQ, "CA")), "abde"),
    ("not", Not(Compare("tenant", Op.EQ, "north")), "abde"),
    ("and", And((ReadableBy(("public",)), Compare("tenant", Op.EQ, "default"))), "a"),
    ("or", Or((Compare("tenant", Op.EQ, "north"), Compare("series", Op.EQ, "HR-014"))), "abc"),
    (
        "nested",
        And((Or((In("region", ("CA", "US")), ReadableBy(("hr",)))), Not(In("source", ("wiki",))))),
        "be",
    ),
    ("a value that is an expression", Compare("region", Op.EQ, '" or 1 == 1 or "'), ""),
]
"""Name, filter, and the rows that it matches."""

HOSTILE_FIELDS = ["x' OR '1'='1", 'a"] or metadata["b', "a.b.c", "ü\n*", "x" * 500]
"""Metadata keys that look like something else. A store that cannot spell one may find too much."""
