"""Citations in every shape that models write, quotes, and what counts as a refusal."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quarry.records import AnswerStatus, Document, Evidence, Piece, StopReason
from quarry.text import REFUSAL
from serve.answer import Checked, check
from serve.citations import MarkWriter, claims, quote
from serve.generate import Delta, Written
from serve.graph import Final
from tests.unit.serve_world import Scripted, World, chunk_of, request

KNOWN = ("S1", "S2", "S3")
SHAPES = {
    "one": ("A b [S1].", "A b [S1]."),
    "a list": ("A [S1, S2] c", "A [S1][S2] c"),
    "a list with semicolon and small letter": ("A [s1; S3]", "A [S1][S3]"),
    "beside each other": ("A [S1][S3].", "A [S1][S3]."),
    "words between": ("A (S1 and S2).", "A [S1][S2]."),
    "a range": ("A [S1-S3] b", "A [S1][S2][S3] b"),
    "a range with a long dash": ("A [S1–3] b", "A [S1][S2][S3] b"),
    "nested": ("[[S1]] x", "[S1] x"),
    "corner brackets": ("A 【S2】", "A [S2]"),
    "full-width brackets": ("A ［S2］", "A [S2]"),
    "the word source": ("A [Source S1] b", "A [S1] b"),
    "a blank inside": ("A [S 1] b", "A [S1] b"),
    "an unknown number": ("a [S9] b", "a b"),
    "an unknown number at the end": ("a [S9].", "a."),
    "unknown and known": ("a [S9, S2].", "a [S2]."),
    "none: an index in code": ("arr[1] and (see above)", "arr[1] and (see above)"),
    "none: a link": ("[text](http://x.example)", "[text](http://x.example)"),
    "cut off": ("a [S1", "a [S1"),
    "lines": ("x [S1]\n\n- y [S2]\n", "x [S1]\n\n- y [S2]\n"),
}


def written(text: str) -> str:
    writer = MarkWriter(KNOWN)
    return writer.feed(text) + writer.finish()


@pytest.mark.parametrize(("text", "expected"), SHAPES.values(), ids=SHAPES.keys())
def test_marks_of_every_shape_come_out_in_one_form(text: str, expected: str) -> None:
    assert written(text) == expected


@pytest.mark.parametrize("text", [text for text, _ in SHAPES.values()], ids=SHAPES.keys())
def test_a_mark_cut_at_any_character_of_the_stream_is_the_same_mark(text: str) -> None:
    for cut in range(len(text) + 1):
        writer = MarkWriter(KNOWN)
        assert writer.feed(text[:cut]) + writer.feed(text[cut:]) + writer.finish() == written(text)


@given(
    pieces=st.lists(st.text(alphabet="[]()【】S12 39,-;.ab \n", max_size=6), max_size=12),
)
def test_streamed_and_whole_texts_are_equal(pieces: list[str]) -> None:
    writer = MarkWriter(KNOWN)
    streamed = "".join(writer.feed(piece) for piece in pieces) + writer.finish()
    assert streamed == written("".join(pieces))


def test_what_cannot_become_a_mark_is_not_held_back() -> None:
    writer = MarkWriter(KNOWN)
    assert writer.feed("Tents are ") == "Tents are"
    assert writer.feed("dry [or") == " dry [or"
    assert writer.feed(" [S1") == ""
    assert writer.feed("] x") == " [S1] x"


def test_unknown_labels_are_counted() -> None:
    writer = MarkWriter(KNOWN)
    writer.feed("a [S7] b [S1, S8]")
    writer.finish()
    assert writer.unknown == 2


def test_a_mark_stands_behind_the_sentence_before_it() -> None:
    text = "Tents are returned. They must be dry [S1][S2]. Stoves are not.[S2] Yes [S3]."
    assert claims(text) == {
        "S1": ["They must be dry"],
        "S2": ["They must be dry", "Stoves are not."],
        "S3": ["Yes"],
    }


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


# ---------------------------------------------------------------------------------- the answer


def checked(text: str) -> Checked:
    last = Piece(stop=StopReason.END)
    return check(Written(text=text, last=last, unknown_citations=0), [evidence()])[0]


def test_an_answer_carries_its_citations_with_all_that_a_reader_needs() -> None:
    answer = checked("Store credit only [S1].")
    assert answer.status is AnswerStatus.ANSWERED
    citation = answer.citations[0]
    assert (citation.label, citation.uri, citation.title) == ("S1", "p.md", "Returns")
    assert (citation.section, citation.pages) == ("Returns > Used", (2, 3))
    assert citation.quote in SOURCE


@pytest.mark.parametrize(
    "text",
    [REFUSAL, f" {REFUSAL}\n", f"{REFUSAL} [S1]", "Tents are great.", "", "See [1]."],
    ids=["exact", "blanks", "cited", "uncited", "nothing", "no such mark"],
)
def test_a_refusal_or_an_uncited_text_is_refused_exactly(text: str) -> None:
    answer = checked(text)
    assert (answer.status, answer.text, answer.citations) == (AnswerStatus.REFUSED, REFUSAL, ())


async def test_streamed_and_whole_answers_are_equal() -> None:
    world = World()
    world.add("page", "Used tents are returned for store credit.")
    for generator in (
        Scripted("Store ", "credit", " [S", "1, S9", "] only."),
        Scripted("Store credit [S1] only."),
    ):
        world.generator = generator
        events = [event async for event in world.engine().answer(request("used tents"))]
        final = events[-1]
        assert isinstance(final, Final)
        shown = "".join(event.text for event in events if isinstance(event, Delta))
        assert shown == final.answer.text == "Store credit [S1] only."
        whole = await world.ask("used tents")
        assert (whole.text, whole.citations) == (final.answer.text, final.answer.citations)


async def test_an_answer_cut_by_the_token_limit_says_so_in_its_trace() -> None:
    world = World()
    world.add("page", "Used tents are returned for store credit.")

    class Cut(Scripted):
        async def stream(self, prompt):  # type: ignore[no-untyped-def]
            yield Piece(text="Store credit [S1]")
            yield Piece(stop=StopReason.LENGTH, prompt_tokens=9, completion_tokens=4)

    world.generator = Cut()
    answer = await world.ask("used tents")
    record = next(record for record in answer.trace if record.stage == "generate")
    assert record.detail["stop"] == "length"
    assert (record.detail["prompt_tokens"], record.count) == (9, 4)
