"""Which parser reads a file, how bytes become text, and what plain text and Markdown become."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest import parsers
from ingest.parsers import parse_item, recipe
from ingest.parsers.decoding import decode, mangled, mended
from ingest.parsers.markdown import parse_markdown
from ingest.parsers.plain import text_blocks
from ingest.parsers.routing import Format, route
from quarry.errors import ParseError
from quarry.records import Block, BlockKind, DocState, ParsedDocument, SourceItem
from quarry.settings import IngestSettings, Settings


def item(address: str) -> SourceItem:
    return SourceItem(source="s", address=address, uri=address, tag="t", size=0)


def parsed(content: bytes, address: str, **settings: object) -> ParsedDocument:
    (document,) = parse_item(content, item(address), IngestSettings.model_validate(settings))
    return document


def state_of(content: bytes, address: str, **settings: object) -> str:
    with pytest.raises(ParseError) as caught:
        parsed(content, address, **settings)
    assert caught.value.reason.endswith(".")
    return caught.value.state


# ------------------------------------------------------------------------------------- routing


def test_the_bytes_decide_before_the_name() -> None:
    assert route(b"\n%PDF-1.7 ...", "letter.txt") is Format.PDF
    assert route(b"<!-- x -->\n<!DOCTYPE HTML><p>x", "page.md") is Format.HTML
    assert route("<?xml version='1.0'?><html>".encode("utf-16"), "page") is Format.HTML
    assert route(b"PAR1....", "data.bin") is Format.PARQUET


def test_text_goes_by_its_name() -> None:
    names = {
        "a.md": Format.MARKDOWN,
        "A.MARKDOWN": Format.MARKDOWN,
        "a.html": Format.HTML,
        "a.jsonl": Format.JSONL,
        "a.tsv": Format.CSV,
        "README": Format.TEXT,
        "a.b.txt": Format.TEXT,
    }
    assert {name: route(b"some text", name) for name in names} == names


@pytest.mark.parametrize(
    ("content", "address", "state"),
    [
        (b"", "a.pdf", DocState.EMPTY),
        (b" \n\t\xef\xbb\xbf", "a.txt", DocState.EMPTY),
        (b"\0\0\0\0", "a.txt", DocState.EMPTY),
        (b"plain words", "a.pdf", DocState.CORRUPT),
        (b"plain words", "a.docx", DocState.CORRUPT),
        (b"PK\x03\x04broken", "a.docx", DocState.CORRUPT),
        (b"PK\x03\x04broken", "a.zip", DocState.UNSUPPORTED),
        (b"\x89PNG\r\n\x1a\n...", "a.txt", DocState.UNSUPPORTED),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1 old", "a.doc", DocState.UNSUPPORTED),
        (
            b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + "EncryptedPackage".encode("utf-16-le"),
            "a.docx",
            DocState.ENCRYPTED,
        ),
        (b"\x01\x00\x02\x00binary\x00\x00\x01", "a.txt", DocState.UNSUPPORTED),
        (b"print('x')", "a.py", DocState.UNSUPPORTED),
        (b"# only a comment line is text", "a.md", None),
    ],
)
def test_what_cannot_be_read_ends_in_a_named_state(
    content: bytes, address: str, state: DocState | None
) -> None:
    if state is None:
        assert parsed(content, address).state is DocState.INDEXED
    else:
        assert state_of(content, address) == state


def test_a_file_over_the_limit_is_not_parsed() -> None:
    assert state_of(b"x" * 11, "a.txt", max_bytes=10) == DocState.TOO_LARGE


def test_a_document_has_a_title_and_a_hash_of_its_bytes() -> None:
    one, same, other = (parsed(text, "folder/Leave policy.txt") for text in (b"a", b"a", b"b"))
    assert one.title == "Leave policy"
    assert one.content_hash == same.content_hash != other.content_hash


def test_text_of_nothing_visible_is_empty_not_indexed() -> None:
    assert state_of(b"---\ntitle: Only this\n---\n", "a.md") == DocState.EMPTY
    assert state_of(b"<html><script>let x = 1</script></html>", "a.html") == DocState.EMPTY


def test_switching_ocr_changes_the_recipe_and_unrelated_settings_do_not() -> None:
    base = Settings()
    changed = base.model_copy(update={"ingest": base.ingest.model_copy(update={"ocr": False})})
    other = base.model_copy(update={"ingest": base.ingest.model_copy(update={"parse_workers": 7})})
    assert recipe(base) == recipe(other) != recipe(changed)


@pytest.mark.parametrize(
    "package", ["charset-normalizer", "markdown-it-py", "pymupdf", "python-docx", "selectolax"]
)
def test_another_version_of_what_decides_a_text_changes_the_recipe(
    package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = recipe(Settings())
    real = parsers._version
    monkeypatch.setattr(parsers, "_version", lambda p: "other" if p == package else real(p))
    assert recipe(Settings()) != before


# ------------------------------------------------------------------------------------ decoding

SENTENCE = "Grüße — 4,90 € für Zelte; ¿qué? 한국어 텍스트"


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"])
def test_unicode_is_read_with_and_without_a_byte_order_mark(encoding: str) -> None:
    text = f"{SENTENCE} with enough plain words around it to tell by."
    mark = "\ufeff".encode(encoding)
    assert decode(mark + text.encode(encoding)) == text
    assert decode(text.encode(encoding)) == text


def test_western_text_without_unicode_is_read_as_windows_does() -> None:
    text = "“L’été” était très chaud – ein Kaffee für 3,50 €."
    assert decode(text.encode("cp1252")) == text


@pytest.mark.parametrize(
    ("encoding", "text"),
    [
        ("cp1251", "Сломанная молния или лопнувший шов считаются браком, даже если вещь носили."),
        ("cp1250", "Namioty i śpiwory muszą być czyste i suche, inaczej zwrot nie jest możliwy."),
        ("gb18030", "帐篷和睡袋必须干净而且干燥，才能退货并获得商店积分。"),
        ("euc_kr", "텐트와 침낭은 깨끗하고 마른 상태일 때만 반품할 수 있습니다."),
    ],
)
def test_other_scripts_without_unicode_are_recognised(encoding: str, text: str) -> None:
    assert decode((text * 5).encode(encoding)) == text * 5


def test_a_declared_encoding_is_believed_unless_the_bytes_are_utf8() -> None:
    assert decode("привет, мир".encode("koi8-r"), "koi8-r") == "привет, мир"
    assert decode("größer".encode(), "latin-1") == "größer"


def test_a_broken_byte_does_not_turn_utf8_into_another_encoding() -> None:
    text = decode(("schöne Grüße, " * 200).encode() + b"\xff")
    assert text is not None
    assert text.startswith("schöne Grüße")
    assert text.endswith("\ufffd")


def test_a_stray_zero_byte_does_not_make_a_text_binary() -> None:
    assert decode(b"plain words, \0 one of them odd") == "plain words, \0 one of them odd"
    assert decode(b"\0\1\2\0\0words\0\0") is None


def test_text_that_was_encoded_twice_is_put_right_and_other_text_left_alone() -> None:
    twice = "1986–1990 für £5".encode().decode("latin-1")
    assert mangled(twice)
    assert mended(twice) == "1986–1990 für £5"
    assert not mangled("Ã la carte, Â£ as written")


@given(st.binary(max_size=400))
def test_no_bytes_make_decoding_crash(content: bytes) -> None:
    assert decode(content) is None or isinstance(decode(content), str)


# ---------------------------------------------------------------------------------- plain text


def shown(text: str) -> list[tuple[str, str]]:
    return [(block.kind.value, block.text) for block in text_blocks(text)]


def test_lines_wrapped_by_hand_are_joined_and_meant_line_ends_are_kept() -> None:
    text = (
        "Kestrel Gear rents tents, stoves and backpacks for three to fourteen\n"
        "days. The rental fee is charged when the gear is shipped, not when\n"
        "it is booked.\n"
        "Orders placed before two in the afternoon are ready the same day in\n"
        "Oslo and Bergen.\n"
        "\n"
        "Kestrel Gear\n"
        "Storgata 1\n"
        "0155 Oslo\n"
    )
    assert [block for _, block in shown(text)] == [
        "Kestrel Gear rents tents, stoves and backpacks for three to fourteen days. The rental fee "
        "is charged when the gear is shipped, not when it is booked.",
        "Orders placed before two in the afternoon are ready the same day in Oslo and Bergen.",
        "Kestrel Gear\nStorgata 1\n0155 Oslo",
    ]


def test_headings_are_taken_only_where_they_are_obvious() -> None:
    text = "Warranty\n========\n\nOwn brand.\n\nWHAT IS NOT COVERED\n\nWear.\n\nShort line\n\nLong."
    kinds = shown(text)
    assert [t for k, t in kinds if k == "heading"] == ["Warranty", "WHAT IS NOT COVERED"]


def test_list_items_stand_alone() -> None:
    text = "We rent:\n- tents for two\n  people\n- stoves\n\n1. Book\n2) Pay\n   at once"
    assert [(b.kind.value, b.text.split(), b.level) for b in text_blocks(text)] == [
        ("paragraph", ["We", "rent:"], 0),
        ("list_item", ["-", "tents", "for", "two", "people"], 0),
        ("list_item", ["-", "stoves"], 0),
        ("list_item", ["1.", "Book"], 0),
        ("list_item", ["2)", "Pay", "at", "once"], 0),
    ]


@given(st.text(alphabet="ab .\n\r\t-*#=1Ä中", max_size=300))
def test_offsets_of_plain_text_are_exact(text: str) -> None:
    end = 0
    for block in text_blocks(text):
        assert end <= block.start < block.end <= len(text)
        source = text[block.start : block.end]
        assert len(source) == len(block.text)
        assert source.split() == block.text.split()
        end = block.end


# ------------------------------------------------------------------------------------ Markdown


def markdown(text: str) -> list[Block]:
    return list(parse_markdown(text).blocks)


@pytest.mark.parametrize("close", ["---", "..."])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_front_matter_is_metadata_and_not_text(close: str, end: str) -> None:
    text = f"---\ntitle: Returns\nacl: [staff]\n{close}\n# Used gear\n".replace("\n", end)
    document = parse_markdown(text)
    assert document.metadata == {"title": "Returns", "acl": ["staff"]}
    assert [block.text for block in document.blocks] == ["Used gear"]
    assert text[document.blocks[0].start : document.blocks[0].end] == "Used gear"


def test_headings_have_levels_and_distinct_anchors() -> None:
    text = (
        "# Log\n## [1.1]\n### Fixed\n## [1.0]\n### Fixed\n### Fixed 1\n### Fixed\n## Own {#mine}\n"
    )
    assert [(b.level, b.text, b.anchor) for b in markdown(text)] == [
        (1, "Log", "log"),
        (2, "[1.1]", "11"),
        (3, "Fixed", "fixed"),
        (2, "[1.0]", "10"),
        (3, "Fixed", "fixed-1"),
        (3, "Fixed 1", "fixed-1-1"),
        (3, "Fixed", "fixed-2"),
        (2, "Own", "mine"),
    ]
    assert parse_markdown(text).title == "Log"


def test_fences_of_any_kind_are_code_with_their_language_and_inner_fences_kept() -> None:
    text = (
        "````md\n```\nx\n```\n````\n\n"
        "~~~ { .python #id hl_lines=1 }\n  indented\n\n~~~\n\n"
        "``` bash\nls\n"
    )
    assert [(b.kind, b.language, b.text) for b in markdown(text)] == [
        (BlockKind.CODE, "md", "```\nx\n```"),
        (BlockKind.CODE, "python", "  indented"),
        (BlockKind.CODE, "bash", "ls"),
    ]
    for block in markdown(text):
        assert text[block.start : block.end] == block.text


def test_inline_marks_are_read_away() -> None:
    text = "See **the [guide](g.md)**, `x_y`, <b>bold</b>, ![a tent](t.png) and\n<https://a.example>.\n"
    assert [b.text for b in markdown(text)] == [
        "See the guide, x_y, bold, a tent and https://a.example."
    ]
    assert markdown("`lang_prefix`{#lang_prefix}: the prefix {x}\n{: .note }")[0].text == (
        "lang_prefix: the prefix {x}"
    )


def test_lists_keep_their_depth_and_their_numbers() -> None:
    text = "* a\n  more\n\n  second\n\n  1. one\n  2. two\n     * deep\n\nafter\n"
    assert [(b.kind.value, b.level, b.text) for b in markdown(text)] == [
        ("list_item", 0, "a more"),
        ("paragraph", 0, "second"),
        ("list_item", 1, "1. one"),
        ("list_item", 1, "2. two"),
        ("list_item", 2, "deep"),
        ("paragraph", 0, "after"),
    ]


def test_tables_have_names_and_rows() -> None:
    text = "| Code | *Meaning* |\n|---|---|\n| `E-1042` | axis 2 \\| drive |\n| E-1017 |\n"
    (block,) = markdown(text)
    assert block.header == ("Code", "Meaning")
    assert block.rows == (("E-1042", "axis 2 | drive"), ("E-1017", ""))
    assert text[block.start : block.end] == text.strip()


def test_admonitions_definitions_and_html_are_text() -> None:
    text = (
        "!!! warning\n\n    Hot surface.\n\nterm\n: what it means\n\n"
        "<div>shown <b>x</b></div>\n<!-- no -->\n"
    )
    assert [b.text for b in markdown(text)] == [
        "Warning",
        "Hot surface.",
        "term",
        "what it means",
        "shown x",
    ]


@given(st.text(alphabet="ab *_`#>-|[]()\n~{}!1.<&é", max_size=300))
def test_offsets_of_markdown_are_inside_the_source_and_in_order(text: str) -> None:
    document = parse_markdown(text)
    for block in document.blocks:
        assert 0 <= block.start <= block.end <= len(text)
        if block.end - block.start == len(block.text):
            assert text[block.start : block.end].split() == block.text.split()


def test_a_block_that_copies_its_source_has_its_exact_place() -> None:
    text = "# Title\n\nPlain words over\ntwo lines.\n\n- an item\n"
    for block in markdown(text):
        assert text[block.start : block.end].replace("\n", " ") == block.text
