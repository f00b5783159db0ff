"""What a model thinks before it answers is no part of the answer, however the stream is cut."""

from __future__ import annotations

import pytest

from quarry.records import AnswerStatus, StopReason
from quarry.text import REFUSAL
from quarry.text.thoughts import ThinkingFilter, without_thoughts
from tests.unit.serve.answering.test_answer import CREDIT, checked

CASES = {
    "thoughts": ("<think>Hm [S1].</think>\n\nYes.", "\n\nYes."),
    "blanks before": ("\n <think>\nHm.\n</think>Yes.", "Yes."),
    "capitals": ("<THINK>Hm.</Think>Yes.", "Yes."),
    "two": ("<think>Hm.</think> <think>So.</think> Yes.", " Yes."),
    "none in them": ("<think></think>Yes.", "Yes."),
    "other tags": ("<thinking>a</think> b</thinking>Yes.", "Yes."),
    "other brackets": ("[THINK]a[/THINK]Yes.", "Yes."),
    "without an end": ("<think>Hm. Yes, Yes.", ""),
    "without a whole end": ("<think>Hm.</thin", ""),
    "none": ("Yes. <think>Hm.</think>", "Yes. <think>Hm.</think>"),
    "none: another tag": ("<thinner> Yes.", "<thinner> Yes."),
    "none: the beginning of one": ("<thi", "<thi"),
    "none: nothing": (" ", " "),
}


def written(*pieces: str) -> str:
    filtered = ThinkingFilter()
    return "".join(filtered.feed(piece) for piece in pieces) + filtered.finish()


@pytest.mark.parametrize(("text", "expected"), CASES.values(), ids=CASES.keys())
def test_thoughts_are_left_out_wherever_the_stream_is_cut(text: str, expected: str) -> None:
    assert written(text) == written(*text) == expected
    for cut in range(len(text) + 1):
        assert written(text[:cut], text[cut:]) == expected


async def test_an_answer_is_checked_without_the_thoughts_before_it() -> None:
    answer = await checked(f"<think>\nPandas eat bamboo all day [S1].\n</think>\n\n{CREDIT}")
    assert (answer.text, answer.doubts) == (CREDIT, ())
    refused = await checked(f"<think>\nTents [S1].\n</think>\n\n{REFUSAL}")
    assert refused.status is AnswerStatus.REFUSED


async def test_thoughts_that_took_all_tokens_are_a_refusal_that_was_cut() -> None:
    answer = await checked(f"<think>{CREDIT}", stop=StopReason.LENGTH)
    assert (answer.status, answer.text, answer.cut) == (AnswerStatus.REFUSED, REFUSAL, True)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        *CASES.values(),
        ("Hm.\n</think>\nYes.", "\nYes."),
        ("Hm.[/THINK]Yes.", "Yes."),
        ("</think>", ""),
    ],
)
def test_of_a_whole_text_thoughts_go_too_that_the_prompt_began(text: str, said: str) -> None:
    assert without_thoughts(text) == said
