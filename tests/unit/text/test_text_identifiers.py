"""Identifiers: the exact code, never its neighbour, and no everyday number."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quarry.text import clean, identifiers


@pytest.mark.parametrize(
    "spelling",
    [
        "E-1042",
        "e-1042",
        "E–1042",
        "E\u20111042",
        "E\u22121042",
        "E1042",
        "e1042",
        "E 1042",
        "e 1042",
    ],
)
def test_every_spelling_of_a_code_is_one_code(spelling: str) -> None:
    assert identifiers(clean(f"What does fault {spelling} mean?")) == ("E-1042",)


@pytest.mark.parametrize(
    ("text", "codes"),
    [
        ("order ORD-99107, not ORD-99170", ("ORD-99107", "ORD-99170")),
        ("policy HR-014-CA and hr-014", ("HR-014-CA", "HR-014")),
        ("the RC-7, an rc7", ("RC-7",)),
        ("v2.3.1, version 2.3 and 10.0.2", ("2.3.1", "2.3", "10.0.2")),
        ("CVE-2024-1234", ("CVE-2024-1234",)),
        ("550E8400-e29b-41d4-a716-446655440000", ("550E8400-E29B-41D4-A716-446655440000",)),
        ("set QUARRY_CONFIG or max_tokens", ("QUARRY_CONFIG", "MAX_TOKENS")),
        ("0x80070005", ("0X80070005",)),
        ("ISO 9001, RFC 2119", ("ISO-9001", "RFC-2119")),
        ("E-1042's cause; E-1042-related", ("E-1042",)),
        ("E-1001–E-1003 or E-1001-E-1003", ("E-1001", "E-1003")),
        ("E-1001–1060", ("E-1001",)),
        ("part 10045-A7", ("10045-A-7",)),
        ("ISBN 978-3-16-148410-0", ("978-3-16-148410-0",)),
        ("account 99107001", ("99107001",)),
        ("(E-1042/E-1043)", ("E-1042", "E-1043")),
    ],
)
def test_codes_are_found_in_order_and_once(text: str, codes: tuple[str, ...]) -> None:
    assert identifiers(clean(text)) == codes


@pytest.mark.parametrize(
    "text",
    [
        "in 2024",
        "In 2024",
        "IN 2024",
        "B 12",
        "a 30-day return",
        "mid-2024",
        "2024-01-31",
        "31.12.2024",
        "1939–1945",
        "3–5 days",
        "pages 10-20",
        "4.90 euros",
        "type-2",
        "A 1000 mile",
        "EUR 1000",
        "24-hour",
        "2nd",
        "10kg",
        "3D",
        "H2 and S3",
        "24/7",
        "20 weeks",
        "1,000,000",
        "Section 12",
        "the top-10",
        "well-known",
        "I 1000",
        "14:00",
        "2024-05",
    ],
)
def test_everyday_numbers_are_not_codes(text: str) -> None:
    assert identifiers(clean(text)) == ()


@given(st.integers(1000, 9999), st.integers(1000, 9999))
def test_codes_are_equal_exactly_when_their_digits_are(left: int, right: int) -> None:
    same = identifiers(f"E-{left}") == identifiers(f"e{right}")
    assert same == (left == right)


@given(st.text())
def test_any_text_is_accepted_and_codes_are_found_again_in_themselves(text: str) -> None:
    for code in identifiers(clean(text)):
        assert code == code.upper()
        assert not any(char.isspace() for char in code)
