"""Sentences: whole, in order, nothing lost."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quarry.text import sentences


def _split(text: str) -> list[str]:
    return [text[start:end] for start, end in sentences(text)]


@settings(max_examples=300)
@given(st.text(alphabet=st.one_of(st.characters(), st.sampled_from("ab.!? \n。1)-AB"))))
def test_spans_are_in_order_and_only_blanks_lie_between_them(text: str) -> None:
    position = 0
    for start, end in sentences(text):
        assert position <= start < end
        assert text[position:start].strip() == ""
        assert text[start:end] == text[start:end].strip()
        position = end
    assert text[position:].strip() == ""


@pytest.mark.parametrize(
    "sentence",
    [
        "Dr. Smith e.g. waits, i.e. he sits.",
        "See Fig. 3 and No. 5 of vol. 2.",
        "It costs 4.90 euros.",
        "Use version 2.3.1 of the U.S. Army guide.",
        "J. R. Smith wrote it.",
        'He asked "why?" and left.',
        "Wait... what is it?",
        "1. Unopened items.",
        "a. Unopened items.",
        "Order by 14:00, i.e. before 2 p.m. on a weekday.",
    ],
)
def test_a_sentence_is_not_cut(sentence: str) -> None:
    assert _split(f"{sentence} Next one.")[0] == sentence
    assert len(_split(sentence)) == 1


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("One. Two! Three? Four", ["One.", "Two!", "Three?", "Four"]),
        ('He said "stop." Then left.', ['He said "stop."', "Then left."]),
        ("これは本です。次は何ですか?はい", ["これは本です。", "次は何ですか?", "はい"]),
        ("ما هذا؟ كتاب.", ["ما هذا؟", "كتاب."]),
        ("यह है। वह है।", ["यह है।", "वह है।"]),
        ("Heading\n\nBody text.", ["Heading", "Body text."]),
        ("- one item\n- another item", ["- one item", "- another item"]),
        ("1. First.\n2. Second.", ["1. First.", "2. Second."]),
        ("Code: E-1042\nCause: overcurrent", ["Code: E-1042", "Cause: overcurrent"]),
        ("| a | b |\n| c | d |", ["| a | b |", "| c | d |"]),
        ("It fell for 60 ms. Run it.", ["It fell for 60 ms.", "Run it."]),
        ("Below 80 °C. At 2.9 V. Then", ["Below 80 °C.", "At 2.9 V.", "Then"]),
        ("Is it No. Yes it is.", ["Is it No.", "Yes it is."]),
        ("   ", []),
    ],
)
def test_sentences_end_where_a_reader_would_end_them(text: str, parts: list[str]) -> None:
    assert _split(text) == parts


def test_table_rows_are_apart_however_long_they_are() -> None:
    rows = [
        f"City: Town {n}; Daily allowance: {n}2 USD; Hotel limit per night: {n} USD" for n in "123"
    ]
    assert _split("\n".join(rows)) == rows


def test_a_wrapped_line_does_not_end_a_sentence() -> None:
    text = "This sentence is long enough to be wrapped by the\neditor of the page. The next one."
    assert _split(text)[1] == "The next one."
