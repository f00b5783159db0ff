"""Markdown: what is nested deeply, and pictures that are written into the text."""

from __future__ import annotations

import pytest

from ingest.parsers.markdown import parse_markdown
from quarry.records import DocState, ParsedDocument


def said(document: ParsedDocument) -> list[str]:
    return [word for block in document.blocks for word in block.text.split()]


def nested_list(levels: int) -> str:
    return "\n".join(f"{'  ' * level}- item{level}" for level in range(levels))


@pytest.mark.parametrize(
    ("text", "word"),
    [("> " * 24 + "deep", "deep"), (">" * 150 + "deep", "deep"), (nested_list(60), "item59")],
)
def test_deep_nesting_is_read_as_any_other(text: str, word: str) -> None:
    document = parse_markdown(text)
    assert word in said(document)
    assert (document.state, document.reason) == (DocState.INDEXED, "")


def test_a_list_keeps_every_item_however_deep_and_says_where_its_form_is_lost() -> None:
    document = parse_markdown(nested_list(300))
    assert {f"item{level}" for level in range(300)} <= set(said(document))
    assert document.state is DocState.PARTIAL
    assert "plain text" in document.reason


@pytest.mark.parametrize("mark", [">", "> ", "- ", "1. ", ">- "])
def test_no_number_of_marks_hides_the_text_below_them(mark: str) -> None:
    document = parse_markdown(f"{mark * 20_000}deep\ngoes on\n\nafter\n")
    assert {"deep", "goes", "on", "after"} <= set(said(document))
    assert document.state is DocState.PARTIAL


def test_every_line_of_a_quote_that_is_too_deep_is_kept_without_its_marks() -> None:
    document = parse_markdown("\n".join(f"{'>' * 300} line{n}" for n in range(5)))
    assert said(document) == [f"line{n}" for n in range(5)]


def test_links_inside_links_without_end_keep_their_text() -> None:
    assert "deep" in " ".join(said(parse_markdown("[" * 3_000 + " deep " + "](x)" * 3_000)))


@pytest.mark.parametrize("kind", ["png", "svg+xml"])
@pytest.mark.parametrize(
    "source",
    ["![a chart]({0}) after", "![a chart][i] after\n\n[i]: <{0}>", "a chart {0} after"],
)
def test_a_picture_written_into_the_text_is_not_text(source: str, kind: str) -> None:
    picture = f"data:image/{kind};base64," + "iVBORw0KGgo+/" * 40
    assert said(parse_markdown(source.format(picture))) == ["a", "chart", "after"]
