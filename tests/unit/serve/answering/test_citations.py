"""Citations in every shape that models write, however the stream cuts them; claims and quotes."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quarry.records import Document, Evidence
from serve.answering.citations import (
    Mark,
    MarkWriter,
    cited_sentences,
    claims,
    marks_in,
    quote,
    without_marks,
)
from tests.unit.serve.serve_world import chunk_of

KNOWN = ("S1", "S2", "S3")
SHAPES = {
    "one": ("A b [S1].", "A b [S1]."),
    "a list": ("A [S1, S2] c", "A [S1][S2] c"),
    "a list with semicolon and small letter": ("A [s1; S3]", "A [S1][S3]"),
    "a list with a last and": ("A [S1, S2, and S3]", "A [S1][S2][S3]"),
    "a list with slashes": ("A [S1/S2]", "A [S1][S2]"),
    "beside each other": ("A [S1][S3].", "A [S1][S3]."),
    "beside each other with a blank": ("A [S1] [S3].", "A [S1] [S3]."),
    "words between": ("A (S1 and S2).", "A [S1][S2]."),
    "a range": ("A [S1-S3] b", "A [S1][S2][S3] b"),
    "a range with a long dash": ("A [S1–3] b", "A [S1][S2][S3] b"),
    "a range in words": ("A [S1 to S3] b", "A [S1][S2][S3] b"),
    "a range over the known ones": ("A [S2-S5] b", "A [S2][S3] b"),
    "nested": ("[[S1]] x", "[S1] x"),
    "nested list": ("[[S1], x", "[S1], x"),
    "corner brackets": ("A 【S2】", "A [S2]"),
    "corner brackets with a dagger": ("A 【S2†L5-L8】", "A [S2]"),
    "full-width brackets": ("A ［S2］", "A [S2]"),
    "tortoise-shell brackets": ("A 〔S2〕", "A [S2]"),
    "the word source": ("A [Source S1] b", "A [S1] b"),
    "the word source without S": ("A [source 2] b", "A [S2] b"),
    "the word sources with a list": ("A [Sources: 1, 2 and 3]", "A [S1][S2][S3]"),
    "a footnote": ("A [^S1]", "A [S1]"),
    "bold": ("A [**S1**]", "A [S1]"),
    "with a page": ("A [S1, p. 3].", "A [S1]."),
    "with a section": ("A [S2 § 4.2].", "A [S2]."),
    "with a page each": ("A [S1, p. 3; S2, p. 4].", "A [S1][S2]."),
    "with a section each": ("A [S1 §2.1; S2 §3]", "A [S1][S2]"),
    "with places and without": ("A [S1, pp. 3-4, S2 and S3, table 2]", "A [S1][S2][S3]"),
    "with a page in round brackets": ("A (S1, p. 3; S2)", "A [S1][S2]"),
    "with a title": ("A [S1: Returns, used gear]", "A [S1]"),
    "with a title behind a dash": ("A [S1 - Returns]", "A [S1]"),
    "with titles": ("A [S1: Returns; S2: Oslo-Bergen]", "A [S1][S2]"),
    "with a title in quotes": ('A [S1, "Returns"]', "A [S1]"),
    "with a table": ("A [S1, Table 2]", "A [S1]"),
    "with a page in brackets": ("A [S1 (p. 3)].", "A [S1]."),
    "with pages in brackets": ("A [S1 (p. 3), S2 (p. 4)].", "A [S1][S2]."),
    "with lines": ("A [S1:3-4]", "A [S1]"),
    "a range backwards": ("A [S3-S1]", "A [S3][S2][S1]"),
    "the word document": ("A [Document 1]", "A [S1]"),
    "the word doc in a list": ("A [doc 1, doc 2]", "A [S1][S2]"),
    "the word cite": ("A [cite: S1, S2]", "A [S1][S2]"),
    "curly brackets": ("A {S1}, {S2, S3}", "A [S1], [S2][S3]"),
    "hollow brackets": ("A ⟦S1⟧ b", "A [S1] b"),
    "escaped brackets": (r"A \[S1\], \[S2, p. 3\]", "A [S1], [S2]"),
    "in backticks": ("A [`S1`], [`S2`, `S3`]", "A [S1], [S2][S3]"),
    "a bare number": ("A [1] b [2].", "A [S1] b [S2]."),
    "bare numbers": ("A [1, 2] b", "A [S1][S2] b"),
    "a range of bare numbers": ("A [1-3] b", "A [S1][S2][S3] b"),
    "bare numbers beside each other": ("A [1][2].", "A [S1][S2]."),
    "a bare number at the end of a word and a sentence": ("Abc[1]. D[2]", "Abc[S1]. D[S2]"),
    "a bare number in corner brackets": ("A【1】 b", "A[S1] b"),
    "a bare number with a dagger": ("A 【1†source】", "A [S1]"),
    "a bare footnote": ("A [^1]", "A [S1]"),
    "none: a bare number of no source": ("A [9] b [1, 9].", "A [9] b [1, 9]."),
    "none: a bare number after a label": ("A [S1] in [2].", "A [S1] in [2]."),
    "none: a bare number in code": ("`A [1]`", "`A [1]`"),
    "none: a bare number in round or curly brackets": ("A (1) {2}", "A (1) {2}"),
    "none: a number that a source has here": ("Smith et al. [1] said", "Smith et al. [1] said"),
    "none: a remark that begins like one": ("A (S1: the shop)", "A (S1: the shop)"),
    "none: a variable": ("A {s1}", "A {s1}"),
    "see": ("A (see S3)", "A [S3]"),
    "a blank inside": ("A [S 1] b", "A [S1] b"),
    "at the beginning": ("[S1] says so.", "[S1] says so."),
    "at the end": ("It says so [S1]", "It says so [S1]"),
    "an unknown number": ("a [S9] b", "a b"),
    "an unknown number at the end": ("a [S9].", "a."),
    "unknown and known": ("a [S9, S2].", "a [S2]."),
    "the same one twice": ("a [S1, S1].", "a [S1]."),
    "in a comment of code": ("`pip install x  # [S1]`", "`pip install x  # [S1]`"),
    "in a block of code": ("```\nx = 1  # [S1, S2]\n```", "```\nx = 1  # [S1][S2]\n```"),
    "none: an index in code": ("`a[S1]`", "`a[S1]`"),
    "none: an unknown one in code": ("```\nx [S9]\n```", "```\nx [S9]\n```"),
    "none: a call in code": ("`f(S1)`", "`f(S1)`"),
    "none: an index in prose": ("arr[1] and (see above)", "arr[1] and (see above)"),
    "none: words in brackets": ("(S1 is the best)", "(S1 is the best)"),
    "none: a link": ("[text](http://x.example)", "[text](http://x.example)"),
    "cut off": ("a [S1", "a [S1"),
    "lines": ("x [S1]\n\n- y [S2]\n", "x [S1]\n\n- y [S2]"),
    "white space round it": (" \n A [S1] \n", "A [S1]"),
}


def written(*pieces: str) -> tuple[str, tuple[Mark, ...], int]:
    writer = MarkWriter(KNOWN, ["It was as Smith et al. [1] found."])
    text = "".join(writer.feed(piece) for piece in pieces) + writer.finish()
    return text, tuple(marks_in(text, KNOWN)), writer.unknown


@pytest.mark.parametrize(("text", "expected"), SHAPES.values(), ids=SHAPES.keys())
def test_marks_of_every_shape_come_out_in_one_form(text: str, expected: str) -> None:
    assert written(text)[0] == expected


@pytest.mark.parametrize("text", [text for text, _ in SHAPES.values()], ids=SHAPES.keys())
def test_a_mark_cut_at_any_characters_of_the_stream_is_the_same_mark(text: str) -> None:
    whole = written(text)
    for first in range(len(text) + 1):
        for second in range(first, len(text) + 1):
            assert written(text[:first], text[first:second], text[second:]) == whole
    assert written(*text) == whole


@given(
    pieces=st.lists(st.text(alphabet="[]()【】{}S12 39,-;:.ap§†\\`\n", max_size=6), max_size=12),
)
def test_streamed_and_whole_texts_are_equal(pieces: list[str]) -> None:
    assert written(*pieces) == written("".join(pieces))


@given(text=st.text(alphabet="[]()S12 9,`\n\\x", max_size=40))
def test_every_mark_is_where_it_is_said_to_be(text: str) -> None:
    out, marks, _ = written(text)
    assert [out[mark.at : mark.end] for mark in marks] == [f"[{mark.label}]" for mark in marks]
    assert out == out.strip()


def test_what_cannot_become_a_mark_is_not_held_back() -> None:
    writer = MarkWriter(KNOWN)
    assert writer.feed("Tents are ") == "Tents are"
    assert writer.feed("dry [or") == " dry [or"
    assert writer.feed(" [S1") == ""
    assert writer.feed("] x") == " [S1] x"


def test_unknown_labels_are_counted() -> None:
    assert written("a [S7] b [S1, S8]")[2] == 2
    assert written("a [S2-S5]")[2] == 2


# ------------------------------------------------------------------------------------ the claims


def said(text: str) -> dict[str, list[str]]:
    out, marks, _ = written(text)
    return claims(cited_sentences(out, marks))


def test_a_mark_stands_behind_the_sentence_that_it_is_in_or_after() -> None:
    text = "Tents are returned. They must [S3] be dry [S1][S2]. Stoves are not.[S2] Yes [S3]."
    assert said(text) == {
        "S3": ["They must be dry.", "Yes."],
        "S1": ["They must be dry."],
        "S2": ["They must be dry.", "Stoves are not."],
    }


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[S1] One two.", {"S1": ["One two."]}),
        ("One.\n\n[S1] Two.\n\n[S2] Three.", {"S1": ["Two."], "S2": ["Three."]}),
        ("One [S1].\n[S2] Two.", {"S1": ["One."], "S2": ["Two."]}),
        ("- [S1] One.\n- [S2] Two.", {"S1": ["- One."], "S2": ["- Two."]}),
        ("[S1] One. [S2] Two.", {"S1": ["One."], "S2": ["Two."]}),
        ("[S1] One. [S2] Two [S3].", {"S1": ["One."], "S2": ["One."], "S3": ["Two."]}),
        ("One. [S1] Two.", {"S1": ["One."]}),
        ("One.\n\n[S1]", {"S1": ["One."]}),
        ("One.\n[S1]\nTwo.", {"S1": ["One."]}),
        ("[S1]\nOne.", {"S1": ["One."]}),
        ("[S1] [S2]", {}),
    ],
)
def test_a_mark_that_opens_a_line_stands_before_its_sentence(
    text: str, expected: dict[str, list[str]]
) -> None:
    assert said(text) == expected


def test_an_index_in_code_is_no_citation() -> None:
    assert said("Call `a[S1]` first. Then stop [S2].") == {"S2": ["Then stop."]}


def test_sentences_know_their_paragraph_and_whether_they_are_code() -> None:
    out, marks, _ = written("One. Two [S1].\n\nThree.\n\n```\nfour = 4\n```")
    sentences = cited_sentences(out, marks)
    assert [(s.text, s.paragraph) for s in sentences[:3]] == [
        ("One.", 0),
        ("Two.", 0),
        ("Three.", 1),
    ]
    assert [s.in_code for s in sentences[:3]] == [False] * 3
    assert all(s.in_code for s in sentences[3:])


def test_a_text_without_its_marks_reads_as_if_they_had_never_been() -> None:
    out, marks, _ = written("A tent [S1], if dry [S1][S2]. [S3]")
    assert without_marks(out, marks) == "A tent, if dry."


# ---------------------------------------------------------------------------------- the quote

SOURCE = (
    "Unused items are refunded within 30 days. Used tents give store credit only, within 60 days. "
    "Gift cards are final."
)


def evidence(text: str = SOURCE, label: str = "S1") -> Evidence:
    document = Document(doc_id="d", source="t", address="p", uri="p.md", title="Returns")
    chunk = replace(chunk_of("d", 0, text, section=("Returns", "Used")), pages=(2, 3))
    return Evidence(label=label, chunk=chunk, document=document, text=text)


def test_a_claim_that_is_in_the_source_is_its_own_quote() -> None:
    assert quote(evidence(), ["Gift cards are final."]) == "Gift cards are final."


def test_another_claim_gets_the_sentence_that_shares_its_words() -> None:
    assert quote(evidence(), ["You get credit for a used tent"]).startswith("Used tents give store")


def test_two_claims_near_each_other_are_quoted_together() -> None:
    quoted = quote(evidence(), ["Gift cards are final.", "Unused items: 30 days"])
    assert quoted == SOURCE


def test_claims_in_different_passages_are_not_joined_over_the_gap() -> None:
    source = evidence("First fact here.\n\nSecond fact there.")
    assert quote(source, ["First fact", "Second fact"]) in ("First fact here.", "First fact")


@given(claim=st.text(max_size=60))
def test_a_quote_is_in_the_source_whatever_is_claimed(claim: str) -> None:
    quoted = quote(evidence(), [claim])
    assert quoted and quoted in SOURCE
