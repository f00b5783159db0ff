"""PDF pages made on the spot: reading order, paragraphs, tables, forms, scans and damage."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pymupdf
import pytest

from ingest.parsers.pdf.document import parse_pdf
from ingest.parsers.pdf.joining import joined, vocabulary
from quarry.errors import ParseError
from quarry.records import Block, BlockKind, DocState, ParsedDocument

BODY = 11
LEADING = 14


def pdf(*fills: Callable[[Any], None], **saving: Any) -> bytes:
    """A document with one A4 page for each function."""
    with pymupdf.open() as document:
        for fill in fills:
            fill(document.new_page())
        return bytes(document.tobytes(**saving))


def parsed(*fills: Callable[[Any], None]) -> ParsedDocument:
    return parse_pdf(pdf(*fills), ocr=False, timeout_s=60)


def blocks(*fills: Callable[[Any], None]) -> list[Block]:
    return list(parsed(*fills).blocks)


def state_of(content: bytes, *, ocr: bool = False) -> str:
    with pytest.raises(ParseError) as caught:
        parse_pdf(content, ocr=ocr, timeout_s=60)
    return caught.value.state


def lines(
    page: Any, x: float, y: float, *texts: str, size: float = BODY, font: str = "tiro"
) -> float:
    for text in texts:
        page.insert_text((x, y), text, fontsize=size, fontname=font)
        y += LEADING * size / BODY
    return y


LEFT = (
    "Kestrel Gear rents tents, stoves and back-",
    "packs for three to fourteen days, and the",
    "rental fee is charged when the gear is sent",
    "to you and not when you book it, since the",
    "date may still move until it has left us, and",
)
RIGHT = (
    "nobody should pay for gear that stays here.",
    "Damage is charged at the cost of the repair,",
    "up to the retail price of the item, but nor-",
    "mal wear is not charged, whatever it is that",
    "you did with the tent while it was yours.",
)


def two_columns(page: Any) -> None:
    """Drawn row by row, as a program does that knows nothing of columns."""
    page.insert_text((72, 140), "Rental terms of Kestrel Gear in the year 2026", fontsize=18)
    for number, (left, right) in enumerate(zip(LEFT, RIGHT, strict=True)):
        lines(page, 72, 200 + number * LEADING, left)
        lines(page, 320, 200 + number * LEADING, right)


def test_two_columns_are_read_one_after_the_other_and_the_sentence_goes_on() -> None:
    title, text = blocks(two_columns)
    assert (title.kind, title.text) == (
        BlockKind.HEADING,
        "Rental terms of Kestrel Gear in the year 2026",
    )
    assert text.text == (
        "Kestrel Gear rents tents, stoves and backpacks for three to fourteen days, and the rental "
        "fee is charged when the gear is sent to you and not when you book it, since the date may "
        "still move until it has left us, and nobody should pay for gear that stays here. Damage "
        "is charged at the cost of the repair, up to the retail price of the item, but normal wear "
        "is not charged, whatever it is that you did with the tent while it was yours."
    )


def test_a_paragraph_over_two_pages_names_both_and_blank_pages_still_count() -> None:
    def blank(page: Any) -> None:
        page.draw_rect((72, 72, 100, 100))

    found = blocks(
        lambda page: lines(page, 72, 200, *LEFT),
        blank,
        lambda page: lines(page, 72, 200, *RIGHT),
        lambda page: lines(page, 72, 200, "The last page stands alone."),
    )
    assert [(b.page, b.last_page) for b in found] == [(1, 3), (4, None)]
    assert "until it has left us, and nobody should pay" in found[0].text


def test_headings_are_known_by_their_size_and_ranked_by_it() -> None:
    def page(page: Any) -> None:
        lines(page, 72, 120, "Leave policy", size=20)
        lines(page, 72, 160, "1. Weeks", size=14)
        lines(page, 72, 190, *LEFT)
        lines(page, 72, 300, "1.1 Twins", font="tibo")
        lines(page, 72, 330, *RIGHT)

    found = blocks(page)
    headings = [(b.level, b.text) for b in found if b.kind is BlockKind.HEADING]
    assert headings == [(1, "Leave policy"), (2, "1. Weeks"), (3, "1.1 Twins")]
    assert parsed(page).title == "Leave policy"


def test_list_items_and_code_keep_their_form() -> None:
    def page(page: Any) -> None:
        y = lines(page, 72, 120, "Pack these things before you leave the house:")
        y = lines(page, 90, y, "• tent poles and the pegs that come with them, in", size=BODY)
        y = lines(page, 98, y, "their own bag")
        y = lines(page, 90, y, "• stove")
        y = lines(page, 90, y, "1. check the gas")
        y = lines(page, 72, y + 20, "for gear in bag:", "    pack(gear)", font="cour")

    assert [(b.kind.value, b.text) for b in blocks(page)] == [
        ("paragraph", "Pack these things before you leave the house:"),
        ("list_item", "tent poles and the pegs that come with them, in their own bag"),
        ("list_item", "stove"),
        ("list_item", "1. check the gas"),
        ("code", "for gear in bag:\n    pack(gear)"),
    ]


@pytest.mark.parametrize("rotation", [0, 90, 180, 270])
def test_a_turned_page_is_read_as_it_is_seen(rotation: int) -> None:
    def page(page: Any) -> None:
        lines(page, 72, 200, *LEFT[:3])
        page.set_rotation(rotation)

    (block,) = blocks(page)
    assert block.text.startswith("Kestrel Gear rents tents, stoves and backpacks for three")


@pytest.mark.parametrize("turn", [90, 180, 270])
def test_text_drawn_sideways_is_read_line_by_line(turn: int) -> None:
    steps = {90: (14, 0), 180: (0, -14), 270: (-14, 0)}[turn]

    def page(page: Any) -> None:
        for number, text in enumerate(LEFT[:3]):
            place = (300 + steps[0] * number, 400 + steps[1] * number)
            page.insert_text(place, text, fontsize=BODY, rotate=turn)

    (block,) = blocks(page)
    assert block.text.endswith("and the rental fee is charged when the gear is sent")


def test_glyphs_that_are_drawn_twice_to_look_bold_are_read_once() -> None:
    def page(page: Any) -> None:
        for offset in (0, 0.4):
            lines(page, 72 + offset, 120, "Warranty")
        lines(page, 72, 160, "A broken zipper counts.")
        lines(page, 72, 200, "A broken zipper counts.")

    assert [b.text for b in blocks(page)] == [
        "Warranty",
        "A broken zipper counts.",
        "A broken zipper counts.",
    ]


# -------------------------------------------------------------------------------------- tables


def ruled(page: Any, rows: list[list[str]], *, top: float, bold_head: bool = False) -> None:
    for number, row in enumerate(rows):
        for column, text in enumerate(row):
            x, y = 72 + 120 * column, top + 24 * number
            page.draw_rect((x, y, x + 120, y + 24))
            font = "tibo" if bold_head and number == 0 else "tiro"
            lines(page, x + 4, y + 15, text, font=font)


def test_a_ruled_table_goes_on_over_pages_with_the_names_of_its_first() -> None:
    found = blocks(
        lambda page: ruled(
            page, [["Company", "City"], ["Actavis", "Corona"]], top=600, bold_head=True
        ),
        lambda page: ruled(page, [["Safeway", "Berkeley"], ["Boeing", "Irvine"]], top=72),
        lambda page: ruled(
            page, [["Company", "City"], ["Oakley", "Chico"]], top=72, bold_head=True
        ),
    )
    assert [(b.page, b.header, b.rows) for b in found] == [
        (1, ("Company", "City"), (("Actavis", "Corona"),)),
        (2, ("Company", "City"), (("Safeway", "Berkeley"), ("Boeing", "Irvine"))),
        (3, ("Company", "City"), (("Oakley", "Chico"),)),
    ]


def test_a_table_after_other_text_has_names_of_its_own() -> None:
    def page(page: Any) -> None:
        ruled(page, [["Company", "City"], ["Actavis", "Corona"]], top=100, bold_head=True)
        lines(page, 72, 180, "And now something else, which is a table too:")
        ruled(page, [["Code", "Weeks"], ["null, till", "20"]], top=220, bold_head=True)

    tables = [block for block in blocks(page) if block.rows]
    assert [b.header for b in tables] == [("Company", "City"), ("Code", "Weeks")]
    assert tables[1].rows == (("null, till", "20"),)


def test_cells_that_no_rule_parts_are_one_and_repeat_in_all_that_they_cover() -> None:
    def page(page: Any) -> None:
        for y, xs in ((100, (72, 192, 312)), (124, (72, 192, 312)), (148, (72, 312))):
            for x, end in pairwise(xs):
                page.draw_rect((x, y, end, y + 24))
        for x, y, text in ((76, 115, "Low"), (196, 115, "High"), (76, 139, "1"), (196, 139, "2")):
            lines(page, x, y, text)
        lines(page, 76, 163, "none of both")

    (table,) = blocks(page)
    assert table.rows[-1] == ("none of both", "none of both")


def test_columns_without_rules_are_a_table_too() -> None:
    rows = [
        ["Plan", "Price", "From"],
        ["Basic", "20", "May"],
        ["Full", "35", "June"],
        ["Max", "50", "July"],
    ]

    def page(page: Any) -> None:
        lines(page, 72, 120, "These are the plans that you may choose from in the coming year.")
        for number, row in enumerate(rows):
            for column, text in enumerate(row):
                lines(page, 72 + 110 * column, 150 + LEADING * number, text)

    table = blocks(page)[-1]
    assert (table.header, table.rows) == (tuple(rows[0]), tuple(map(tuple, rows[1:])))


def test_boxes_of_a_drawing_are_not_a_table() -> None:
    def page(page: Any) -> None:
        for x in (72, 200, 330):
            page.draw_rect((x, 100, x + 90, 140))
            lines(page, x + 5, 125, "Trace")

    assert all(not block.rows for block in blocks(page))


# ------------------------------------------------------------------- margins, forms and scans


def test_running_heads_stand_once_and_page_numbers_nowhere() -> None:
    def page(number: int) -> Callable[[Any], None]:
        def fill(page: Any) -> None:
            lines(page, 72, 40, f"HR-014 version 4, sheet {number}", size=9)
            lines(page, 72, 200, f"Chapter {number * number} tells of tents.")
            lines(page, 290, 810, str(number), size=9)

        return fill

    assert [b.text for b in blocks(*(page(n) for n in (1, 2, 3, 4)))] == [
        "HR-014 version 4, sheet 1",
        "Chapter 1 tells of tents.",
        "Chapter 4 tells of tents.",
        "Chapter 9 tells of tents.",
        "Chapter 16 tells of tents.",
    ]


def test_what_is_filled_in_on_a_form_is_read() -> None:
    def field(page: Any, kind: int, name: str, value: Any, place: int, **more: Any) -> None:
        widget = pymupdf.Widget()
        widget.field_type, widget.field_name, widget.field_value = kind, name, value
        widget.rect = pymupdf.Rect(200, place, 400, place + 20)
        for key, item in more.items():
            setattr(widget, key, item)
        page.add_widget(widget)

    def page(page: Any) -> None:
        lines(page, 72, 115, "Name")
        field(
            page, pymupdf.PDF_WIDGET_TYPE_TEXT, "name", "Mei Tanaka", 100, field_label="Full name"
        )
        field(page, pymupdf.PDF_WIDGET_TYPE_TEXT, "empty", "", 130)
        field(page, pymupdf.PDF_WIDGET_TYPE_CHECKBOX, "agreed", True, 160)
        field(page, pymupdf.PDF_WIDGET_TYPE_CHECKBOX, "refused", False, 190)
        field(
            page,
            pymupdf.PDF_WIDGET_TYPE_COMBOBOX,
            "city",
            "Oslo",
            220,
            choice_values=["Oslo", "Rome"],
        )

    found = blocks(page)
    assert [b.text for b in found] == ["Name Mei Tanaka", "Oslo", "agreed: yes"]


def scan(page: Any) -> None:
    """A page that is one picture of text."""
    with pymupdf.open() as other:
        source = other.new_page()
        lines(source, 72, 200, "Glasses are paid up to 220 euros.", size=20)
        page.insert_image(page.rect, pixmap=source.get_pixmap(dpi=150))


def test_a_scan_without_ocr_needs_it_and_a_scanned_page_among_others_is_told() -> None:
    assert state_of(pdf(scan)) == DocState.NEEDS_OCR
    mixed = parsed(lambda page: lines(page, 72, 200, *LEFT), scan, scan)
    assert (mixed.state, mixed.reason) == (
        DocState.PARTIAL,
        "Pages 2-3 could not be read without OCR (ingest.ocr).",
    )


@pytest.mark.slow
def test_a_scanned_page_is_read_with_ocr_and_keeps_its_number() -> None:
    content = pdf(lambda page: lines(page, 72, 200, *LEFT[:-1], "date may still move."), scan)
    found = parse_pdf(content, ocr=True, timeout_s=120)
    assert found.state is DocState.INDEXED
    assert [(b.page, b.text) for b in found.blocks][-1] == (2, "Glasses are paid up to 220 euros.")


# -------------------------------------------------------------------------------------- states


def test_a_password_is_needed_unless_it_is_empty() -> None:
    page = lambda page: lines(page, 72, 200, "Text.")  # noqa: E731
    locked = pdf(page, encryption=pymupdf.PDF_ENCRYPT_AES_256, user_pw="tent", owner_pw="x")
    assert state_of(locked) == DocState.ENCRYPTED
    opened = pdf(page, encryption=pymupdf.PDF_ENCRYPT_AES_256, user_pw="", owner_pw="x")
    assert parse_pdf(opened, ocr=False, timeout_s=60).state is DocState.INDEXED


def test_a_file_without_anything_to_read_is_empty_and_a_damaged_one_corrupt() -> None:
    assert state_of(pdf(lambda page: None)) == DocState.EMPTY
    assert state_of(b"%PDF-1.7\nnothing more") == DocState.CORRUPT
    whole = pdf(two_columns)
    assert state_of(whole[: len(whole) // 8]) == DocState.CORRUPT


def test_a_file_that_claims_absurdly_many_pages_is_not_counted_through() -> None:
    claims = pdf(two_columns).replace(b"/Count 1", b"/Count 2000000000")
    assert state_of(claims) == DocState.CORRUPT


def test_a_file_of_too_many_pages_is_not_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ingest.parsers.pdf.document._MAX_PAGES", 2)
    assert state_of(pdf(*(two_columns,) * 3)) == DocState.TOO_LARGE


def test_what_is_recovered_of_a_damaged_file_is_read_and_the_damage_told() -> None:
    content = pdf(two_columns).replace(b"startxref", b"startnone")
    found = parse_pdf(content, ocr=False, timeout_s=60)
    assert (found.state, "damaged" in found.reason) == (DocState.PARTIAL, True)
    assert found.blocks[0].text == "Rental terms of Kestrel Gear in the year 2026"


def test_a_page_that_cannot_be_read_makes_the_document_partial() -> None:
    with pymupdf.open() as document:
        for number in (1, 2, 3):
            lines(document.new_page(), 72, 200, f"Text of page {number}, in a sentence.")
        (stream,) = document[1].get_contents()
        document.update_stream(stream, b"\xff\xfe garbage (((( BT", compress=False)
        found = parse_pdf(document.tobytes(), ocr=False, timeout_s=60)
    assert (found.state, found.reason) == (DocState.PARTIAL, "Page 2 could not be read.")
    assert [b.page for b in found.blocks] == [1, 3]


def test_pages_beyond_the_time_limit_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter(range(0, 1000, 30))
    monkeypatch.setattr("ingest.parsers.pdf.document.time.monotonic", lambda: float(next(clock)))
    content = pdf(*(lambda page: lines(page, 72, 200, "Some text."),) * 5)
    found = parse_pdf(content, ocr=False, timeout_s=100)
    assert (found.state, found.reason) == (
        DocState.PARTIAL,
        "Pages 3-5 could not be read within the time limit.",
    )


def test_a_title_that_the_file_names_counts_only_if_the_page_shows_it() -> None:
    with pymupdf.open() as document:
        lines(document.new_page(), 72, 200, "Parental leave in Canada", *LEFT)
        titles = []
        for named in ("Microsoft Word - draft7.doc", "Parental Leave in Canada", "Invoice 7"):
            document.set_metadata({"title": named})
            titles.append(parse_pdf(document.tobytes(), ocr=False, timeout_s=60).title)
    assert titles == ["", "Parental Leave in Canada", "Invoice 7"]


# ------------------------------------------------------------------------------------- joining


@pytest.mark.parametrize(
    ("lines", "elsewhere", "expected"),
    [
        (["a dynamic com-", "piler"], "", "a dynamic compiler"),
        (["state-of-the-", "art work"], "", "state-of-the-art work"),
        (["a well-", "known fact"], "well-known", "a well-known fact"),
        (["Trace-", "Monkey runs"], "TraceMonkey", "TraceMonkey runs"),
        (["the Smith-", "Jones rule"], "", "the Smith-Jones rule"),
        (["a low-", "level view"], "low and level", "a low-level view"),
        (["pages 10-", "12 of it"], "", "pages 10-12 of it"),
        (["an e-", "mail"], "", "an e-mail"),
        (["soft\u00ad", "ware"], "", "software"),
        (["one", "two"], "", "one two"),
        (["项目描述工", "作。完"], "", "项目描述工作。完"),
        (["テスト", "です"], "", "テストです"),
    ],
)
def test_lines_are_joined_as_the_document_writes_the_words_elsewhere(
    lines: list[str], elsewhere: str, expected: str
) -> None:
    words = vocabulary([elsewhere, *lines])
    found = joined(lines, [False] * len(lines), words, marks_blanks=False)
    assert re.sub(r"\s+", " ", found) == expected


def test_korean_words_go_on_where_the_page_has_no_blank() -> None:
    text = ["홈페이지(PC, 모바일)’", "에서 확인", "할인 "]
    assert joined(text, [False, True, False], frozenset(), marks_blanks=True) == (
        "홈페이지(PC, 모바일)’에서 확인 할인 "
    )
    assert joined(text[:2], [False, True], frozenset(), marks_blanks=False).count(" ") == 3
