"""What a chunk holds and where it is cut."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.chunking import Chunker, ChunkJob, Head
from ingest.chunking.meter import CHARS_PER_TOKEN
from quarry import ids
from quarry.records import Block, BlockKind, Chunk
from quarry.settings import ChunkingSettings
from quarry.text import embedded_text


class WordCounter:
    """One token a word and two special ones."""

    def __init__(self) -> None:
        self.calls = 0

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        self.calls += 1
        return [len(text.split()) + 2 for text in texts]


class GreedyCounter:
    """Counts whole texts longer than the sum of their words, as some tokenizers do."""

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        return [len(text.split()) + len(text.split()) // 3 + 2 for text in texts]


def heading(text: str, level: int = 1, **more: object) -> Block:
    return Block(kind=BlockKind.HEADING, text=text, level=level, **more)  # type: ignore[arg-type]


def paragraph(text: str, start: int = 0, **more: object) -> Block:
    end = start + len(text)
    return Block(kind=BlockKind.PARAGRAPH, text=text, start=start, end=end, **more)  # type: ignore[arg-type]


def item(text: str, level: int = 0) -> Block:
    return Block(kind=BlockKind.LIST_ITEM, text=text, level=level)


def chunk(*blocks: Block, size: int = 40, least: int = 0, **head: str) -> tuple[Chunk, ...]:
    settings = ChunkingSettings(max_tokens=size, min_tokens=least)
    job = ChunkJob(doc_id="d" * 32, head=Head(**head), blocks=blocks)
    return Chunker(WordCounter(), settings).chunk([job])[0]


def words(count: int, stem: str = "w") -> str:
    return " ".join(f"{stem}{number}" for number in range(count))


def sentence(count: int, stem: str = "w") -> str:
    return words(count, stem).capitalize() + "."


def test_a_short_record_is_one_chunk_with_the_title_on_top() -> None:
    (only,) = chunk(paragraph("The wing was tested."), title="Wings in a slipstream")
    assert (only.header, only.text) == ("Wings in a slipstream", "The wing was tested.")
    assert only.tokens == 2 + 4 + 4
    assert only.text_hash == ids.digest(embedded_text(only.header, only.text))


def test_the_header_names_title_version_scope_and_section_path() -> None:
    blocks = (heading("Setup"), heading("Poles", 2), paragraph("Push the pole in."))
    (only,) = chunk(*blocks, title="TrailNest 2", version="3.1", scope="EU")
    assert only.header == "TrailNest 2, version 3.1, EU\nSetup > Poles"
    assert only.section == ("Setup", "Poles")


def test_a_first_heading_that_repeats_the_title_is_said_once() -> None:
    (only,) = chunk(heading("Trailnest 2"), paragraph("A tent."), title="TrailNest 2")
    assert only.header == "TrailNest 2"
    assert only.section == ()


def test_a_deeper_heading_closes_when_a_higher_one_opens() -> None:
    blocks = (heading("A"), heading("B", 2), paragraph("one"), heading("C"), paragraph("two"))
    assert [found.section for found in chunk(*blocks)] == [("A", "B"), ("C",)]


def test_the_anchor_of_a_section_is_kept() -> None:
    (only,) = chunk(heading("Poles", anchor="poles"), paragraph("Push."))
    assert only.anchor == "poles"


def test_a_header_that_would_eat_the_chunk_loses_outer_sections_first() -> None:
    path = [heading(f"Level {level} {words(9)}", level) for level in range(1, 5)]
    (only,) = chunk(*path, paragraph("body"), size=60, title="Manual")
    assert only.header == f"Manual\nLevel 4 {words(9)}"
    assert len(only.section) == 4


def test_a_title_that_no_header_has_room_for_stands_in_the_text_below_it_once() -> None:
    clause = f"The contractor shall {words(40)}. Payment follows."
    first, *rest = chunk(
        heading("Terms"),
        heading(clause, 2),
        paragraph(" ".join(sentence(20, stem) for stem in "abcde")),
        size=60,
        title="Contract",
    )
    assert first.header == "Contract"
    assert first.text.startswith("Terms\n\nThe contractor shall w0 w1")
    everything = " ".join(part.text for part in (first, *rest))
    assert everything.count("The contractor shall") == everything.count("Payment follows.") == 1
    assert first.section == ("Terms", clause)
    (bare,) = chunk(heading("Terms"), heading(clause, 2), size=90, title="Contract")
    assert bare.text.count("The contractor shall") == 1


def test_a_title_longer_than_a_chunk_is_shortened_but_version_and_scope_stay() -> None:
    (only,) = chunk(paragraph("body"), title=words(100), version="2", scope="US")
    assert only.header.startswith("w0 w1 ")
    assert only.header.endswith(", version 2, US")
    assert only.tokens <= 40


def test_a_paragraph_is_cut_between_sentences() -> None:
    text = " ".join(sentence(9, stem) for stem in "abcdefgh")
    found = chunk(paragraph(text))
    assert len(found) == 2
    assert all(part.text.endswith(".") and part.text[0].isupper() for part in found)
    assert " ".join(part.text for part in found) == text


def test_the_last_two_parts_of_a_long_section_are_about_equally_long() -> None:
    found = chunk(paragraph(" ".join(["One two three."] * 27)))
    assert [part.tokens for part in found] == [38, 26, 23]


def test_an_edit_leaves_the_chunks_before_it_as_they_are() -> None:
    text = " ".join(sentence(7, f"s{number}x") for number in range(40))
    before = {part.chunk_id for part in chunk(paragraph(text))}
    after = {part.chunk_id for part in chunk(paragraph(f"{text} One more."))}
    assert len(before - after) <= 2


def test_a_break_between_paragraphs_is_preferred_to_one_inside() -> None:
    first = " ".join(sentence(5, stem) for stem in "abcde")
    second = " ".join(sentence(5, stem) for stem in "fghi")
    assert [part.text for part in chunk(paragraph(first), paragraph(second))] == [first, second]


def test_only_a_sentence_longer_than_a_chunk_is_cut_at_the_limit() -> None:
    found = chunk(paragraph(sentence(90)))
    assert [part.tokens for part in found] == [40, 40, 16]
    assert " ".join(part.text for part in found) == sentence(90)


def test_a_word_longer_than_a_chunk_is_cut_inside() -> None:
    class CharCounter:
        def count_tokens(self, texts: Sequence[str]) -> list[int]:
            return [len("".join(text.split())) + 2 for text in texts]

    settings = ChunkingSettings(max_tokens=32, min_tokens=0)
    job = ChunkJob(doc_id="d", head=Head(), blocks=(paragraph("x" * 100),))
    (found,) = Chunker(CharCounter(), settings).chunk([job])
    assert "".join(part.text for part in found) == "x" * 100
    assert max(part.tokens for part in found) <= 32


def test_table_rows_are_written_with_their_column_names_in_every_chunk() -> None:
    rows = tuple((f"Tent {number}", f"{number} kg") for number in range(12))
    table = Block(kind=BlockKind.TABLE, text="", header=("Model", "Net weight"), rows=rows)
    found = chunk(table)
    assert len(found) > 1
    lines = [line for part in found for line in part.text.split("\n")]
    assert lines == [f"Model: Tent {n}; Net weight: {n} kg" for n in range(12)]


def test_a_row_longer_than_a_chunk_is_cut_between_cells() -> None:
    header = tuple(f"Column{number}" for number in range(10))
    cells = tuple(words(6, f"c{number}x") for number in range(10))
    table = Block(kind=BlockKind.TABLE, text="", header=header, rows=(cells,))
    pieces = [cell for part in chunk(table) for cell in part.text.split("; ")]
    assert pieces == [f"{name}: {cell}" for name, cell in zip(header, cells, strict=True)]


def test_blank_cells_and_repeats_of_a_merged_cell_are_left_out() -> None:
    rows = (("Total", "Total", ""), ("a\nb", "", "c"))
    table = Block(kind=BlockKind.TABLE, text="", header=("X", "X", "Y"), rows=rows)
    assert chunk(table)[0].text == "X: Total\nX: a b; Y: c"


def test_a_table_of_column_names_alone_still_says_them() -> None:
    table = Block(kind=BlockKind.TABLE, text="", header=("Model", "Weight"))
    assert chunk(table)[0].text == "Model; Weight"


def test_a_line_of_code_is_never_cut_and_keeps_its_indent() -> None:
    lines = ["def f():", *(f"    call(a{n}, b{n}, c{n}, d{n})" for n in range(20))]
    code = Block(kind=BlockKind.CODE, text="\n".join(lines))
    found = chunk(code)
    assert len(found) > 1
    assert [line for part in found for line in part.text.split("\n")] == lines


def test_a_blank_line_in_code_stays() -> None:
    code = Block(kind=BlockKind.CODE, text="a = 1\n\n\nb = 2")
    assert chunk(code)[0].text == "a = 1\n\nb = 2"


def test_list_items_stand_on_lines_of_their_own_with_their_nesting() -> None:
    found = chunk(paragraph("You need:"), item("poles"), item("two long", 1), item("pegs"))
    assert found[0].text == "You need:\n\npoles\n  two long\npegs"


def test_short_sections_share_a_chunk_and_keep_their_titles() -> None:
    blocks = (
        heading("3.1"),
        heading("Fixed", 2),
        paragraph("A crash."),
        heading("Added", 2),
        paragraph("A flag."),
    )
    (only,) = chunk(*blocks, least=6, title="Changelog")
    assert only.header == "Changelog\n3.1"
    assert only.text == "Fixed\n\nA crash.\n\nAdded\n\nA flag."


def test_short_sections_of_different_parents_stay_apart() -> None:
    blocks = (
        heading("3.1"),
        heading("Fixed", 2),
        paragraph("A crash."),
        heading("3.2"),
        heading("Fixed", 2),
        paragraph("A leak."),
    )
    found = chunk(*blocks, least=30)
    assert [part.header for part in found] == ["3.1 > Fixed", "3.2 > Fixed"]


def test_a_short_section_is_not_joined_with_a_long_one_that_would_lose_its_title() -> None:
    blocks = (heading("A"), paragraph("short"), heading("B"), paragraph(sentence(37)))
    assert [part.header for part in chunk(*blocks, least=10)] == ["A", "B"]


def test_an_introduction_is_joined_with_the_first_section_below_it() -> None:
    blocks = (heading("Poles"), paragraph("In short."), heading("Care", 2), paragraph("Dry them."))
    (only,) = chunk(*blocks, least=10)
    assert (only.header, only.text) == ("Poles", "In short.\n\nCare\n\nDry them.")


def test_a_heading_with_nothing_below_it_is_not_lost() -> None:
    found = chunk(heading("Intro"), paragraph("Text."), heading("Appendix B"))
    assert [part.text for part in found] == ["Text.", "Appendix B"]


def test_a_document_of_headings_alone_has_chunks() -> None:
    found = chunk(heading("Deck"), heading("One", 2), heading("Two", 2), title="Deck")
    assert [part.text for part in found] == ["One", "Two"]


def test_blank_blocks_give_no_chunk() -> None:
    assert chunk(paragraph(" \n"), item("\u200b"), heading(" ")) == ()


def test_equal_texts_in_one_document_have_ids_of_their_own_and_one_text_hash() -> None:
    page = "The same memo on every page."
    found = chunk(heading("A"), paragraph(page), heading("B"), paragraph(page), title="")
    same = chunk(heading("A"), paragraph(page), heading("A"), paragraph(page))
    assert len({part.chunk_id for part in found}) == 2
    assert len({part.chunk_id for part in same}) == 2
    assert len({part.text_hash for part in same}) == 1


def test_an_id_does_not_change_when_text_before_it_does() -> None:
    def last(first: str) -> str:
        return chunk(heading("A"), paragraph(first), heading("B"), paragraph("Same."))[-1].chunk_id

    assert last("Old.") == last("New and longer.")


def test_spans_point_to_the_source_though_the_text_is_cleaned() -> None:
    source = "Eﬃcient wing\u00adtips. " + sentence(30) + "  " + sentence(30, "z")
    found = chunk(paragraph(source))
    assert found[0].text.startswith("Efficient wingtips.")
    assert found[-1].text == sentence(30, "z")
    start, end = found[-1].span
    assert source[start:end] == sentence(30, "z")


def test_a_block_that_is_no_copy_of_its_source_keeps_its_whole_span() -> None:
    block = Block(kind=BlockKind.PARAGRAPH, text=f"{sentence(30)} {sentence(30)}", start=5, end=900)
    assert {part.span for part in chunk(block)} == {(5, 900)}


def test_pages_span_from_the_first_to_the_last_piece() -> None:
    blocks = (paragraph("One.", page=2), paragraph("Two.", page=3, last_page=4))
    assert chunk(*blocks)[0].pages == (2, 4)
    assert chunk(paragraph("One."))[0].pages is None


def test_identifiers_of_header_and_text_are_listed() -> None:
    (only,) = chunk(heading("Fault E-1042"), paragraph("See also E 2417."))
    assert only.identifiers == ("E-1042", "E-2417")


def test_many_documents_are_counted_in_few_calls() -> None:
    counter = WordCounter()
    settings = ChunkingSettings(max_tokens=40, min_tokens=8)
    blocks = (heading("Part"), paragraph(" ".join(sentence(9, stem) for stem in "abcdefgh")))
    jobs = [
        ChunkJob(doc_id=str(number), head=Head(title=f"T{number}"), blocks=blocks)
        for number in range(50)
    ]
    assert len(Chunker(counter, settings).chunk(jobs)) == 50
    assert counter.calls <= 5


_TEXT = st.text(alphabet="ab .!?\n;é¼-", max_size=120)
_BLOCKS = st.lists(
    st.one_of(
        st.builds(heading, _TEXT, st.integers(1, 4)),
        st.builds(paragraph, _TEXT),
        st.builds(item, _TEXT),
        st.builds(lambda t: Block(kind=BlockKind.CODE, text=t), _TEXT),
        st.builds(
            lambda rows: Block(kind=BlockKind.TABLE, text="", header=("N", "M"), rows=tuple(rows)),
            st.lists(st.tuples(_TEXT, _TEXT), max_size=4),
        ),
    ),
    max_size=12,
)


@given(_BLOCKS, st.integers(32, 60), st.integers(0, 31), _TEXT)
def test_no_chunk_is_too_long_or_blank_and_no_word_is_lost(
    blocks: list[Block], size: int, least: int, title: str
) -> None:
    settings = ChunkingSettings(max_tokens=size, min_tokens=least)
    job = ChunkJob(doc_id="d", head=Head(title=" ".join(title.split())), blocks=tuple(blocks))
    for counter in (WordCounter(), GreedyCounter()):
        (found,) = Chunker(counter, settings).chunk([job])
        assert all(part.text.strip() and part.tokens <= size for part in found)
        assert len({part.chunk_id for part in found}) == len(found)
        assert [part.ordinal for part in found] == list(range(len(found)))
        said = " ".join(f"{part.header} {part.text}" for part in found) if found else title
        for block in blocks:
            cells = [block.text, *(cell for row in block.rows for cell in row)]
            assert all(word in said for cell in cells for word in _words(cell))


def _words(text: str) -> list[str]:
    return text.split()


@pytest.mark.parametrize("kind", [BlockKind.PARAGRAPH, BlockKind.LIST_ITEM, BlockKind.CODE])
def test_one_unbroken_word_is_cut_by_its_characters(kind: BlockKind) -> None:
    found = chunk(Block(kind=kind, text="a" * 20_000), size=40, title="Log")
    assert sum(c.text.count("a") for c in found) == 20_000
    assert max(len(embedded_text(c.header, c.text)) for c in found) <= 40 * CHARS_PER_TOKEN


def test_many_long_words_share_a_chunk_only_up_to_its_characters() -> None:
    found = chunk(paragraph(" ".join(["b" * 200] * 50)), size=40)
    assert sum(c.text.count("b") for c in found) == 10_000
    assert max(len(c.text) for c in found) <= 40 * CHARS_PER_TOKEN


def test_a_heading_of_one_unbroken_word_does_not_fill_every_header() -> None:
    found = chunk(heading("a" * 20_000), paragraph(sentence(200)), size=40)
    assert max(len(c.header) for c in found) <= 40 * CHARS_PER_TOKEN
