"""Cleaning: one look, one text."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quarry.text import clean, embedded_text

_AWKWARD = st.text(
    alphabet=st.one_of(
        st.characters(codec=None),
        st.sampled_from(
            "\u200c\u200d\u0301\u0327\u0915\u0641e \t\n\r\f\x00\u00ad\u202e\ufe0f\u1e9b\ufb01\ud800"
        ),
    )
)


@settings(max_examples=500)
@given(_AWKWARD)
def test_cleaning_twice_changes_nothing(text: str) -> None:
    once = clean(text)
    assert clean(once) == once


@given(_AWKWARD)
def test_cleaned_text_is_composed_storable_and_free_of_controls(text: str) -> None:
    cleaned = clean(text)
    cleaned.encode("utf-8")
    assert unicodedata.is_normalized("NFC", cleaned)
    assert not [c for c in cleaned if unicodedata.category(c) == "Cc" and c not in "\n\t"]
    assert not set(cleaned) & set("\u200b\u200e\u202a\u202e\u2066\ufeff\u00ad\u00a0\u3000")


@given(st.text(alphabet=st.sampled_from("ab \n\r\t\u2028\x0b")))
def test_line_ends_between_visible_text_are_kept(text: str) -> None:
    lines = text.replace("\r\n", "\n")
    for end in "\r\u2028\x0b":
        lines = lines.replace(end, "\n")
    assert clean(text).count("\n") == lines.strip().count("\n")


@pytest.mark.parametrize(
    ("raw", "cleaned"),
    [
        ("of\ufb01ce \ufb02ow", "office flow"),
        ("ＡＢＣ１２３！", "ABC123!"),
        ("ｶﾀｶﾅ", "カタカナ"),
        ("cafe\u0301", "caf\u00e9"),
        ("𝐛𝐨𝐥𝐝", "bold"),
        ("ﻛﺘﺎﺏ", "كتاب"),
        ("10² m, H₂O, ½ cup, ①", "10² m, H₂O, ½ cup, ①"),
        ("E\u20111042", "E-1042"),
        ("pages 3–5", "pages 3–5"),
        ("co\u00adoperate", "cooperate"),
        ("zero\u200bwidth\u2060joiner\ufeff", "zerowidthjoiner"),
        ("E\u200d-1042", "E-1042"),
        ("\u202eabc\u202c", "abc"),
        ("hidden\U000e0041\U000e0042", "hidden"),
        ("a\x00b\x07c\x1bd", "abcd"),
        ("one\r\ntwo\rthree\u2028four\u0085five\ffive", "one\ntwo\nthree\nfour\nfive\nfive"),
        ("a\u00a0b\u3000c  d\te", "a b c d e"),
        ("  question \n", "question"),
        ("end  \t\nnext", "end\nnext"),
        ("\ud800x", "\ufffdx"),
        ("10 µm ´ ¨", "10 μm ´ ¨"),
        ("", ""),
        (" \n\t\n", ""),
    ],
)
def test_what_looks_the_same_becomes_the_same(raw: str, cleaned: str) -> None:
    assert clean(raw) == cleaned


def test_indents_of_several_lines_are_kept_because_code_needs_them() -> None:
    assert clean("\n\n    if x:\n        y  =  1\n") == "    if x:\n        y = 1"


def test_joiners_stay_where_the_script_needs_them() -> None:
    for text in ("می\u200cخواهم", "क\u094d\u200dष", "👩\u200d💻"):
        assert clean(text) == text


def test_embedded_text_puts_the_header_on_its_own_line() -> None:
    assert embedded_text("Returns", "30 days.") == "Returns\n30 days."
    assert embedded_text("", "30 days.") == "30 days."
