"""A CSV file is cut as its header says, and is not read if it may have lost its column `acl`."""

from __future__ import annotations

import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.metadata import document_fields
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
        ("3", False),
    ]
    assert rows[1].reason == (
        "Line 3 has more cells than the header, so it is not known which of them is its acl; put "
        "quotes round each cell that holds the delimiter."
    )
    assert document_fields(rows[2], {}, OPEN).acl in {("hr",), ()}


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
