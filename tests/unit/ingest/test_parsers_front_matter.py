"""Front matter is read as YAML, and what may be front matter and cannot be read is not text."""

from __future__ import annotations

import pytest

from ingest.parsers import parse_item
from ingest.parsers.markdown import parse_markdown
from ingest.parsers.remains import own_metadata
from quarry.errors import ParseError
from quarry.records import DocState, SourceItem
from quarry.settings import IngestSettings

READ = {
    "braces": "---\n{title: x, acl: [staff]}\n---\n",
    "JSON": '---\n{"title": "x", "acl": ["staff"]}\n---\n',
    "JSON over lines": '---\n{"title": "x",\n"acl": ["staff"]}\n---\n',
    "braces on the first line": "--- {title: x, acl: [staff]}\n---\n",
    "field on the first line": "--- acl: [staff]\n---\n",
    "its own tag on the first line": "--- !!map\nacl: [staff]\n---\n",
    "explicit key": "---\n? acl\n: [staff]\n---\n",
    "key of signs": "---\n/x: 1\nacl : [staff]\n---\n",
    "key in codes": '---\n"a\\u0063l": [staff]\n---\n',
    "zero-width space": "---\n\u200bacl: [staff]\n---\n",
    "zero-width joiner inside": "---\na\u200dcl: [staff]\n---\n",
    "no-break space": "---\nacl\u00a0: [staff]\n---\n",
    "byte order marks": "\ufeff\ufeff---\nacl: [staff]\n---\n",
    "mark before the last line": "---\nacl: [staff]\n\ufeff---\n",
    "blank line first": "\n---\nacl: [staff]\n---\n",
    "space first": " ---\nacl: [staff]\n---\n",
    "no-break space behind": "---\u00a0\nacl: [staff]\n---\n",
    "other line ends": "---\u2028acl: [staff]\u2028---\u2028",
    "comment behind": "---\nacl: [staff]\n--- # end\n",
}
REFUSED = {
    "merge key": "---\ntitle: x\n<<: {acl: [staff]}\n---\n",
    "merge key alone": "---\n<<: {acl: [staff]}\n---\n",
    "not YAML": "---\nacl: [hr]\ntitle: a: b\n---\n",
    "not YAML, braces": "---\n{title: x, acl: [staff]\n---\n",
    "not YAML, a tag first": "---\n*x\n!!str acl: [staff]\n---\n",
    "not YAML, codes": '---\n*x\n"\\x61cl": [staff]\n---\n',
    "NUL in the key": "---\nac\0l: [staff]\n---\n",
    "tab first": "---\n\tacl: [staff]\n---\n",
    "directive": "---\n%YAML 1.2\n---\nacl: [staff]\n---\n",
    "open": "---\nacl: [hr]\n\n# Leave\n",
    "open, ends of Windows": "---\r\ntitle: x\r\n'ACL' : hr",
    "open, braces": "---\n{acl: hr}",
    "open, explicit key": "---\n? acl\n: [staff]\n# A\n",
    "open, far below": "---\n" + "".join(f"k{n}: v\n" for n in range(90)) + "acl: [staff]\n# A\n",
    "open, behind comments": "---\n" + "# c\n" * 90 + "acl: [staff]\n# A\n",
    "tag first": "--- !map\nacl: [staff]\n---\n",
    "tag first, without an ACL": "--- !x\ntitle: x\n---\n",
    "anchor first": "--- &x\nacl: [staff]\n---\n",
    "scalar first": "--- |\nacl: [staff]\n---\n",
    "directive above": "%YAML 1.2\n---\nacl: [staff]\n---\n",
    "directives above, open": "\n%yaml 1.2\n%TAG ! x\n--- \ntitle: x\n",
    "directive, no beginning": "%YAML 1.2\nacl: [staff]\n---\n",
    "language behind": "---yaml\nacl: [staff]\n---\n",
    "longer rule": "-----\ntitle: x\nacl: [staff]\n-----\n",
    "dash of a keyboard": "\u2014--\nacl: [staff]\n---\n",
    "TOML": "+++\ntitle = 'x'\nacl = ['staff']\n+++\n",
    "JSON of Hugo": ';;;\n{"acl": ["staff"]}\n;;;\n',
    "behind an empty one": "---\n---\nacl: [staff]\n---\n",
    "behind prose": "---\nJust a line.\n---\ntitle: x\nacl: [staff]\n---\n",
    "misspelt": "---\n*x\naccess_list: [staff]\n---\n",
    "open, without an ACL": "---\ntitle: never closed\n",
}
PROSE = {
    "between rules": "---\n\nJust a line, nothing more.\n\n---\n\nText\n",
    "open": "---\nWhat an acl is.\n\nNote: it is a list.\n",
    "emphasis": "---\n**Note**: what an acl: is.\n\n---\n",
    "picture": "---\n![Logo](logo.png)\n\n---\n",
    "quotation": "---\n> It said: no.\n\n---\n",
    "table": "---\n| a: | b |\n|---|---|\n\n---\n",
    "heading": "---\n# Title: it is\n---\n",
    "template": "---\n{{ figure }}\n\n---\n",
    "prose in its line": "--- What an acl is\nIt is a list.\n\n---\n",
    "picture in its line": "--- ![Logo](logo.png)\n\n---\n",
    "program in its line": "---yaml\nAn acl: is\n---\n",
    "of other signs, an ACL behind": "+++\nx = 1\n+++\n\nacl: it is\n",
    "fields far behind a break": "---\nJust a line.\n---\n\n# A\n\nacl: it is\n",
    "two dashes": "-- What follows\n\nacl: it is\n",
    "no directive": "%TODO\n\n---\n\nText\n",
    "longer rule": "----\nAn acl: here\n----\n",
}


@pytest.mark.parametrize("text", READ.values(), ids=list(READ))
def test_fields_are_read_however_yaml_spells_them(text: str) -> None:
    document = parse_markdown(f"{text}# Leave\n")
    assert document.metadata["acl"] == ["staff"]
    assert [block.text for block in document.blocks] == ["Leave"]
    assert text + "# Leave" == (text + "# Leave\n")[: document.blocks[0].end]


@pytest.mark.parametrize("text", REFUSED.values(), ids=list(REFUSED))
def test_what_may_be_fields_and_cannot_be_read_fails_the_document(text: str) -> None:
    item = SourceItem(source="s", address="a.md", uri="a.md", tag="t", size=len(text))
    with pytest.raises(ParseError, match="Its front matter"):
        list(parse_item(f"{text}secret\n".encode(), item, IngestSettings()))
    content = text.encode()
    assert own_metadata(content, "a.md", state=DocState.FAILED, is_records=False) is None


@pytest.mark.parametrize("text", PROSE.values(), ids=list(PROSE))
def test_prose_below_a_thematic_break_is_text(text: str) -> None:
    document = parse_markdown(text)
    assert document.metadata == {}
    assert document.blocks


@pytest.mark.timeout(20)
@pytest.mark.parametrize(
    "line", ['"' + "\\u" * 100_000, "x! " * 100_000, "[" * 100_000, " " * 10**6]
)
def test_a_long_line_is_looked_at_in_a_moment(line: str) -> None:
    assert parse_markdown(f"--- {line}\n\nText\n").blocks


@pytest.mark.timeout(20)
@pytest.mark.parametrize("filling", ["\n" * 200_000, ",!" * 100_000, "{!&" * 70_000])
def test_what_does_not_end_is_looked_at_in_a_moment(filling: str) -> None:
    assert parse_markdown(f"---\n\nSome words\n{filling}end\n").blocks


def test_what_is_wrong_with_it_is_told() -> None:
    with pytest.raises(ParseError, match="front matter is not valid YAML in line 2"):
        parse_markdown(REFUSED["not YAML"])
    with pytest.raises(ParseError, match=r"line 2: merge keys are not read"):
        parse_markdown(REFUSED["merge key"])
    with pytest.raises(ParseError, match="does not end; put --- below it"):
        parse_markdown(REFUSED["open"])
