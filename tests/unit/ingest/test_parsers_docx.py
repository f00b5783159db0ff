"""Word documents: order of the body, headings, lists, tables, text boxes, notes and bombs."""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Callable
from typing import Any

import pytest
from docx import Document
from docx.oxml import parse_xml

from ingest.parsers.docx import parse_docx
from quarry.errors import ParseError
from quarry.records import Block, BlockKind, DocState, ParsedDocument

NS = (
    'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main" '
    'xmlns:mc="http://schemas.openxmlformats.org/markup-compatibility/2006" '
    'xmlns:wps="http://schemas.microsoft.com/office/word/2010/wordprocessingShape" '
    'xmlns:v="urn:schemas-microsoft-com:vml"'
)


def saved(fill: Callable[[Any], None]) -> bytes:
    document = Document()
    document.core_properties.author = ""
    fill(document)
    buffer = io.BytesIO()
    document.save(buffer)
    return buffer.getvalue()


def parsed(fill: Callable[[Any], None]) -> ParsedDocument:
    return parse_docx(saved(fill), memory_mb=2048)


def blocks(fill: Callable[[Any], None]) -> list[Block]:
    return list(parsed(fill).blocks)


def body(*paragraphs: str) -> Callable[[Any], None]:
    """A document with these raw paragraphs; `w:` names are bound."""

    def fill(document: Any) -> None:
        for inner in paragraphs:
            document.element.body.insert(-1, parse_xml(f"<w:p {NS}>{inner}</w:p>"))

    return fill


def run(text: str, properties: str = "") -> str:
    return f"<w:r><w:rPr>{properties}</w:rPr><w:t xml:space='preserve'>{text}</w:t></w:r>"


def test_paragraphs_headings_lists_and_tables_come_in_the_order_of_the_body() -> None:
    def fill(document: Any) -> None:
        document.add_heading("Leave", 0)
        document.add_paragraph("Intro.")
        document.add_heading("Weeks", 1)
        table = document.add_table(2, 2)
        for cell, text in zip(
            table._cells, ("Period", "Paid by", "Weeks 1 to 20", "Orrin"), strict=True
        ):
            cell.text = text
        document.add_heading("Details", 2)
        document.add_paragraph("first", style="List Bullet")
        document.add_paragraph("deep", style="List Bullet 2")

    document = parsed(fill)
    assert document.title == "Leave"
    assert [(b.kind.value, b.level, b.text) for b in document.blocks] == [
        ("heading", 1, "Leave"),
        ("paragraph", 0, "Intro."),
        ("heading", 1, "Weeks"),
        ("table", 0, "Period | Paid by\nWeeks 1 to 20 | Orrin"),
        ("heading", 2, "Details"),
        ("list_item", 0, "first"),
        ("list_item", 0, "deep"),
    ]


def test_numbers_of_lists_are_in_the_text_as_word_shows_them() -> None:
    def fill(document: Any) -> None:
        for text in ("book", "pay"):
            document.add_paragraph(text, style="List Number")
        document.add_paragraph("between")
        document.add_paragraph("collect", style="List Number")

    assert [b.text for b in blocks(fill)] == ["1. book", "2. pay", "between", "3. collect"]


def test_merged_cells_repeat_and_inner_tables_are_told_in_words() -> None:
    def fill(document: Any) -> None:
        table = document.add_table(3, 3)
        texts = ("Code", "Low", "High", "E-1", "1", "2", "", "none", "")
        for cell, text in zip(table._cells, texts, strict=True):
            cell.text = text
        table.cell(1, 0).merge(table.cell(2, 0))
        table.cell(2, 1).merge(table.cell(2, 2))
        inner = table.cell(1, 2).add_table(1, 2)
        inner.cell(0, 0).text, inner.cell(0, 1).text = "a", "b"

    (block,) = blocks(fill)
    assert block.header == ("Code", "Low", "High")
    assert block.rows == (("E-1", "1", "2 a, b"), ("E-1", "none", "none"))


def test_a_table_of_one_column_is_a_frame_around_text() -> None:
    def fill(document: Any) -> None:
        cell = document.add_table(1, 1).cell(0, 0)
        cell.text = "Note"
        cell.add_paragraph("Inside", style="Heading 2")

    assert [(b.kind, b.text) for b in blocks(fill)] == [
        (BlockKind.PARAGRAPH, "Note"),
        (BlockKind.HEADING, "Inside"),
    ]


def test_a_text_box_is_read_once_though_word_stores_it_twice() -> None:
    box = f"<w:txbxContent><w:p>{run('in the box')}</w:p></w:txbxContent>"
    shape = (
        "<w:r><mc:AlternateContent><mc:Choice Requires='wps'><w:drawing><wps:wsp><wps:txbx>"
        f"{box}</wps:txbx></wps:wsp></w:drawing></mc:Choice><mc:Fallback><w:pict><v:textbox>"
        f"{box}</v:textbox></w:pict></mc:Fallback></mc:AlternateContent></w:r>"
    )
    assert [b.text for b in blocks(body(run("beside ") + shape + run("it")))] == [
        "beside it",
        "in the box",
    ]


def test_deleted_hidden_and_computed_text_is_not_read() -> None:
    field = "<w:r><w:fldChar w:fldCharType='{}'/></w:r>"
    page = (
        field.format("begin")
        + "<w:r><w:instrText> PAGE </w:instrText></w:r>"
        + field.format("separate")
        + run("7")
        + field.format("end")
    )
    link = page.replace(" PAGE ", ' HYPERLINK "https://a.example" ').replace(">7<", ">a link<")
    inner = (
        run("kept ")
        + f"<w:del>{run('gone ').replace('w:t', 'w:delText')}</w:del>"
        + f"<w:ins>{run('added ')}</w:ins>"
        + run("hidden ", "<w:vanish/>")
        + run("shown ", "<w:vanish w:val='0'/>")
        + link
        + "<w:r><w:tab/><w:t>p. </w:t></w:r>"
        + page
        + "<w:r><w:br/><w:t>next</w:t><w:noBreakHyphen/><w:t>line</w:t></w:r>"
    )
    assert [b.text for b in blocks(body(inner))] == ["kept added shown a link p.\nnext-line"]


def test_headings_are_known_by_outline_level_whatever_their_style_is_called() -> None:
    outline = "<w:pPr><w:outlineLvl w:val='1'/></w:pPr>"
    assert [(b.kind, b.level) for b in blocks(body(outline + run("Überschrift")))] == [
        (BlockKind.HEADING, 2)
    ]


def test_headers_and_footers_stand_once_and_without_page_numbers() -> None:
    def fill(document: Any) -> None:
        document.add_paragraph("Body.")
        for section in (document.sections[0], document.add_section()):
            section.header.is_linked_to_previous = section.footer.is_linked_to_previous = False
            section.header.paragraphs[0].text = "HR-014 version 4"
            section.footer.paragraphs[0]._p.append(
                parse_xml(f"<w:fldSimple {NS} w:instr=' PAGE '>{run('1')}</w:fldSimple>")
            )

    assert [b.text for b in blocks(fill)] == ["HR-014 version 4", "Body."]


def test_the_author_is_a_property_and_the_title_falls_back_to_the_file_s_own() -> None:
    def fill(document: Any) -> None:
        document.core_properties.title, document.core_properties.author = "Named", "Ada"
        document.add_paragraph("Text.")

    document = parsed(fill)
    assert (document.title, document.properties) == ("Named", {"author": "Ada"})


def rezipped(content: bytes, changed: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as old, zipfile.ZipFile(buffer, "w", 8) as new:
        for name in {*old.namelist(), *changed}:
            new.writestr(name, changed.get(name) or old.read(name))
    return buffer.getvalue()


def test_an_archive_that_unpacks_to_too_much_is_not_unpacked() -> None:
    content = saved(body(run("x")))
    for name in ("word/document.xml", "word/media/huge.bin"):
        bomb = rezipped(content, {name: b" " * 80_000_000})
        assert len(bomb) < 1_000_000
        with pytest.raises(ParseError, match="unpacks to 80 MB") as caught:
            parse_docx(bomb, memory_mb=256)
        assert caught.value.state == DocState.TOO_LARGE


def test_entities_are_not_expanded() -> None:
    xml = (
        "<?xml version='1.0'?><!DOCTYPE w:document [<!ENTITY a 'lol'><!ENTITY b '&a;&a;'>"
        "<!ENTITY f SYSTEM 'file:///etc/hostname'>]>"
        f"<w:document {NS}><w:body><w:p><w:r><w:t>seen &b;&f;</w:t></w:r></w:p></w:body>"
        "</w:document>"
    )
    content = rezipped(saved(body(run("x"))), {"word/document.xml": xml.encode()})
    assert [b.text for b in parse_docx(content, memory_mb=2048).blocks] == ["seen &b;&f;"]


@pytest.mark.parametrize("part", ["word/document.xml", "[Content_Types].xml", "_rels/.rels"])
def test_a_damaged_part_makes_the_document_corrupt(part: str) -> None:
    content = rezipped(saved(body(run("x"))), {part: b"<broken"})
    with pytest.raises(ParseError) as caught:
        parse_docx(content, memory_mb=2048)
    assert caught.value.state == DocState.CORRUPT


def test_a_damaged_stream_in_the_archive_makes_the_document_corrupt() -> None:
    content = bytearray(saved(body(run("words " * 500))))
    start = content.index(b"word/document.xml") + len("word/document.xml")
    content[start + 20 : start + 60] = b"\xff" * 40
    with pytest.raises(ParseError) as caught:
        parse_docx(bytes(content), memory_mb=2048)
    assert caught.value.state == DocState.CORRUPT


def test_text_after_an_entity_or_a_comment_is_kept_and_the_document_says_what_is_missing() -> None:
    xml = (
        "<!DOCTYPE w [<!ENTITY e SYSTEM 'file:///etc/hostname'><!ENTITY b 'bomb'>]>"
        f"<w:document {NS}><w:body><w:p><w:r>"
        "<w:t>The host is &e; and &b; end.<!-- aside --> Truly.</w:t>"
        "</w:r></w:p></w:body></w:document>"
    )
    content = rezipped(saved(body(run("x"))), {"word/document.xml": xml.encode()})
    document = parse_docx(content, memory_mb=2048)
    assert [b.text for b in document.blocks] == ["The host is &e; and &b; end. Truly."]
    assert document.state is DocState.PARTIAL
    assert "entity references" in document.reason


def test_a_document_without_references_is_whole() -> None:
    assert parsed(body(run("R&amp;D"))).state is DocState.INDEXED


def test_properties_that_the_file_does_not_have_are_not_made_up() -> None:
    def fill(document: Any) -> None:
        document.add_paragraph("Only text.")

    document = parse_docx(rezipped_without_core(saved(fill)), memory_mb=2048)
    assert (document.title, dict(document.properties)) == ("", {})


def rezipped_without_core(content: bytes) -> bytes:
    """As many programs write it: no core properties, and no relation to any."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as old, zipfile.ZipFile(buffer, "w") as new:
        for name in old.namelist():
            data = old.read(name)
            if name == "_rels/.rels":
                data = re.sub(rb"<Relationship [^>]*core-properties[^>]*/>", b"", data)
            if name != "docProps/core.xml":
                new.writestr(name, data)
    return buffer.getvalue()
