"""What a person reads after a search or a question."""

from __future__ import annotations

from typing import Any

import pytest

from quarry.cli.render import answer_lines, pages_text, search_lines

CITATION = {
    "label": "S1",
    "doc_id": "d",
    "uri": "returns.md",
    "title": "Returns",
    "section": "Used outdoors",
    "pages": [3, 4],
    "quote": "Used gear: store credit\x1b[2J only.",
}


def answer(**changes: Any) -> dict[str, Any]:
    return {
        "status": "answered",
        "answer": "Store credit only. [S1]",
        "citations": [CITATION],
        "doubts": [],
        "cut": False,
        "generation": "g1",
        "degraded": [],
        "timings_ms": {"embed": 12.3, "total": 40.0},
        "trace": [],
        **changes,
    }


def result(**changes: Any) -> dict[str, Any]:
    signals = {
        "dense_rank": 1,
        "dense_score": 0.5,
        "lexical_rank": None,
        "lexical_score": None,
        "fused_score": 0.03,
        "rerank_score": None,
    }
    return {
        "rank": 1,
        "chunk_id": "c",
        "doc_id": "d",
        "uri": "returns.md",
        "title": "Returns",
        "section": "",
        "pages": None,
        "text": "word " * 200,
        "score": 0.5,
        "signals": signals,
        **changes,
    }


def found(*results: dict[str, Any], **changes: Any) -> dict[str, Any]:
    return {"results": list(results), "generation": "g1", "degraded": [], "trace": [], **changes}


def test_an_answer_has_its_numbered_sources_with_pages_and_the_time_of_each_stage() -> None:
    text = "\n".join(answer_lines(answer(), 0.04))
    assert text.startswith("Store credit only. [S1]\n")
    assert "[S1] Returns › Used outdoors  pp. 3–4  returns.md" in text
    assert "Answered in 40 ms (embed 12 ms)" in text


def test_sentences_to_doubt_and_a_cut_are_said() -> None:
    plain = "\n".join(answer_lines(answer(), 0.04))
    assert "Check these sentences" not in plain
    assert "cut off" not in plain
    doubts = [
        {"sentence": "In 90\x1b days.", "reason": "numbers", "labels": ["S1"]},
        {"sentence": "Pandas eat bamboo.", "reason": "uncited", "labels": []},
    ]
    text = "\n".join(answer_lines(answer(doubts=doubts, cut=True), 0.04))
    assert "has a number or code that its sources do not have" in text
    assert "“Pandas eat bamboo.”\n    names no source" in text
    assert "The answer was cut off at generator.max_tokens." in text
    assert "\x1b" not in text


def test_nothing_in_an_answer_reaches_the_terminal_as_a_command() -> None:
    hostile = answer(answer="a\x1b[31m", degraded=["re\x1brank"], timings_ms={"x\x1b": 1.0})
    assert "\x1b" not in "\n".join(answer_lines(hostile, 1.0))


def test_a_refusal_shows_no_sources_even_if_it_were_given_some() -> None:
    text = "\n".join(answer_lines(answer(status="refused", answer="No evidence."), 0.04))
    assert "Sources" not in text
    assert "returns.md" not in text
    assert "Refused in" in text


def test_paragraphs_of_an_answer_stay_apart() -> None:
    lines = list(answer_lines(answer(answer="One.\n\nTwo."), 0.04))
    assert lines[:3] == ["One.", "", "Two."]


def test_a_result_says_where_it_is_and_why_it_stands_there() -> None:
    lines = list(search_lines(found(result(section="Used outdoors")), 0.04))
    assert lines[0] == " 1  Returns › Used outdoors  returns.md"
    assert "score 0.500, dense #1" in "\n".join(lines)
    assert "lexical" not in "\n".join(lines)


def test_a_long_passage_is_shortened() -> None:
    passage = [line for line in search_lines(found(result()), 0.04) if "word" in line]
    assert passage[-1].endswith("…")
    assert len("".join(passage)) < 400


@pytest.mark.parametrize(
    ("results", "said"),
    [([], "No results in 40 ms"), ([result()], "1 result in"), ([result()] * 2, "2 results in")],
)
def test_the_last_line_counts(results: list[dict[str, Any]], said: str) -> None:
    assert list(search_lines(found(*results), 0.04))[-1].startswith(said)


def test_a_skipped_stage_is_named() -> None:
    assert "Made without: rerank." in list(search_lines(found(degraded=["rerank"]), 0.04))


@pytest.mark.parametrize(
    ("pages", "text"), [(None, ""), ([], ""), ([2, 2], "p. 2"), ([2, 5], "pp. 2–5")]
)
def test_pages_are_written_as_people_cite_them(pages: list[int] | None, text: str) -> None:
    assert pages_text(pages) == text


@pytest.mark.parametrize(
    ("title", "section", "heading"),
    [
        ("Returns", "Used outdoors", "Returns › Used outdoors"),
        ("Returns", "Returns > Used outdoors", "Returns › Used outdoors"),
        ("Returns FS-1", "Returns > Used", "Returns FS-1 › Used"),
        ("Returns", "Returns and refunds", "Returns and refunds"),
        ("Returns", "", "Returns"),
        ("", "Used > Tents", "Used › Tents"),
    ],
)
def test_a_title_is_not_said_twice(title: str, section: str, heading: str) -> None:
    first, *_ = search_lines(found(result(title=title, section=section)), 0.04)
    assert first == f" 1  {heading}  returns.md"
