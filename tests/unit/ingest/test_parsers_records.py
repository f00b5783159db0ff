"""Files of many records: one document each, bad ones named, names unique, memory bounded."""

from __future__ import annotations

import csv
import io
import json
from datetime import date
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.metadata import document_fields
from ingest.parsers import parse_item
from ingest.parsers.csv_rows import csv_rows
from ingest.parsers.tabular import parse_csv, parse_jsonl, parse_parquet
from quarry.errors import ParseError
from quarry.records import BlockKind, DocState, ParsedDocument, SourceItem
from quarry.settings import IngestSettings, SourceSettings


def jsonl(*records: object) -> list[ParsedDocument]:
    lines = [record if isinstance(record, str) else json.dumps(record) for record in records]
    return list(parse_jsonl("\n".join(lines).encode()))


def states(documents: list[ParsedDocument]) -> list[tuple[str, str, str]]:
    return [(d.record, d.state.value, d.reason) for d in documents]


def test_a_beir_record_is_a_document_with_its_title_text_and_metadata() -> None:
    (found,) = jsonl(
        {"_id": "d1", "title": "Slipstream", "text": "A wing.", "metadata": {"year": 1958}}
    )
    assert (found.record, found.title, found.metadata) == ("d1", "Slipstream", {"year": 1958})
    assert [block.text for block in found.blocks] == ["A wing."]


def test_any_object_will_do_and_its_other_fields_are_metadata() -> None:
    (found,) = jsonl(
        {
            "id": 7,
            "name": "Tent",
            "body": "Two rooms.\n\nLight.",
            "price": 299.5,
            "tags": ["a", "b"],
        }
    )
    assert (found.record, found.title) == ("7", "Tent")
    assert [block.text for block in found.blocks] == ["Two rooms.", "Light."]
    assert found.metadata == {"price": 299.5, "tags": ["a", "b"]}


def test_an_object_without_a_text_is_a_row_with_column_names() -> None:
    (found,) = jsonl({"id": "ORD-99107", "parcel": "damaged", "refund": True, "acl": ["staff"]})
    (block,) = found.blocks
    assert block.kind is BlockKind.TABLE
    assert (block.header, block.rows) == (("parcel", "refund"), (("damaged", "true"),))
    assert found.metadata["acl"] == ["staff"]


def test_long_and_nested_fields_are_text_since_they_are_no_metadata() -> None:
    (found,) = jsonl({"id": "a", "text": "T.", "notes": "x" * 1500, "parts": [{"n": 1}]})
    assert [b.text[:12] for b in found.blocks] == ["T.", "notes: xxxxx", 'parts: [{"n"']
    assert found.metadata == {}


def test_a_bad_line_is_named_and_the_others_go_on() -> None:
    found = jsonl(
        {"_id": "a", "text": "x"}, "{broken", "", "[1]", '{"a": 1, "a": 2}', {"text": "z"}
    )
    assert states(found) == [
        ("a", "indexed", ""),
        ("line-2", "corrupt", "Line 2 is not valid JSON."),
        ("line-4", "corrupt", "Line 4 is not a JSON object."),
        ("line-5", "corrupt", "Line 5 gives a key twice."),
        ("line-6", "indexed", ""),
    ]


def test_a_line_of_hostile_json_is_only_a_bad_line() -> None:
    deep, huge = "[" * 100_000, '{"a": ' + "9" * 10_000 + "}"
    found = jsonl(f'{{"a": {deep}', huge, '{"text": "fine", "x": NaN}')
    assert [d.state.value for d in found] == ["corrupt", "corrupt", "indexed"]


def test_names_are_unique_and_a_repeated_id_is_told() -> None:
    found = jsonl(
        {"_id": "a", "text": "1"}, {"_id": "a", "text": "2"}, {"_id": "line-2", "text": "3"}
    )
    assert states(found) == [
        ("a", "indexed", ""),
        ("line-2", "corrupt", "Line 2 repeats the id of an earlier one."),
        ("line-3", "corrupt", "Line 3 repeats the id of an earlier one."),
    ]


def test_an_id_in_another_spelling_of_the_same_letters_is_a_repeated_one() -> None:
    found = jsonl({"_id": "caf\u00e9", "text": "1"}, {"_id": "cafe\u0301", "text": "2"})
    assert states(found)[1][1:] == ("corrupt", "Line 2 repeats the id of an earlier one.")


def test_a_record_without_text_is_empty_not_indexed() -> None:
    (found,) = jsonl({"_id": "471", "title": "", "text": ""})
    assert (found.state, found.reason) == (DocState.EMPTY, "Line 1 has no text.")


def test_the_hash_follows_the_record_and_not_its_spelling() -> None:
    spellings = ['{"_id": "a", "text": "x", "n": 1}', '{"n":1, "text":"x", "_id":"a"}']
    (one,), (same,) = (jsonl(spelling) for spelling in spellings)
    (other,) = jsonl('{"_id": "a", "text": "x", "n": 2}')
    assert one.content_hash == same.content_hash != other.content_hash


def test_a_status_of_the_record_s_own_is_not_taken_for_the_document_s() -> None:
    source = SourceSettings(default_acl=("public",))
    (ticket,) = jsonl({"id": "1", "text": "x", "status": "Closed", "url": "/tickets/1"})
    found = document_fields(ticket, {}, source)
    assert (found.status.value, found.url) == ("current", "")
    assert found.metadata == {"record.status": "Closed", "record.url": "/tickets/1"}
    (draft,) = jsonl({"id": "1", "text": "x", "status": "draft"})
    assert document_fields(draft, {}, source).status.value == "draft"


OPEN = SourceSettings(default_acl=("public",))


@pytest.mark.parametrize(
    "record",
    [
        {"acl": None},
        {"acl": ""},
        {"acl": " "},
        {"acl": []},
        {"ACL": None},
        {" Acl ": ""},
        {"\u200bacl": ""},
        {"metadata": {"ac\ud800l": ""}},
        {"metadata": {"acl": None}},
        {"metadata": {"ACL": ""}},
        {"acl": None, "metadata": {"acl": ["public"]}},
        {"metadata": {"acl": ["public"]}, "acl": ""},
        {"acl": ["hr"], "ACL": ["public"]},
    ],
)
def test_an_acl_that_is_empty_or_given_in_two_ways_closes_its_record(
    record: dict[str, object],
) -> None:
    for text in ({"text": "x"}, {"parcel": "damaged"}):
        (found,) = jsonl({"_id": "1"} | text | record)
        assert document_fields(found, {"acl": ["public"]}, OPEN).acl == ()


def test_an_acl_is_taken_from_a_record_however_it_is_spelled_and_is_no_text_of_it() -> None:
    (found,) = jsonl({"_id": "1", "parcel": "damaged", "ACL": ["hr"], "metadata": {"acl": ["hr"]}})
    assert document_fields(found, {}, OPEN).acl == ("hr",)
    assert found.blocks[0].header == ("parcel",)


@pytest.mark.parametrize(
    ("content", "acls"),
    [
        ("id,text,acl\n1,x,staff\n2,y,\n3,z\n", [("staff",), (), ()]),
        ("id,ACL ,text\n1, ,x\n", [()]),
        ("id,\ufeffacl,text\n1,hr,x\n", [("hr",)]),
        ("id,acl,text,acl\n1,hr,x,public\n2,hr,y,hr\n", [(), ("hr",)]),
        ("id,text\n1,x\n", [("public",)]),
    ],
)
def test_an_empty_cell_in_an_acl_column_closes_its_row(
    content: str, acls: list[tuple[str, ...]]
) -> None:
    found = list(parse_csv(content.encode(), tabs=False))
    assert [document_fields(row, {}, OPEN).acl for row in found] == acls


def test_jsonl_may_be_utf16_or_carry_a_byte_order_mark() -> None:
    line = '{"_id": "é", "text": "größer"}'
    for encoding in ("utf-8-sig", "utf-16"):
        assert [d.record for d in parse_jsonl(line.encode(encoding))] == ["é"]


def test_records_are_yielded_while_the_file_is_read() -> None:
    content = b'{"text": "x"}\n' * 100_000
    stream = parse_jsonl(content)
    assert [next(stream).record for _ in range(3)] == ["line-1", "line-2", "line-3"]


@given(st.lists(st.text(alphabet='{}[]":,ab1\\ \u00e9', max_size=30), max_size=8))
def test_no_line_makes_reading_crash_and_every_line_is_told(lines: list[str]) -> None:
    found = list(parse_jsonl("\n".join(lines).encode()))
    assert len(found) == sum(1 for line in lines if line.strip())
    assert len({document.record for document in found}) == len(found)


# ------------------------------------------------------------------------------ CSV and Parquet


def test_a_csv_row_is_a_document_whatever_parts_its_cells() -> None:
    content = b'id;name;price\nt1;"Tent; two rooms";299\n\nt2;Stove\n'
    found = list(parse_csv(content, tabs=False))
    assert [(d.record, d.title) for d in found] == [("t1", "Tent; two rooms"), ("t2", "Stove")]
    assert found[0].blocks[0].rows == (("Tent; two rooms", "299"),)


def test_csv_columns_without_a_name_get_one_and_lines_are_counted_in_the_file() -> None:
    found = list(parse_csv(b'a,,a\n1,2,3,4\n"x\ny",5\n7\n', tabs=False))
    assert [d.record for d in found] == ["line-2", "line-3", "line-5"]
    assert found[0].blocks[0].header == ("a", "column 2", "a 3", "column 4")


def rows(content: str, *, tabs: bool = False) -> list[tuple[str, str]]:
    """Names of the records, and their text or else the beginning of why they cannot be read."""
    found = list(parse_csv(content.encode(), tabs=tabs))
    assert all(d.is_unread == (d.state is DocState.CORRUPT) for d in found)
    told = (d.reason if d.is_unread else d.blocks[0].text if d.blocks else "" for d in found)
    return [(d.record, text[:30]) for d, text in zip(found, told, strict=True)]


OPENED = "Line 2 leaves a quote open, so"
INSIDE = "Line 2 has quotes inside a cel"


@pytest.mark.parametrize(
    "content",
    [
        'id,text,x\n1,"open,x\n2,b,x\n3,c,x\n',  # to the end of the file
        'id,text,x\r\n1,"open,x\r\n2,b,x\r\n3,c,x\r\n',
        'id,text,x\r1,"open,x\r2,b,x\r3,c,x',
        'id,text,x\n1,"open,x\n2,"b",x\n3,"c",x\n',  # to the next quote
        'id,text,x\n1,"open,x\n2,b,""\n3,"c",x\n',  # over an empty cell
        '"id","text","x"\n"1","a","open\n"2","b","x"\n"3","c","x"\n',
        'id;text;x\n1;"open, a;x\n2;"b";x, y\n3;c;x, y\n',
    ],
)
def test_a_quote_that_is_left_open_does_not_swallow_the_rows_below_it(content: str) -> None:
    assert rows(content) == [("line-2", OPENED), ("2", "b"), ("3", "c")]
    if "," in content and ";" not in content:
        assert rows(content.replace(",", "\t"), tabs=True) == rows(content)


def test_a_quote_that_is_left_open_within_its_line_is_told_by_the_number_of_cells() -> None:
    within = '"id","text","x"\n"1","open,"x"\n"2","b","x"\n"3","c","x"\n'
    assert rows(within) == [("line-2", INSIDE), ("2", "b"), ("3", "c")]


@pytest.mark.parametrize(
    ("content", "acls"),
    [
        (
            'id,text,acl\n7,"Dear board\nthe salaries, as agreed, public\nbye"\n8,x,hr\n',
            {"7": (), "8": ("hr",)},
        ),
        (
            'id,text,acl,note\n1,"x\na, b, public, c\ny",hr\n2,"x\na, b, public, c\ny"\n',
            {"1": ("hr",), "2": ()},
        ),
        ('id,text,acl\n1,"x\na, b, public\ny",z,hr\n2,x,hr\n', {"line-2": (), "2": ("hr",)}),
        (
            'id,text,acl\n1,"a" b,hr\n7,"Dear\nthe pay, as agreed, public\nbye"\n8,x,hr\n',
            {"line-2": (), "8": ("hr",)},
        ),
        (
            'id,name,address\n1,"Ruth","1 High St, York\n2, x, y\nUK"\n2,"Ann, B\nC, D, E\nF"\n',
            {"1": ("public",), "2": ("public",)},
        ),
    ],
)
def test_lines_within_a_cell_that_is_quoted_well_are_no_rows(
    content: str, acls: dict[str, tuple[str, ...]]
) -> None:
    found = list(parse_csv(content.encode(), tabs=False))
    told = {d.record: () if d.is_unread else document_fields(d, {}, OPEN).acl for d in found}
    assert told == acls


@pytest.mark.parametrize(
    "row",
    [
        '1,"say \\"hi\\", public\nthe rest of the secret",hr',
        '1,"He" said, public\nand more",hr',
        '1,"a" b,hr',
    ],
)
def test_a_row_with_a_wrong_quote_that_has_all_its_cells_by_chance_is_not_read(row: str) -> None:
    content = f'id,text,acl\n{row}\n2,"x ""y""",hr\n3,"p "q" r",hr\n'
    found = list(parse_csv(content.encode(), tabs=False))
    assert [d.is_unread for d in found] == [True, False, True]
    assert [d.record for d in found][:2] == ["line-2", "2"]
    cure = "double them" if "\\" in row else "double each quote that is text."
    assert cure in found[0].reason
    assert len(rows(f"id,text,x\n{row}\n2,b,hr\n")) > 1


def test_what_may_be_text_of_an_open_cell_is_no_row_until_one_has_all_cells() -> None:
    content = 'id,text,acl\n1,"a "b" c\nd, e\n\nf\ng, h, i, public\n2,b,staff\n3,c\n'
    assert rows(content) == [("line-2", INSIDE), ("2", "b"), ("3", "c")]
    cut = 'id,text,acl\n1,a,staff\n2,"b\nand more\n3,c,staff\nd, e\n'
    assert rows(cut) == [
        ("1", "a"),
        ("line-3", OPENED.replace("2", "3")),
        ("3", "c"),
        ("line-6", "Line 6 has not as many cells a"),
    ]


def test_each_open_quote_is_named() -> None:
    content = 'id,text\n1,"a\n2,"b\n3,c\n4,"d\ne"\n5,"f'
    assert [name for name, _ in rows(content)] == ["line-2", "line-3", "3", "4", "line-7"]


def test_quotes_that_end_in_their_line_or_whole_cells_of_many_lines_are_no_fault() -> None:
    content = 'id,text,x\n1,"a "b" c",x\n2,5" pipe,x\n3,"d, ""e""\n\nf, g\nh"\n4,"i"j,x\n'
    assert [name for name, _ in rows(content)] == ["1", "2", "3", "4"]
    assert [block.text for block in list(parse_csv(content.encode(), tabs=False))[2].blocks] == [
        'd, "e"',
        "f, g\nh",
    ]


def test_a_header_that_leaves_a_quote_open_sets_the_file_aside() -> None:
    with pytest.raises(ParseError, match="Line 1 leaves a quote open") as caught:
        rows('id,"text\n1,a\n2,b\n')
    assert caught.value.state == DocState.CORRUPT


def test_quotes_that_are_open_all_over_are_no_burden() -> None:
    with pytest.raises(ParseError, match="leaves a quote open"):
        rows("id,text\n" + 'b",",\n' * 100_000)


@given(st.lists(st.text(alphabet='",;x1\n \r', max_size=12), max_size=8))
def test_no_quotes_make_reading_crash_or_give_a_name_twice(lines: list[str]) -> None:
    content = "id,text,x\n" + "\n".join(lines)
    found = list(parse_csv(content.encode(), tabs=False))
    assert len({document.record for document in found}) == len(found)


@given(st.lists(st.lists(st.text(alphabet='",;x\n \r', max_size=12), min_size=3, max_size=3)))
def test_what_is_quoted_well_is_read_as_it_was_written(cells: list[list[str]]) -> None:
    file = io.StringIO(newline="")
    csv.writer(file).writerows([["id", "text", "x"], *cells])
    header, *found = csv_rows(file.getvalue(), tabs=False)
    assert header.cells == ("id", "text", "x")
    said = [tuple(row) for row in cells if any(cell.strip() for cell in row)]
    assert [(row.cells, row.fault) for row in found] == [(row, "") for row in said]


def test_parquet_rows_are_documents() -> None:
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    rows: list[dict[str, Any]] = [
        {"id": "a", "text": "First.", "day": date(2026, 7, 1), "price": Decimal("4.90")},
        {"id": None, "text": "Second.", "day": None, "price": None},
    ]
    buffer = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows), buffer)
    found = list(parse_parquet(buffer.getvalue()))
    assert [d.record for d in found] == ["a", "row-2"]
    assert found[0].metadata == {"day": "2026-07-01", "price": "4.90"}
    closing = io.BytesIO()
    acls: list[dict[str, Any]] = [
        {"id": "a", "text": "x", "acl": None},
        {"id": "b", "text": "y", "acl": ["hr"]},
    ]
    pq.write_table(pa.Table.from_pylist(acls), closing)
    closed = [document_fields(d, {}, OPEN).acl for d in parse_parquet(closing.getvalue())]
    assert closed == [(), ("hr",)]
    with pytest.raises(ParseError) as caught:
        list(parse_parquet(b"PAR1broken"))
    assert caught.value.state == DocState.CORRUPT


@pytest.mark.parametrize(("content", "name"), [(b"\n \n{", "a.txt"), (b"a,b\n", "a.csv")])
def test_a_file_without_records_is_empty(content: bytes, name: str) -> None:
    item = SourceItem(source="s", address=name, uri=name, tag="t", size=0)
    if name.endswith(".csv"):
        with pytest.raises(ParseError) as caught:
            list(parse_item(content, item, IngestSettings()))
        assert caught.value.state == DocState.EMPTY
    else:
        assert [d.record for d in parse_item(content, item, IngestSettings())] == [""]


@pytest.mark.parametrize(
    ("cell", "acl"),
    [
        ("hr", "hr"),
        ('"[""hr"", ""staff""]"', ["hr", "staff"]),
        ('"[""hr"", 5]"', ["hr", 5]),
        ('"[""hr"""', '["hr"'),
        ('"{""hr"": 1}"', '{"hr": 1}'),
        ("5", "5"),
    ],
)
def test_a_cell_has_one_scope_or_several_as_json(cell: str, acl: object) -> None:
    (document,) = parse_csv(f"id,acl,text\n1,{cell},Hello\n".encode(), tabs=False)
    assert document.metadata["acl"] == acl
