"""The filter language: what it means, and that whatever is not a filter gets one sentence."""

from __future__ import annotations

from datetime import date

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from quarry.access.compile import labels_of, matches
from quarry.access.compile_elasticsearch import to_elasticsearch
from quarry.access.compile_milvus import to_milvus
from quarry.access.compile_sql import to_sql
from quarry.access.filters import EVERYTHING, And, Compare, In, Not, Op, Or
from quarry.access.language import MAX_BYTES, MAX_DEPTH, MAX_VALUES, parse_filter
from quarry.errors import FilterError
from quarry.records import Document, Scalar, Status
from tests.conftest import REPO
from tests.contract.filters import HOSTILE, HOSTILE_KEYS, LONG


def found(text: str, **fields: object) -> bool:
    document = Document(doc_id="d", address="a", uri="u", **{"source": "wiki", **fields})  # type: ignore[arg-type]
    return matches(parse_filter(text), labels_of(document))


def about(text: str, value: Scalar) -> bool:
    return found(text, metadata={"x": value})


def test_blank_text_is_every_document() -> None:
    assert parse_filter("") == parse_filter(" \n") == EVERYTHING


def test_and_binds_closer_than_or_and_not_closest() -> None:
    a, b, c = (Compare(name, Op.EQ, "v") for name in "abc")
    assert parse_filter("a = v or b = v and not c = v") == Or((a, And((b, Not(c)))))
    assert parse_filter("(a = v OR b == v) AND c = v") == And((Or((a, b)), c))


def test_lists_and_ranges() -> None:
    assert parse_filter("region in (EU, 'U K')") == In("region", ("EU", "U K"))
    assert [about("x = 10..20", n) for n in (9, 10, 15.5, 20, 21)] == [
        False,
        True,
        True,
        True,
        False,
    ]
    assert [about("x in (1, 5..6)", n) for n in (1, 2, 5, 6)] == [True, False, True, True]
    assert [about("x not in (1, 5..6)", n) for n in (1, 2, 5, 7)] == [False, True, False, True]
    assert not found("x not in (1, 2)"), "a document without the field is not found by `not in`"
    assert found("not x in (1, 2)"), "but by `not` of `in`"


def test_numbers_compare_as_numbers_and_text_as_text() -> None:
    assert about("x > 9", 10) and not about('x > "9"', 10)
    assert about("x = 2.50", 2.5) and about("x = 5", 5.0)
    assert about("x = 00042", "00042") and not about("x = 42", "00042")


def test_a_bare_number_also_finds_records_that_hold_it_as_text() -> None:
    assert about("x = 99107", 99107) and about("x = 99107", "99107")
    assert not about('x = "99107"', 99107)
    assert not about("x != 5", "5") and not about("x != 5", 5) and about("x != 5", 6)


def test_numbers_too_long_for_some_store_stay_exact() -> None:
    order = 90071992547409930001
    assert about(f"x = {order}", order) and not about(f"x = {order}", order + 1)


def test_true_and_false() -> None:
    assert about("x = true", True) and not about("x = true", 1) and about("x != true", False)


def test_fields_have_their_own_kinds() -> None:
    assert found("version >= 9", version="10") and not found("version > 1.10", version="1.9")
    assert found("status = Draft", status=Status.DRAFT)
    assert found("effective >= 2026-07-01", effective=date(2026, 7, 1))
    assert found("effective = 2026-01-01..2026-12-31", effective=date(2026, 7, 1))
    assert not found("effective < 2026-07-01"), "no date is not early"
    assert found(
        "source = wiki and tenant = default and series = ''' '''".replace("''' '''", "s"),
        series="s",
    )


@pytest.mark.parametrize("value", [*HOSTILE, *LONG[3:], "in", "and", "", "a..b", " "])
def test_any_text_can_be_said_in_quotes(value: str) -> None:
    said = value.replace("\\", "\\\\").replace('"', '\\"')
    assert about(f'x = "{said}"', value)
    assert not about(f'x = "{said}"', value + "x")
    said = said.replace('\\"', '"').replace("'", "\\'")
    assert about(f"x = '{said}'", value)


def test_field_names_are_read_in_lower_case_as_metadata_is_kept() -> None:
    assert parse_filter("Region = EU and STATUS = draft") == parse_filter(
        "region = EU and status = draft"
    )


def test_escapes() -> None:
    assert parse_filter(r'x = "\n\t\"\'\\\u00e9\ud83d\ude00"') == Compare(
        "x", Op.EQ, "\n\t\"'\\é😀"
    )


@pytest.mark.parametrize("key", [key for key in HOSTILE_KEYS if len(key) <= 128])
def test_any_metadata_key_can_be_named_in_quotes(key: str) -> None:
    said = key.replace("\\", "\\\\").replace('"', '\\"')
    assert found(f'"{said}" = v', metadata={key: "v"})
    assert not found(f'"{said}" = v', metadata={key + "x": "v", "x": "v"})


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("region", "its end: expected a comparison such as = or >=, in or not"),
        ("region = ", "its end: expected a word or a text in quotes"),
        ("region = EU and", "its end"),
        ("region = EU US", "character 13: expected .., and, or or the end"),
        ("= EU", "character 1"),
        ('region = "EU', "character 10: expected a closing quote"),
        ("region = 'EU\"", "character 10"),
        ("(region = EU", "its end"),
        ("region = EU)", "character 12"),
        ("region in ()", "character 12"),
        ("region in (EU", "its end"),
        ("not not region = EU", "character 5"),
        ("region = in", "character 10"),
        ("region ~ EU", "character 8"),
        ("x = 1..", "its end"),
        ("x > 1..2", "A range goes with = only"),
        ("x = 1..b", "Both ends of a range are of one kind"),
        ("x > true", "no order"),
        ("status > draft", "no order"),
        ("status = final", "status is current, draft or withdrawn"),
        ("effective = July", "effective takes dates such as 2026-07-01"),
        ("effective = 2026-02-30", "effective takes dates"),
        ('series = ""', "a text that is not empty"),
        ('"" = v', "A field name has"),
        (r'x = "\q"', "escape that is not known"),
        (r'x = "\ud83d"', "not text"),
        (r'x = "\u0000"', "not text"),
        ("x = \0", "not text"),
        ("x = \ud800", "not text"),
        ("acl = public", "cannot name acl"),
        ('not "ACL " in (hr)', "cannot name acl"),
    ],
)
def test_what_is_not_a_filter_gets_one_sentence_that_says_where(text: str, place: str) -> None:
    with pytest.raises(FilterError) as caught:
        parse_filter(text)
    message = str(caught.value)
    assert place in message
    assert message.endswith(".") and "\n" not in message


def test_limits() -> None:
    nested = "(" * MAX_DEPTH + "a = b" + ")" * MAX_DEPTH
    assert parse_filter(nested) == Compare("a", Op.EQ, "b")
    listed = ", ".join("v" for _ in range(MAX_VALUES - 1))
    assert parse_filter(f"a in ({listed})")
    for text in (f"({nested})", f"a in ({listed}, v)", f'a = "{"x" * MAX_BYTES}"'):
        with pytest.raises(FilterError):
            parse_filter(text)


def test_messages_never_repeat_what_was_written() -> None:
    for text in ("secretword ~", "secretword = = 1", 'acl = "secretword"', "status = secretword"):
        with pytest.raises(FilterError) as caught:
            parse_filter(text)
        assert "secretword" not in str(caught.value)


_words = st.sampled_from(
    ["a", "effective", "status", "acl", "1", "2..3", "2026-01-01", "draft", "(", ")", ",", "and",
     "or", "not", "in", "=", "!=", "<=", '"', "'", '"x\\', "..", "\\", "\n", "é", "'q'", '"r"']
)  # fmt: skip


@given(st.text() | st.lists(_words, max_size=30).map(" ".join))
@example("a = 1e99999 or b = -0")
def test_any_text_is_a_filter_for_every_store_or_a_filter_error(text: str) -> None:
    try:
        filter = parse_filter(text)
    except FilterError:
        return
    to_sql(filter, table="t")
    to_elasticsearch(filter)
    to_milvus(filter)
    to_milvus(filter, lite=True)


def test_the_examples_of_the_documentation_are_filters() -> None:
    page = (REPO / "docs" / "filters.md").read_text(encoding="utf-8")
    examples = [line.strip() for line in page.splitlines() if line.startswith("    ")]
    assert len(examples) >= 3
    for shown in examples:
        assert parse_filter(shown) != EVERYTHING
