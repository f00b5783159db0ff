"""What a sentence says must be in the passages that it cites: numbers, codes and words."""

from __future__ import annotations

from dataclasses import replace
from datetime import date

import pytest

from quarry.text import REFUSAL
from serve.answering.citations import Sentence
from serve.answering.numbers import numbers
from serve.answering.support import doubt, states_fact
from tests.unit.serve.answering.test_citations import evidence

SOURCE = evidence(
    "Used tents are returned within 60 days for store credit only. Shipping costs 4.90 euros above "
    "1,000 grams. E-1042 stops axis 2. Seven days are free. Open from 09:00 on 2026-07-01."
)


def sentence(text: str, *, labels: tuple[str, ...] = ("S1",), in_code: bool = False) -> Sentence:
    return Sentence(text=text, labels=labels, paragraph=0, in_code=in_code)


def reason(text: str) -> str:
    found = doubt(sentence(text), [SOURCE])
    return found.reason if found else ""


@pytest.mark.parametrize(
    "text",
    [
        "Used tents are returned within 60 days for store credit only.",
        "You can return a used tent within 60 days, but only for store credit.",
        "Shipping is 4,90 euros above 1000 grams.",
        "Shipping is 4.9 euros above 1.000 grams.",
        "7 days are free.",
        "It is open from 9:00 on 1/7/2026.",
        "E 1042 stops axis two.",
        "Yes.",
        "Used tents are not returned after 60 days.",
        "Nothing but store credit is given for used tents.",
        "Used tents are returned within sixty days for store credit only.",
        "Shipping costs 4.90 euros above one thousand grams.",
        "Shipping costs 4.90 euros above a thousand grams.",
        "Shipping costs 4.90 euros above 1 thousand grams.",
    ],
)
def test_what_the_source_says_is_borne_in_any_spelling(text: str) -> None:
    assert reason(text) == ""


@pytest.mark.parametrize(
    "text",
    [
        "Used tents are returned within 90 days for store credit only.",
        "Shipping costs 4.95 euros.",
        "E-1043 stops axis 2.",
        "E-1042 stops axis 3.",
        "Used tents are returned within six days for store credit.",
        "Used tents are returned within twenty days for store credit.",
        "Used tents are returned within sixty-one days for store credit.",
        "Shipping costs 4.90 euros above two thousand grams.",
    ],
)
def test_a_number_or_code_that_no_source_has_is_doubted(text: str) -> None:
    assert reason(text) == "numbers"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("twenty", {"20"}),
        ("twenty-one days", {"21"}),
        ("two hundred and fifty-five", {"255"}),
        ("two and three", {"2", "3"}),
        ("five twenty six", {"5", "26"}),
        ("Three thousand one hundred", {"3100"}),
        ("1.5 million", {"1500000"}),
        ("2 thousand and 3", {"2000", "3"}),
        ("one of them", set()),
        ("one hundred", {"100"}),
        ("tense sixes", set()),
    ],
)
def test_spelled_numbers_are_composed(text: str, expected: set[str]) -> None:
    assert numbers(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "Used tents do not give store credit, within 60 days.",
        "Used tents are never returned within 60 days.",
        "Used tents aren't returned within 60 days for store credit only.",
        "Broken stoves can be returned to the shop.",
    ],
)
def test_the_opposite_of_what_the_source_says_is_doubted(text: str) -> None:
    source = evidence(
        "Used tents give store credit only. Used tents are returned within 60 days for store "
        "credit only. Broken stoves cannot be returned to the shop."
    )
    found = doubt(sentence(text), [source])
    assert found is not None
    assert found.reason == "negation"


@pytest.mark.parametrize(
    ("text", "source"),
    [
        ("Used tents are returned within 60 days.", "Used tents are not returned after 60 days."),
        ("Used tents are returned if they are dry.", "Used tents are not returned unless dry."),
        ("Used tents are returned within 60 days.",
         "Used tents are returned within 60 days, but broken stoves are not."),
        ("Used tents are returned within 60 days.",
         "Are used tents not returned? Used tents are returned within 60 days."),
        ("Used tents are not returned.", "No used tent is returned."),
        ("Give no more than 60 used tents back.", "Give at most 60 used tents back."),
    ],
)  # fmt: skip
def test_what_only_looks_like_the_opposite_is_not(text: str, source: str) -> None:
    found = doubt(sentence(text), [evidence(source)])
    assert found is None or found.reason != "negation"


def test_words_that_no_source_has_are_doubted() -> None:
    assert reason("Paris is the capital of France.") == "words"
    assert reason("Stoves must never be thrown into the household waste.") == "words"


def test_a_sentence_without_a_source_is_doubted() -> None:
    found = doubt(sentence("Used tents are returned.", labels=()), [])
    assert found is not None
    assert (found.reason, found.labels) == ("uncited", ())


def test_title_section_version_and_date_of_a_source_count_as_said() -> None:
    document = replace(SOURCE.document, title="Returns", version="4.2", effective=date(2025, 3, 1))
    source = replace(SOURCE, document=document)
    text = "Version 4.2 of the returns, in force since 1 March 2025, gives store credit only."
    assert doubt(sentence(text), [source]) is None


def test_several_sources_bear_a_sentence_together() -> None:
    other = evidence("Stoves are returned within 14 days.", label="S2")
    text = "Used tents are returned within 60 days and stoves within 14 days."
    assert doubt(sentence(text), [SOURCE]) is not None
    assert doubt(sentence(text), [SOURCE, other]) is None


@pytest.mark.parametrize(
    "text",
    [
        "Gebrauchte Zelte werden nur gegen einen Gutschein zurückgenommen, innerhalb von 60 Tagen.",
        "Les tentes ne sont reprises que pour un avoir, dans les 60 jours qui suivent.",
        "二手帐篷可在60天内退货，仅换取商店积分。",
    ],
)
def test_another_language_is_said_to_be_uncompared_not_wrong(text: str) -> None:
    assert reason(text) == "language"


def test_a_terse_sentence_of_the_same_language_is_no_other_language() -> None:
    assert reason("Stoves contain propane gas cylinders permanently welded everywhere.") == "words"


def test_numbers_are_compared_in_any_language() -> None:
    assert reason("Gebrauchte Zelte nehmen wir innerhalb von 90 Tagen zurück.") == "numbers"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Used tents are returned.", True),
        ("It takes 60 days.", True),
        ("| Tent | 60 days |", True),
        ("Yes.", False),
        ("What do you mean?", False),
        ("The sources say this:", False),
        ("## Used gear and returns", False),
        ("|---|:--|", False),
        (REFUSAL, False),
        ("", False),
    ],
)
def test_what_needs_a_source(text: str, expected: bool) -> None:
    assert states_fact(sentence(text)) is expected


def test_code_needs_no_source() -> None:
    assert not states_fact(sentence("pip install tents == 4", in_code=True))
