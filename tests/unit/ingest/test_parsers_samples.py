"""The sample files: each ends in the state that it should, and says what a person reads in it."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from ingest.parsers import parse_item
from ingest.parsers.blocks import says_something
from ingest.sources import open_source
from quarry.errors import ParseError
from quarry.records import BlockKind, DocState, ParsedDocument, SourceItem
from quarry.settings import IngestSettings
from quarry.text import clean

pytestmark = pytest.mark.shared

STATES = {
    "docl__html_rich_table_cells.html": DocState.INDEXED,
    "docl__ocr_test.pdf": DocState.INDEXED,
    "docl__table_05.html": DocState.INDEXED,
    "docl__textbox.docx": DocState.INDEXED,
    "md__changelog.md": DocState.INDEXED,
    "md__fenced_code_blocks.md": DocState.INDEXED,
    "pdfjs__ArabicCIDTrueType.pdf": DocState.INDEXED,
    "pdfjs__copy_paste_ligatures.pdf": DocState.INDEXED,
    "pdfjs__empty#hash.pdf": DocState.EMPTY,
    "pdfjs__rotation.pdf": DocState.INDEXED,
    "pdfjs__tracemonkey.pdf": DocState.INDEXED,
    "plumb__WARN-Report-for-7-1-2015-to-03-25-2016.pdf": DocState.INDEXED,
    "plumb__empty.pdf": DocState.EMPTY,
    "plumb__issue-297-example.pdf": DocState.CORRUPT,
    "plumb__issue-71-duplicate-chars.pdf": DocState.INDEXED,
    "pypdf__form.pdf": DocState.INDEXED,
    "pypdf__r6-empty-password.pdf": DocState.INDEXED,
    "unst__docx-hdrftr.docx": DocState.INDEXED,
    "unst__docx-tables.docx": DocState.INDEXED,
    "unst__example-with-scripts.html": DocState.INDEXED,
    "unst__fake-html-cp1252.html": DocState.INDEXED,
    "unst__fake-memo-with-duplicate-page.pdf": DocState.INDEXED,
    "unst__fake-text-utf-16-le.txt": DocState.INDEXED,
    "unst__fake-text-utf-32.txt": DocState.INDEXED,
    "unst__korean-text-with-tables.pdf": DocState.INDEXED,
    "unst__layout-parser-paper-with-empty-pages.pdf": DocState.INDEXED,
    "unst__multi-column-2p.pdf": DocState.INDEXED,
    "unst__norwich-city.txt": DocState.INDEXED,
    "unst__password.pdf": DocState.ENCRYPTED,
}

PHRASES = {
    "docl__html_rich_table_cells.html": (
        "Teal | Pond; Marsh; Riverbank | Fly south in winter; Build nest on ground",
        "Quack | Type, Sound; Short, “quak”; Long, “quaaaaaack”",
        "Gracefully glide on H2O surfaces.",
    ),
    "docl__ocr_test.pdf": (
        "Docling bundles PDF document conversion to JSON and Markdown in an easy self contained "
        "package",
    ),
    "docl__table_05.html": ("A1, B1, C1; D1, E1, F1 | 2...", "After table"),
    "docl__textbox.docx": (
        "A report must be submitted within 24 hours via the Ministry of Education’s Campus Safety",
        "Student falls ill",
        "＊ Fever".replace("＊", "*"),
    ),
    "md__changelog.md": (
        "Fix quadratic-time id generation in the toc extension when many headers share the same "
        "text.",
    ),
    "md__fenced_code_blocks.md": (
        "This extension is in maintenance mode. We will continue to fix bugs",
        "lang_prefix: The prefix prepended to the language class",
    ),
    "pdfjs__ArabicCIDTrueType.pdf": ("انواع الخطوط العربية",),
    "pdfjs__copy_paste_ligatures.pdf": ("abcdeffffiflffifflststghijklmno",),
    "pdfjs__rotation.pdf": (
        "This is my second page. It will have a landscape layout. Second line here.",
    ),
    "pdfjs__tracemonkey.pdf": (
        # over the columns of page 1, with notes between
        "is the de facto standard for client-side web programming and is used for the application "
        "logic of browser-based productivity applications such as Google Mail",
        # over pages 2 and 3, with two figures between
        "The result is a native code fragment that can be entered if the interpreter PC and the "
        "types of values match",
        "We have implemented a dynamic compiler for JavaScript based on our technique",
        "an elegant and efficient way of incrementally compiling lazily discovered alternative "
        "paths through nested loops",
        "v3 := ld v0[4] // load class word for primes",
        "110 | boolean null, or undefined | enumeration for null, undefined, true, false",
        "crypto-sha1 | 5 | 5 | 10 | 0 | 0 | 1.0 | 2.0 | 2.0 | 5.95x",
        "Our system uses a mixed-mode execution approach",
        "Copyright ©2009 ACM",
    ),
    "plumb__issue-71-duplicate-chars.pdf": (
        "项目描述：负责四川省甘孜州丹巴磨子电站引水隧洞爆破方案优化设计及爆破震动监测工作。".replace(
            "：", ":"
        ),
    ),
    "pypdf__form.pdf": ("foo",),
    "pypdf__r6-empty-password.pdf": ("pdf encryption test",),
    "unst__docx-hdrftr.docx": ("First header para", "Main document", "para2"),
    "unst__docx-tables.docx": ("d | e, f; g&t, h | i", "e | e | d"),
    "unst__example-with-scripts.html": (
        "Belarusian forces remain unlikely to attack Ukraine despite a snap Belarusian military "
        "readiness check on December 13.",
    ),
    "unst__fake-html-cp1252.html": (
        "Der Preis betrug 15,50 €.",
        "L'été était très chaud cette année.",
        'El niño comió paella con ñoquis. La señora dijo: "¡Qué rico!" y pagó 25,75 €.',
    ),
    "unst__fake-memo-with-duplicate-page.pdf": (
        "200 laptops delivered on January 23, 2023. A total of 3 trucks were used for 15 hours.",
    ),
    "unst__fake-text-utf-16-le.txt": ("This is a test document to use for unit tests.",),
    "unst__fake-text-utf-32.txt": ("Hamburgers are delicious", "Doylestown, PA 18901"),
    "unst__korean-text-with-tables.pdf": (
        "주유 | 모든 주유소",
        "온라인쇼핑몰 | 삼성카드 쇼핑, G마켓, 옥션, 11번가, 인터파크, 쿠팡, 티몬, 위메프",
        "‘삼성카드 홈페이지(PC, 모바일)’에서 확인",
    ),
    "unst__layout-parser-paper-with-empty-pages.pdf": (
        # over pages 1 and 4, with blank ones between
        "document image classification [11, 37], layout detection [38, 22], table detection [26]",
        "on-going efforts to improve reusability",
        "An off-the-shelf toolkit for applying DL models",
    ),
    "unst__multi-column-2p.pdf": (
        # over the columns of page 2
        "More specifically, we assume the extractive QA setting, in which the answer is restricted "
        "to a span appearing in one or more passages in the corpus.",
        # over the page break
        "setting new state-of-the-art results on multiple open-domain QA datasets, it also suffers "
        "from two weaknesses.",
        "Barlas Oğuz",
    ),
    "unst__norwich-city.txt": (
        "Roberts made 647 league appearances during his career, almost half of which were for "
        "Norwich, where he overcame a weak start to become a fan favourite.",
        "1986–1990 Watford 63 (9)",
        "moved to Division Three club Huddersfield Town prior to the start of the 1990–91 season, "
        "for £275,000.",
    ),
}

Parsed = Callable[[str], ParsedDocument]


@pytest.fixture(scope="module")
def samples(shared_dir: Path) -> Path:
    return shared_dir / "samples"


@pytest.fixture(scope="module")
def parsed(samples: Path) -> Parsed:
    """Parses a sample when it is first asked for. Raises ParseError as the parser does."""

    @cache
    def parse(name: str) -> ParsedDocument:
        item = SourceItem(source="s", address=name, uri=name, tag="t", size=0)
        (document,) = parse_item((samples / name).read_bytes(), item, IngestSettings())
        return document

    return parse


def read(document: ParsedDocument) -> str:
    """All that it says, cleaned as chunks are, on one line a block."""
    return "\n".join(" ".join(clean(block.text).split()) for block in document.blocks)


def rows(document: ParsedDocument) -> str:
    tables = (block for block in document.blocks if block.kind is BlockKind.TABLE)
    return "\n".join(clean(block.text) for block in tables)


def test_every_sample_is_listed_and_expected(samples: Path) -> None:
    listed = {item.address for item in open_source(str(samples)).list()}
    assert listed - {"MANIFEST.tsv"} == set(STATES)


@pytest.mark.parametrize("name", STATES)
def test_each_sample_ends_in_its_state_and_none_is_indexed_without_text(
    name: str, parsed: Parsed
) -> None:
    try:
        document = parsed(name)
    except ParseError as error:
        assert (error.state, error.reason[-1:]) == (STATES[name], ".")
        return
    assert document.state is STATES[name]
    assert document.reason == ""
    assert document.title
    assert document.content_hash
    assert all(says_something(block) for block in document.blocks)
    assert document.blocks


@pytest.mark.parametrize("name", PHRASES)
def test_a_sample_says_what_a_person_reads_in_it(name: str, parsed: Parsed) -> None:
    document = parsed(name)
    text = f"{read(document)}\n{rows(document)}"
    for phrase in PHRASES[name]:
        assert phrase in text


DAMAGED = (
    "docl__textbox.docx",
    "docl__html_rich_table_cells.html",
    "md__fenced_code_blocks.md",
    "pdfjs__rotation.pdf",
    "pypdf__form.pdf",
    "unst__fake-text-utf-32.txt",
    "unst__korean-text-with-tables.pdf",
)


@pytest.mark.parametrize("name", DAMAGED)
def test_a_damaged_copy_ends_in_a_state_too_and_never_in_a_fault(name: str, samples: Path) -> None:
    chance = random.Random(name)
    item = SourceItem(source="s", address=name, uri=name, tag="t", size=0)
    ended: set[str] = set()
    for _ in range(25):
        content = bytearray((samples / name).read_bytes())
        for _ in range(chance.choice((1, 5, 20)) if len(content) < 20_000 else 100):
            place = chance.randrange(len(content))
            if chance.random() < 0.5:
                content[place] = chance.randrange(256)
            else:
                del content[place : place + chance.randrange(20)]
        try:
            found = list(parse_item(bytes(content), item, IngestSettings(ocr=False)))
            ended.update(document.state for document in found)
        except ParseError as error:
            ended.add(error.state)
    assert ended <= {state.value for state in DocState} - {DocState.FAILED, DocState.DELETED}


def test_every_indexed_sample_has_phrases_to_look_for() -> None:
    indexed = {name for name, state in STATES.items() if state is DocState.INDEXED}
    assert indexed - set(PHRASES) == {"plumb__WARN-Report-for-7-1-2015-to-03-25-2016.pdf"}


def test_the_long_table_has_all_its_rows_with_column_names_on_every_page(parsed: Parsed) -> None:
    document = parsed("plumb__WARN-Report-for-7-1-2015-to-03-25-2016.pdf")
    names = ("Notice Date", "Effective", "Received", "Company", "City", "No. Of", "Layoff/Closure")
    tables = [block for block in document.blocks if block.header == names]
    assert [block.page for block in tables] == list(range(1, 16))
    found = [row for block in tables for row in block.rows]
    cancelled = [row for row in found if row[3].endswith("(CANCELLED)**")]
    assert len(found) - len(cancelled) == 632  # the report's own total, which leaves out one
    assert len(cancelled) == 1
    assert (
        "06/30/2015",
        "08/30/2015",
        "07/01/2015",
        "Long Beach Memorial Medical Center",
        "Long Beach",
        "90",
        "Layoff Permanent",
    ) in found
    assert all(len(row) == 7 and row[0][2] == "/" and row[5].isdecimal() for row in found)
    summary = [block for block in document.blocks if block.header[:1] == ("Summary by Month",)]
    assert [block.page for block in summary] == [15, 16]
    assert summary[-1].header[1:3] == ("Notices", "Employees Affected")
    assert summary[-1].rows[-1][:3] == ("Total", "632", "53,454")


def test_pages_are_those_of_the_file_also_after_blank_ones(parsed: Parsed) -> None:
    document = parsed("unst__layout-parser-paper-with-empty-pages.pdf")
    assert document.pages == 4
    pages = {b.text[:30]: (b.page, b.last_page) for b in document.blocks}
    assert pages["This page is intentionally lef"] == (3, None)
    assert pages["Deep Learning(DL)-based approa"] == (1, 4)
    assert pages["However, there are several pra"] == (4, None)


def test_menus_and_scripts_of_a_page_are_not_in_its_text(parsed: Parsed) -> None:
    text = read(parsed("unst__example-with-scripts.html"))
    assert not any(noise in text for noise in ("jQuery", "function", "@import", "Skip to main"))


def test_text_boxes_and_headers_are_said_once(parsed: Parsed) -> None:
    boxes = read(parsed("docl__textbox.docx"))
    assert boxes.count("Student falls ill") == 1
    assert boxes.count("The Health Bureau will handle reporting") == 1
    assert read(parsed("unst__docx-hdrftr.docx")).count("First header para") == 1


def test_headings_that_repeat_have_anchors_of_their_own(parsed: Parsed) -> None:
    anchors = [b.anchor for b in parsed("md__changelog.md").blocks if b.kind is BlockKind.HEADING]
    assert len(anchors) == 93
    assert len(set(anchors)) == len(anchors)


def test_the_paper_has_its_sections_as_headings(parsed: Parsed) -> None:
    document = parsed("pdfjs__tracemonkey.pdf")
    headings = [(b.level, b.text) for b in document.blocks if b.kind is BlockKind.HEADING]
    assert headings[0] == (
        1,
        "Trace-based Just-in-Time Type Specialization for Dynamic Languages",
    )
    for expected in ((2, "Abstract"), (2, "1. Introduction"), (3, "3.1 Traces"), (2, "References")):
        assert expected in headings


def test_no_line_end_hyphen_is_left_in_the_paper(parsed: Parsed) -> None:
    text = read(parsed("pdfjs__tracemonkey.pdf"))
    for word in ("compile", "alternative", "lazily discovered", "collaboration", "instructions"):
        assert word in text.lower()
    for broken in ("com- pile", "al- ternative", "instruc- tions", "ﬁ"):
        assert broken not in text
