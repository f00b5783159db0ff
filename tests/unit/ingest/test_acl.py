"""Which key says who may read, and what closes a document because it was meant to and does not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ingest.acl import Closed, acl_within, means_acl, with_acl
from ingest.metadata import document_fields
from ingest.parsers.tabular import parse_csv, parse_jsonl
from ingest.sources import open_source
from quarry.errors import UsageError
from quarry.records import ParsedDocument
from quarry.settings import SourceSettings

OPEN = SourceSettings(default_acl=("public",))
MISSPELT = [
    "acls",
    "acll",
    "accl",
    "acl_list",
    "acces list",
    "A.C.L.",
    "access_list",
    "accessControlList",
    "# acl",
    "metadata.acl",
    "ＡＣＬ",
]


def write(path: Path, text: str = "text") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def readers(beside: Any, said: Any = None) -> tuple[tuple[str, ...], str]:
    found = document_fields(ParsedDocument(metadata=said or {}), beside, OPEN)
    return found.acl, found.problem


@pytest.mark.parametrize("key", [*MISSPELT, "acl", " Acl ", "a\u200dcl"])
def test_a_key_is_meant_for_acl_however_it_is_written(key: str) -> None:
    assert means_acl(key)


@pytest.mark.parametrize("key", ["oracle", "acle", "access", "list", "acl_note", "miracl", "", 1])
def test_another_key_is_not(key: object) -> None:
    assert not means_acl(key)


def test_an_acl_inside_another_field_is_found_and_the_outermost_first() -> None:
    assert acl_within({"doc": {"a": {"acl": 1}, "acls": 2}}) == "doc.acls"
    assert acl_within({"parts": [[{"Security": {"ACL": ["hr"]}}]]}) == "parts.security.acl"
    assert acl_within({"a": {"b": ["acl"]}, "c": "acl"}) == ""
    deep: dict[str, Any] = {"acl": 1}
    for _ in range(5000):
        deep = {"k": deep}
    assert acl_within(deep).endswith("k.k.acl")


def test_a_layer_without_its_acl_is_closed_where_one_is_meant() -> None:
    assert with_acl({"acls": ["hr"]})["acl"] == Closed("its acl is called acls; call it acl.")
    assert with_acl({"ACL": ["hr"], "acls": ["public"]})["acl"] == ["hr"]
    assert "acl" not in with_acl({"owner": "hr"})
    closed = with_acl({"acls": ["hr"]})
    assert with_acl(closed) == closed


def test_a_field_that_was_meant_for_acl_is_no_metadata_of_the_closed_document() -> None:
    assert document_fields(ParsedDocument(), {"acls": {"read": ["hr"]}}, OPEN).metadata == {}


@pytest.mark.parametrize("key", ["acls", "access_list", "meta: {acl"])
def test_a_misspelt_acl_beside_a_file_closes_whatever_stands_further_out(
    tmp_path: Path, key: str
) -> None:
    line = f"{key}: [hr]" + "}" * key.count("{")
    write(tmp_path / "_meta.yaml", "acl: [public]")
    write(tmp_path / "hr" / "_meta.yaml", line)
    for name in ("a.txt", "hr/b.txt", "hr/c.txt"):
        write(tmp_path / name)
    write(tmp_path / "a.txt.meta.yaml", line)
    write(tmp_path / "hr" / "c.txt.meta.yaml", "acl: [legal]")
    source = open_source(str(tmp_path))
    beside = {item.address: source.metadata(item) for item in source.list()}
    for name in ("a.txt", "hr/b.txt"):
        acl, problem = readers(beside[name])
        assert acl == ()
        assert "call it acl" in problem
        assert readers(beside[name], {"acl": ["staff"]}) == (("staff",), "")
    assert readers(beside["hr/c.txt"]) == (("legal",), "")


def test_a_misspelt_acl_above_the_target_is_not_lost_and_one_of_its_own_counts(
    tmp_path: Path,
) -> None:
    write(tmp_path / "all" / "_meta.yaml", "acls: [staff]")
    write(tmp_path / "all" / "part" / "a.txt")
    with pytest.raises(UsageError, match="says who may read what is below it"):
        open_source(str(tmp_path / "all" / "part"))
    write(tmp_path / "all" / "part" / "_meta.yaml", "access_list: [staff]")
    source = open_source(str(tmp_path / "all" / "part"))
    (item,) = source.list()
    assert readers(source.metadata(item))[0] == ()


@pytest.mark.parametrize(
    "record",
    [
        {"acls": {"read": ["hr"]}},
        {"acls": [["hr"]]},
        {"acls": None},
        {"acls": ""},
        {"access_list": [f"user:{n:040}" for n in range(80)]},
        {"Access List": "x" * 2000},
        {"metadata": {"acls": {"a": ["hr"]}}},
        {"metadata": {"access": {"acl": ["hr"]}}},
        {"Metadata": {"ACL": None}},
        {"metadata": [{"acl": ["hr"]}]},
        {"doc": {"acl": ["hr"]}},
        {"doc": {"a.c.l.": ["hr"]}},
        {"metadata.acl": ["hr"]},
        {"metadata": '{"access": {"acl": ["hr"]}}'},
        {"metadata": '{"acl": ["hr"], "acl": ["public"]}'},
        {"metadata": "{'acl': ['hr']}"},
        {"metadata": "{acl: [hr]}"},
        {"metadata": ' {"ac\\u006cs": ["hr"]}'},
        {"Metadata": '[{"acl": ["hr"]}]'},
        {"meta": '{"acl": ["hr"], "cut": "o'},
        {"doc": '{"acl": ["hr"]}'},
    ],
)
@pytest.mark.parametrize("text", [{"text": "x"}, {"parcel": "damaged"}])
def test_what_is_meant_for_an_acl_closes_its_record_and_is_no_text_of_it(
    record: dict[str, object], text: dict[str, str]
) -> None:
    (found,) = parse_jsonl(json.dumps({"_id": "1"} | text | record).encode())
    fields = document_fields(found, {"acl": ["public"]}, OPEN)
    assert fields.acl == ()
    assert fields.problem.startswith("Nobody may read it")
    if not {"doc", "meta", "Metadata"} & set(record) and not isinstance(
        record.get("metadata"), list
    ):
        assert len(found.blocks) == 1
        assert "hr" not in found.blocks[0].text


def test_metadata_of_a_record_is_metadata_however_its_key_is_written() -> None:
    (found,) = parse_jsonl(b'{"_id": "1", "text": "x", " Metadata": {"acl": ["hr"], "n": 1}}')
    fields = document_fields(found, {}, OPEN)
    assert (fields.acl, fields.metadata, len(found.blocks)) == (("hr",), {"n": 1}, 1)


def test_an_acl_of_the_record_s_own_wins_over_one_inside_a_field() -> None:
    (found,) = parse_jsonl(b'{"_id": "1", "text": "x", "acl": ["hr"], "doc": {"acl": ["public"]}}')
    assert document_fields(found, {}, OPEN).acl == ("hr",)


def test_a_misspelt_column_closes_each_row_also_where_its_cell_is_empty() -> None:
    rows = list(parse_csv(b"id,acls,text\n1,,x\n2,public,y\n3\n", tabs=False))
    assert [document_fields(row, {}, OPEN).acl for row in rows] == [(), (), ()]


def test_metadata_that_is_json_in_a_cell_is_read_if_it_says_who_may_read() -> None:
    cell = '"{""acl"": [""hr""], ""n"": 1}"'
    (row,) = parse_csv(f"id,text,metadata\n1,x,{cell}\n".encode(), tabs=False)
    fields = document_fields(row, {}, OPEN)
    assert (fields.acl, fields.metadata, len(row.blocks)) == (("hr",), {"n": 1}, 1)
    (row,) = parse_csv(f"id,text,acl,metadata\n1,x,staff,{cell}\n".encode(), tabs=False)
    assert document_fields(row, {}, OPEN).acl == ()
    (row,) = parse_csv(b'id,text,metadata\n1,x,"{""n"": ""acl""}"\n', tabs=False)
    fields = document_fields(row, {}, OPEN)
    assert (fields.acl, fields.metadata) == (("public",), {"metadata": '{"n": "acl"}'})


def test_a_text_that_is_json_is_text() -> None:
    (found,) = parse_jsonl(json.dumps({"id": "1", "text": '{"acl": ["hr"]}'}).encode())
    assert document_fields(found, {}, OPEN).acl == ("public",)
