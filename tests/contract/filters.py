"""What every compiled form of the filter must do: find what `matches` finds.

A store's test inherits FilterContract and gives a `find` fixture over the rows of ROWS.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import date

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from quarry.access.compile import labels_of, matches
from quarry.access.filters import (
    EVERYTHING,
    And,
    Compare,
    Filter,
    In,
    Not,
    Op,
    Or,
    ReadableBy,
    Value,
)
from quarry.access.labels import LABEL_BYTES
from quarry.records import Document, Labels, Scalar, Status

Find = Callable[[Filter], set[str]]
"""Ids of the rows of ROWS that a store finds."""

HOSTILE = [
    "it's",
    'say "hi"',
    "back\\slash",
    "\\",
    'ends with a quote"',
    "new\nline",
    "tab\tand\rreturn",
    "100%",
    "a_b",
    "a%b",
    "{name}",
    '" or source != "',
    "') OR 1=1 --",
    '"] or exists metadata["x',
    "null",
    "true",
    "*",
    "a AND b",
    "\x01\x1f\x7f",
    "é",
    "e\u0301",
    "日本",
    "😀",
    "\u2028",
    "-1",
    "1.0",
]
LONG = ["x" * 10_000, "x" * 9_999 + "y", "x" * (LABEL_BYTES - 1) + "é", "x" * (LABEL_BYTES + 1)]
PLAIN = ["", "a", "b", "ab", "EU", "US", "1", "9", "10", "1.2", "1.10", "2.0-rc1", "2.0"]
SCOPES = ["public", "hr", "hr-leads", "user:ana", "user:anna", "h_", "%"]
KEYS = ["region", "year", "Cost Center", "a.b", "score"]
HOSTILE_KEYS = [
    'k"]',
    "back\\slash",
    "'",
    "x/y~z",
    "new\nline",
    "$.a",
    "日本",
    "k" * 300,
    '"] == 1 or metadata["region',
]
NUMBERS: list[Scalar] = [-3, -1, 0, 1, 2, 10, 2024, -0.5, 0.5, 1.0, 1e-7, 1e300, 2**53, 2**53 + 1]
DATES = [date(2025, 1, 1), date(2025, 12, 31), date(2026, 1, 1), date(2026, 7, 1)]

_texts = st.sampled_from([*PLAIN, *HOSTILE, *LONG, *SCOPES])
_scalars: st.SearchStrategy[Scalar] = _texts | st.sampled_from(NUMBERS) | st.booleans()


def _row(number: int) -> Labels:
    """Row by row another mix of values; with 2, 3, 5 and 7 steps all pairs occur."""
    texts = [*PLAIN, *HOSTILE, *LONG]

    def pick(values: list[str], step: int) -> str:
        return values[number * step % len(values)]

    values: list[Scalar] = [*texts, *NUMBERS, True, False]
    keys = [*KEYS, *HOSTILE_KEYS]
    metadata = {
        keys[(number * step) % len(keys)]: values[(number * step + step) % len(values)]
        for step in (1, 2, 3)[: number % 4]
    }
    metadata["year"] = values[number % len(values)]
    if number % 5 == 0:
        del metadata["year"]
    return labels_of(
        Document(
            doc_id=f"d{number}",
            address="a",
            uri="u",
            source=pick([*texts[1:], "wiki"], 1),
            tenant=pick(["default", "acme", *HOSTILE], 2),
            acl=tuple(SCOPES[: number % 3]) + tuple(HOSTILE[number % 26 : number % 26 + 1]),
            series=pick(["", "HR-014", *texts], 3),
            version=pick(texts, 5),
            status=list(Status)[number % 3],
            effective=[None, *DATES][number % 5],
            metadata=metadata,
        )
    )


ROWS: dict[str, Labels] = {f"r{number:03d}": _row(number) for number in range(120)}


def leaves(fields: st.SearchStrategy[str]) -> st.SearchStrategy[Filter]:
    values: st.SearchStrategy[Value] = _scalars | st.sampled_from(DATES)
    return (
        st.builds(Compare, fields, st.sampled_from(Op), values)
        | st.builds(In, fields, st.lists(values, max_size=4).map(tuple))
        | st.builds(ReadableBy, st.lists(st.sampled_from(SCOPES + HOSTILE), max_size=3).map(tuple))
        | st.just(EVERYTHING)
    )


def filters() -> st.SearchStrategy[Filter]:
    """Trees of at most eight comparisons over every field, kind of value and hostile text."""
    columns = ["source", "tenant", "series", "version", "status", "effective"]
    fields = st.sampled_from([*columns, *KEYS, *HOSTILE_KEYS])
    return st.recursive(leaves(fields), _combined, max_leaves=8)


def _combined(part: st.SearchStrategy[Filter]) -> st.SearchStrategy[Filter]:
    parts = st.lists(part, max_size=3).map(tuple)
    return st.builds(Not, part) | st.builds(And, parts) | st.builds(Or, parts)


def expected(filter: Filter) -> set[str]:
    return {row for row, labels in ROWS.items() if matches(filter, labels)}


class FilterContract:
    """Inherit and give `find`; say in `may_widen` where the store may find more, never less."""

    @pytest.fixture
    def find(self) -> Find:
        raise NotImplementedError

    def may_widen(self, filter: Filter) -> bool:
        """Whether a filter names something that the store cannot say exactly."""
        return False

    def check(self, find: Find, filter: Filter) -> None:
        found, wanted = find(filter), expected(filter)
        assert wanted <= found, f"misses {sorted(wanted - found)[:3]} for {filter!r}"[:2000]
        if not self.may_widen(filter):
            assert found <= wanted, f"adds {sorted(found - wanted)[:3]} for {filter!r}"[:2000]

    @settings(
        max_examples=150,
        deadline=None,
        suppress_health_check=[
            HealthCheck.function_scoped_fixture,  # `find` holds no state
            HealthCheck.differing_executors,  # each store's class runs it
            HealthCheck.too_slow,
        ],
    )
    @given(filter=filters())
    def test_random_filters_find_what_the_reference_finds(self, find: Find, filter: Filter) -> None:
        self.check(find, filter)

    @pytest.mark.parametrize("op", list(Op))
    @pytest.mark.parametrize("negated", [False, True])
    def test_numbers_compare_as_numbers(self, find: Find, op: Op, negated: bool) -> None:
        for number in NUMBERS:
            compare: Filter = Compare("year", op, number)
            self.check(find, Not(compare) if negated else compare)

    def test_a_hostile_value_is_only_ever_itself(self, find: Find) -> None:
        for text in [*HOSTILE, *LONG]:
            for field in ("series", "year"):
                self.check(find, Compare(field, Op.EQ, text))
                self.check(find, Not(Compare(field, Op.EQ, text)))

    def test_a_hostile_key_is_only_ever_itself(self, find: Find) -> None:
        for key in HOSTILE_KEYS:
            self.check(find, Compare(key, Op.NE, "never"))
            self.check(find, Compare(key, Op.GE, 0))

    def test_a_scope_is_matched_whole(self, find: Find) -> None:
        for scope in [*SCOPES, *HOSTILE]:
            self.check(find, ReadableBy((scope,)))

    def test_nobody_reads_without_scopes(self, find: Find) -> None:
        assert find(ReadableBy(())) == set()

    def test_versions_compare_as_versions(self, find: Find) -> None:
        for version in ("9", "10", "1.2", "1.10", "2.0", "2.0-rc1"):
            for op in Op:
                self.check(find, Compare("version", op, version))

    def test_dates_compare_as_dates_and_no_date_is_not_early(self, find: Find) -> None:
        for day in DATES:
            for op in Op:
                self.check(find, Compare("effective", op, day))
                self.check(find, Not(Compare("effective", op, day)))


def comparisons(filter: Filter) -> Iterator[Compare]:
    """All comparisons in a filter; `in` and scopes as equalities."""
    if isinstance(filter, And | Or):
        for part in filter.parts:
            yield from comparisons(part)
    elif isinstance(filter, Not):
        yield from comparisons(filter.part)
    elif isinstance(filter, Compare):
        yield filter
    elif isinstance(filter, In):
        yield from (Compare(filter.field, Op.EQ, value) for value in filter.values)
    elif isinstance(filter, ReadableBy):
        yield from (Compare("acl", Op.EQ, scope) for scope in filter.scopes)


def names_long_text(filter: Filter) -> bool:
    return any(compare.value in LONG for compare in comparisons(filter))


def names_hostile_key(filter: Filter) -> bool:
    return any(compare.field in HOSTILE_KEYS for compare in comparisons(filter))
