"""Analysis: what the lexical leg can find."""

from __future__ import annotations

import pytest
import regex
from hypothesis import example, given
from hypothesis import strategies as st

from quarry.text import analyze, clean, identifiers


def _finds(question: str, document: str) -> bool:
    return set(analyze(clean(question))) <= set(analyze(clean(document)))


@pytest.mark.parametrize(
    ("question", "document"),
    [
        ("tents", "The tent's seam"),
        ("returned returning returns", "You may return it."),
        ("resume", "Send a résumé."),
        ("uber", "Über"),
        ("zeppelin’s", "the zeppelin"),
        ("4.90", "It costs 4.90 euros."),
        ("1000", "1,000 pieces"),
        ("オーバー電流", "軸2のオーバー電流エラー"),
        ("환불", "환불은 30일 이내에 가능합니다"),
        ("退款", "三十天内可以退款。"),
        ("كتاب", "كِتَابٌ"),
        ("возврат", "Возврат товара"),
        ("policy", "policy¹"),
    ],
)
def test_a_question_in_another_form_is_found(question: str, document: str) -> None:
    assert _finds(question, document)


def test_a_code_is_found_in_every_spelling() -> None:
    document = analyze(clean("Fault E–1042: overcurrent"))
    for spelling in ("E-1042", "e1042", "E 1042"):
        assert analyze(spelling)[-1] in document


def test_subscripts_belong_to_their_word() -> None:
    assert "co2" in analyze("CO₂")
    assert "co2" in analyze("CO2")


def test_a_neighbouring_code_is_not_found() -> None:
    assert not _finds("E-1043", "E-1034")
    assert not _finds("E-104", "E-1042")
    assert not _finds("HR-014", "HR-014-CA")


def test_stop_words_carry_nothing() -> None:
    assert analyze("This is what it was for.") == []
    assert analyze("") == []


def test_negations_are_kept() -> None:
    assert analyze("not returnable") == ["not", *analyze("returnable")]


def test_a_decimal_is_not_its_digits() -> None:
    assert not set(analyze("4.90")) & set(analyze("4 or 90"))


def test_an_identifier_is_one_token_besides_its_words() -> None:
    assert analyze("E-1042") == ["e", "1042", "ˑeˑ1042"]


@given(st.text())
@example("㉠")
@example("Ŀ")
@example("\u200d")
def test_tokens_hold_nothing_that_a_tokenizer_splits_at(text: str) -> None:
    for token in analyze(clean(text)):
        assert regex.fullmatch(r"[\p{L}\p{M}\p{N}]+", token)


@given(st.text(alphabet="ab1'.,-_ \nSx9"))
def test_the_short_way_for_ascii_gives_the_same_words(text: str) -> None:
    """A letter beyond ASCII at the end sends the text the long way and adds one token."""
    assert analyze(text + " я", codes=()) == [*analyze(text, codes=()), "я"]


def test_identifiers_that_are_known_are_taken_as_given() -> None:
    text = "See E-1042 and v1.2.3."
    assert analyze(text, codes=identifiers(text)) == analyze(text)
    assert analyze(text, codes=()) == analyze(text)[:-2]
