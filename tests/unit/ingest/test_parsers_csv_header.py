"""A CSV file is cut as its header says, and is not read if it may have lost its column `acl`."""

from __future__ import annotations

import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.metadata import document_fields
from ingest.parsers.csv_rows import csv_rows
from ingest.parsers.tabular import parse_csv
from quarry.errors import ParseError
from quarry.records import DocState
from quarry.settings import SourceSettings

OPEN = SourceSettings(default_acl=("public",))
CELLS = st.text(alphabet="ab ,;\t|\"'1", max_size=12)


def read(text: str, *, tabs: bool = False) -> list[tuple[str, tuple[str, ...], str]]:
    """Name, readers and text of each row."""
    found = parse_csv(text.encode(), tabs=tabs)
    return [
        (row.record, document_fields(row, {}, OPEN).acl, " ".join(b.text for b in row.blocks))
        for row in found
    ]


@pytest.mark.parametrize(
    "text",
    [
        'id;acl;text\n1;hr;"Salaries, ""secret"", x"\n',
        'id;acl;text\n1;hr;"a, b, c"\n2;hr;"d, e, f"\n',
        "id|acl|text\n1|hr|a;b,c;d,e\n",
        "text,acl,id\na;b;c|d|e,hr,1\n",
        'id, text, acl\n1, "a, public, b", hr\n',
        "\ufeffid\tacl\ttext\n1\thr\ta,b\n",
        "name|a,b;acl;text\n1;hr;a,b,c,d\n",
    ],
)
def test_the_header_tells_what_parts_the_cells(text: str) -> None:
    assert {acl for _, acl, _ in read(text)} == {("hr",)}


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("id;name\n1;a, b\n2;c, d\n", "1"),
        ("id,name\n1,a;b\n2,c;d\n", "1"),
        ("id;name, short\n1;a\n2;c\n", "1"),
        ("text\nHello, world\n", "line-2"),
    ],
)
def test_a_header_without_an_acl_is_cut_where_it_has_cells_as_its_rows_have(
    text: str, first: str
) -> None:
    assert read(text)[0][:2] == (first, ("public",))


@pytest.mark.parametrize("delimiter", [",", ";", "|", "\t", ":", "^"])
@pytest.mark.parametrize("line", ["sep={}", "SEP={}", '"sep={}"', "\ufeffsep={0}{0}", "\n sep={}"])
@pytest.mark.parametrize("tabs", [True, False])
def test_the_delimiter_that_a_file_names_is_honoured(delimiter: str, line: str, tabs: bool) -> None:
    rows = f"id{delimiter}acl{delimiter}text\r\n7{delimiter}hr{delimiter}x\r\n"
    assert read(f"{line.format(delimiter)}\r\n{rows}", tabs=tabs) == [("7", ("hr",), "x")]


def test_lines_are_counted_with_the_one_that_names_the_delimiter() -> None:
    assert [name for name, *_ in read("sep=;\nacl;text\nhr;x\n")] == ["line-3"]


@pytest.mark.parametrize(
    "text",
    [
        "# export 2026\nid,acl,text\n1,hr,secret\n",
        "Report of 2026,,\nid,acl,text\n1,hr,secret\n",
        "Report\n\nBy Ruth\n\n\nid;text;Access List\n1;secret;hr\n",
        "id:acl:text\n1:hr:secret\n",
        "id^acls^text\n1^hr^secret\n",
        "# acl: hr\nid,text\n1,secret\n",
        'id,"acl,text\n1,hr,secret\n2,hr,secret"\n',
        "sep=|\nid;acl;text\n1;hr;secret\n",
    ],
)
@pytest.mark.parametrize("tabs", [True, False])
def test_a_file_that_names_an_acl_near_its_header_and_has_no_such_column_fails(
    text: str, tabs: bool
) -> None:
    with pytest.raises(ParseError, match="make the line with the names of the columns") as caught:
        read(text, tabs=tabs)
    assert caught.value.state == DocState.FAILED


def test_an_acl_in_the_text_of_a_cell_or_far_below_is_none_of_the_header() -> None:
    assert len(read("id,text\n1,What an acl is\n2,oracle\n")) == 2
    assert len(read("id,text\n" + "1,x\n" * 20 + "2,acl\n")) == 21


@pytest.mark.parametrize("header", ["id,text,acl", "id,acl,text", "id,text,acls"])
def test_a_row_of_more_cells_than_the_header_is_not_read_since_any_may_be_its_acl(
    header: str,
) -> None:
    rows = list(
        parse_csv(f"{header}\n1,hr,hr\n2,salaries, public,hr\n3,hr,hr,\n".encode(), tabs=False)
    )
    assert [(row.record, row.is_unread) for row in rows] == [
        ("1", False),
        ("line-3", True),
        ("line-4", True),
    ]
    assert rows[1].reason == (
        "Line 3 has more cells than the header, so it is not known which of them is its acl; put "
        "quotes round each cell that holds the delimiter, and give each row as many cells as the "
        "header."
    )


@pytest.mark.parametrize(
    "text",
    [
        "id,text,acl,note\n2,salaries of everyone, public,hr,\n",
        "id,text,acl,note\n1,x,hr,\n2,x,hr,\n3,x,hr,\n4,salaries, public,hr,\n",
        "id,text,acl,note\n1,x,hr,,\n2,x,hr,,\n3,x,hr,,\n4,salaries, public,hr,,\n",
        "id,text,acl\n1,salaries, public,\n",
        'id,text,acl\n1,salaries, public,""\n2,x,hr\n3,y,hr\n4,z,hr\n',
        "id,text,acl\n1,x,hr,\n2,x,hr,\n3,salaries, public, ,\n4,y,hr,\n",
        "id,text,acl\n1,x,hr,\n2,x,hr,\n3,x,hr,\n4,salaries, public,\n",
        "id,text,acl\n1,pay, public,\n2,bonus, public,\n3,salaries, public,\n",
    ],
)
@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_a_surplus_cell_that_is_blank_moves_the_others_too(text: str, delimiter: str) -> None:
    found = read(text.replace(",", delimiter), tabs=delimiter == "\t")
    assert {acl for name, acl, _ in found if not name.startswith("line-")} <= {("hr",)}
    assert any(name.startswith("line-") for name, *_ in found)


@pytest.mark.parametrize("end", [",", ",,", ", ", ',""'])
def test_a_file_in_which_all_rows_end_with_the_delimiter_is_read(end: str) -> None:
    body = "".join(f"{number},x,hr{end}\n" for number in range(30))
    assert len(read(f"id,text,acl\n{body}")) == 30
    moved = read(f"id,text,acl\n{body}30,pay, public,hr{end}\n31,pay, public\n32,x,hr{end}\n")
    assert [name for name, acl, _ in moved if acl != ("hr",)] == ["line-32", "line-33"]
    assert len(moved) == 33


def test_rows_are_given_out_while_the_file_is_read() -> None:
    stream = parse_csv(b"id,text,acl\n" + b",x,hr\n" * 20_000, tabs=False)
    assert [next(stream).record for _ in range(12)][-1] == "line-13"


@pytest.mark.parametrize(
    "text",
    [
        "term,definition\nDNS,Domain name system\nACL,Access control list\nVPN,x\n",
        "player,injury\nSmith,ACL\nJones,Hamstring\n",
        'q,a\n1,"see: ACL, or so"\n',
        "term;definition\nACL;Access control list\n",
        "term\tdefinition\nacl\tAccess list\n",
        "#,player,injury\n1,Smith,ACL\n",
        '"q","a"\n"1","two\nlines"\n"2","What? ACL, yes"\n',
    ],
)
def test_a_cell_that_holds_the_word_is_no_header(text: str) -> None:
    found = read(text, tabs="\t" in text)
    assert len(found) == len(list(csv.reader(io.StringIO(text)))) - 1
    assert {acl for _, acl, _ in found} == {("public",)}


@pytest.mark.parametrize(
    "text",
    [
        "Report,,\nid,acl,text\n1,hr,secret\n",
        "Report,Q1,2026\nnr,acl,words\n1,hr,secret\n",
        "Report,Berlin,final\nid,acl,text\n1,hr,secret\n",
        "# made by X, on Monday\nnr,acl\n1,hr\n",
        "Report, of Monday\nnr,acl,text\n1,hr,secret\n",
        "player,injury\nSmith,ACL,x\n",
        "term,definition\nACL\n",
    ],
)
def test_a_line_above_the_real_header_is_not_taken_for_it(text: str) -> None:
    with pytest.raises(ParseError, match="make the line with the names of the columns"):
        read(text)


@pytest.mark.parametrize(
    ("text", "cells"),
    [
        (
            'id,text,more\n1,"He said \\"hi\\", ok",x\n2,b,c\n',
            [("1", 'He said "hi", ok', "x"), ("2", "b", "c")],
        ),
        (
            'id,payload,acl\n1,"{\\"a\\": 1, \\"b\\": 2}",hr\n2,"",hr\n',
            [("1", '{"a": 1, "b": 2}', "hr"), ("2", "", "hr")],
        ),
        (
            'id;text;acl\n1;"say \\"hi\\"; public\nthe rest of the secret";hr\n2;b;hr\n',
            [("1", 'say "hi"; public\nthe rest of the secret', "hr"), ("2", "b", "hr")],
        ),
        (  # the doubled ones are JSON's own backslashes
            'id,text\n1,"{""a"": ""x \\""y\\""""}"\n2,"C:\\"\n',
            [("1", '{"a": "x \\"y\\""}'), ("2", "C:\\")],
        ),
    ],
)
def test_quotes_escaped_by_a_backslash_are_read_where_nothing_else_can_be_meant(
    text: str, cells: list[tuple[str, ...]]
) -> None:
    assert [row.cells or row.fault for row in csv_rows(text, tabs=False)][1:] == cells


def test_a_backslash_that_takes_a_delimiter_with_it_moves_no_acl() -> None:
    text = 'id,path,acl,note\n1,"a \\"b\\"",hr,x\n2,C:\\,hr,public\n'
    assert [name for name, *_ in read(text)] == ["1", "line-3"]


def test_where_quotes_are_wrong_in_both_ways_the_reason_says_what_to_do() -> None:
    found = list(csv_rows('id,text,x\n1,"a \\"b\\" , c",x\n2,"d "e" f",x\n', tabs=False))
    assert [row.line for row in found if not row.fault] == [1, 3]
    assert "backslash are not read in this file: double them" in found[1].fault


@pytest.mark.parametrize("header", ["id,text", "acl,id,text"])
def test_where_no_acl_can_be_moved_it_is_read(header: str) -> None:
    row = "hr,1,Hello, world" if header.startswith("acl") else "1,Hello, world"
    assert [name for name, *_ in read(f"{header}\n{row}\n")] == ["1"]


@given(
    st.sampled_from(",;\t|"),
    st.permutations(["id", "acl", "text", "note"]),
    st.lists(st.tuples(CELLS, CELLS), min_size=1, max_size=6),
)
def test_whatever_the_cells_hold_each_row_is_read_by_those_it_names(
    delimiter: str, header: list[str], cells: list[tuple[str, str]]
) -> None:
    file = io.StringIO()
    writer = csv.DictWriter(file, header, delimiter=delimiter)
    writer.writeheader()
    for number, (text, note) in enumerate(cells):
        writer.writerow({"id": f"r{number}", "acl": "hr", "text": text, "note": note})
    found = read(file.getvalue())
    assert [(name, acl) for name, acl, _ in found] == [
        (f"r{n}", ("hr",)) for n in range(len(cells))
    ]


ANY = st.text(alphabet="ab ,;\t|\"'\\1\n", max_size=12)


@given(
    st.sampled_from(",;\t|"),
    st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL, csv.QUOTE_NONNUMERIC]),
    st.sampled_from(["\n", "\r\n"]),
    st.booleans(),
    st.sampled_from([["id", "acl", "text"], ["id", "text"], ["id", "name", "words", "acl"]]),
    st.data(),
)
def test_what_a_program_writes_is_read_as_it_was_written(
    delimiter: str, quoting: int, end: str, is_doubled: bool, header: list[str], data: st.DataObject
) -> None:
    """Whatever parts the cells, quotes them and ends the lines."""
    quoting = quoting if is_doubled else csv.QUOTE_ALL
    row = st.lists(ANY, min_size=len(header) - 1, max_size=len(header) - 1)
    written = [header, *([f"r{n}", *each] for n, each in enumerate(data.draw(st.lists(row))))]
    if not is_doubled:  # else nothing says that quotes are escaped so
        written.insert(1, ["q", *['say "hi" to'] * (len(header) - 1)])
    file = io.StringIO(newline="")
    csv.writer(
        file,
        delimiter=delimiter,
        quoting=quoting,
        lineterminator=end,
        doublequote=is_doubled,
        escapechar=None if is_doubled else "\\",
    ).writerows(written)
    found = csv_rows(file.getvalue(), tabs=delimiter == "\t")
    assert [(row.cells, row.fault) for row in found] == [(tuple(row), "") for row in written]
