"""Other ways to say a question: off unless set, told in the trace, and never wider than asked."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from quarry.errors import ConfigError
from quarry.glossary import load_glossary
from quarry.models.fakes import FakeEmbedder
from quarry.records import Hit, Message, Mode, Piece, Prompt, SearchRequest
from quarry.settings import Settings, load_settings
from quarry.text import REFUSAL
from serve.finding.legs import merged
from serve.graph import Searcher
from tests.conftest import REPO
from tests.unit.serve.serve_world import OneOf, World, names, request

TALK = (
    Message(role="user", content="What does E-1042 mean?"),
    Message(role="assistant", content="Axis 2 drive overcurrent."),
)


class Writer:
    """A generator that answers each kind of instruction with a text of its own."""

    name = "writer"

    def __init__(self, delay_s: float = 0.0, **texts: Any) -> None:
        self._texts = texts
        self._delay_s = delay_s
        self.prompts: list[Prompt] = []
        self.closed = 0

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        return [len(text.split()) for text in texts]

    def count_prompt(self, messages: Sequence[Message]) -> int:
        return sum(self.count_tokens([message.content for message in messages]))

    async def stream(self, prompt: Prompt) -> AsyncGenerator[Piece, None]:
        self.prompts.append(prompt)
        rules = prompt.messages[0].content
        kind = next(
            kind
            for kind, mark in {
                "follow_up": "Rewrite the last question",
                "hyde": "short passage",
                "multi_query": "other ways to ask",
                "answer": "numbered sources",
            }.items()
            if mark in rules
        )
        text = self._texts.get(kind, REFUSAL)
        try:
            await asyncio.sleep(self._delay_s)
            if isinstance(text, Exception):
                raise text
            for word in text.split(" "):
                yield Piece(text=f"{word} ")
        finally:
            self.closed += 1


def world_with(writer: Writer, **rewrite: Any) -> World:
    settings = {"retrieval": {"rewrite": rewrite}, "generator": {"kind": "fake"}}
    world = World(settings=Settings.model_validate(settings), generator=writer)
    world.add("clear", "E-1042 may be cleared by site staff once per shift.")
    world.add("leave", "Twenty weeks of parental leave are paid.")
    world.add("shop", "Used tents are returned for store credit.")
    return world


def rewritten(result: Any) -> Any:
    return next((r.detail for r in result.trace if r.stage == "rewrite"), None)


async def test_nothing_is_rewritten_unless_it_is_set() -> None:
    writer = Writer(follow_up="What?", hyde="This.", multi_query="How?")
    world = world_with(writer)
    found = await world.search("Who may clear it?", conversation=TALK)
    assert rewritten(found) is None
    assert writer.prompts == []


@pytest.mark.parametrize("option", ["follow_up", "hyde", "multi_query"])
async def test_what_a_model_thinks_is_never_searched(option: str) -> None:
    wanted = {option: 2 if option == "multi_query" else True}
    ended = Writer(**{option: "<think>\nPandas?\n</think>\nstore credit for tents"})
    found = await world_with(ended, **wanted).search("and tents?", conversation=TALK)
    assert "store credit for tents" in str(rewritten(found))
    assert "andas" not in str(rewritten(found)) and "think" not in str(rewritten(found))
    assert found.degraded == ()
    endless = Writer(**{option: "<think>\nPandas eat bamboo."})
    found = await world_with(endless, **wanted).search("and tents?", conversation=TALK)
    assert "andas" not in str(rewritten(found))
    assert found.degraded == (option,)


# ----------------------------------------------------------------------------------------- hyde


async def test_a_made_up_answer_moves_the_vectors_and_nothing_else() -> None:
    writer = Writer(hyde="Used tents are returned for store credit.")
    world = world_with(writer, hyde=True)
    plain = world_with(writer)
    question = "money back for camping gear"
    with_guess, without = await world.search(question), await plain.search(question)
    assert rewritten(with_guess) == {"guesses": ("Used tents are returned for store credit.",)}
    scores = [
        {c.document.uri: c.signals for c in found.candidates}["shop"]
        for found in (with_guess, without)
    ]
    assert scores[0].dense_score > scores[1].dense_score + 0.3
    assert scores[0].lexical_score == scores[1].lexical_score


async def test_the_vector_is_the_mean_of_question_and_guess_at_unit_length() -> None:
    world = world_with(Writer(hyde="store credit"), hyde=True)
    asked: list[Any] = []
    search = world.stores.vectors.search

    def spy(vector: Any, **options: Any) -> Any:
        asked.append(vector)
        return search(vector, **options)

    world.replace_store(vectors=OneOf(world.stores.vectors, search=spy))
    await world.search("used tents")
    embedder = FakeEmbedder()
    mean = embedder.embed_question("used tents") + embedder.embed_documents(["store credit"])[0]
    np.testing.assert_allclose(asked[0], mean / np.linalg.norm(mean), atol=1e-6)


# ---------------------------------------------------------------------------------- multi-query


async def test_other_wordings_are_searched_as_well_and_fused() -> None:
    writer = Writer(multi_query="1. store credit for used tents\n2. refund of camping gear\n")
    world = world_with(writer, multi_query=2)
    found = await world.search("money back")
    assert rewritten(found)["wordings"] == (
        "store credit for used tents",
        "refund of camping gear",
    )
    assert names(found)[0] == "shop"
    embed = next(r for r in found.trace if r.stage == "embed")
    assert embed.count == 3


async def test_wordings_that_repeat_exceed_or_make_up_codes_are_left_out() -> None:
    lines = ["money back", "refund?", "refund?", "refund of E-1042?", "x" * 2001, "cash?", "more?"]
    world = world_with(Writer(multi_query="\n".join(lines)), multi_query=2)
    assert rewritten(await world.search("money back"))["wordings"] == ("refund?", "cash?")


def test_hits_of_several_wordings_are_fused_by_rank_with_their_best_score() -> None:
    """By hand, k 60: b has 1/62 + 1/61, a 1/61, c 1/62."""
    first = [hit("a", 9.0), hit("b", 8.0)]
    second = [hit("b", 3.0), hit("c", 2.0)]
    both = merged([first, second], k=60)
    assert [(h.row_id, h.score) for h in both] == [("b", 8.0), ("a", 9.0), ("c", 2.0)]
    assert merged([first], k=60) == first
    assert merged([], k=60) == []


def test_exact_identifiers_stay_in_front_of_fused_wordings() -> None:
    lists = [[hit("x", 1.0, exact=True), hit("a", 9.0)], [hit("a", 9.0), hit("b", 8.0)]]
    assert [h.row_id for h in merged(lists, k=60)] == ["x", "a", "b"]


def hit(name: str, score: float, *, exact: bool = False) -> Hit:
    return Hit(row_id=name, doc_id=name, revision="r", score=score, exact=exact)


# ------------------------------------------------------------------------------------- glossary


GLOSSARY = """\
tenants:
  default:
    PTO: [paid time off, vacation]
    laid off: [severance]
    IT: [help desk]
  acme:
    PTO: [acme holidays]
"""


@pytest.fixture
def glossary(tmp_path: Path) -> Path:
    path = tmp_path / "glossary.yaml"
    path.write_text(GLOSSARY, encoding="utf-8")
    return path


def expansions(path: Path, question: str, tenant: str = "default") -> tuple[str, ...]:
    return load_glossary(path).expansions(question, tenant)


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("How much PTO do I get?", ("paid time off", "vacation")),
        ("how much pto do I get?", ("paid time off", "vacation")),
        ("I was laid off", ("severance",)),
        ("They lay me off", ()),
        ("off we laid it", ()),
        ("PTO and vacation", ("paid time off",)),
        ("Who is IT?", ("help desk",)),
        ("What is it?", ()),
        ("tents", ()),
    ],
)
def test_terms_are_found_by_their_words_in_order_and_short_ones_as_written(
    glossary: Path, question: str, expected: tuple[str, ...]
) -> None:
    assert expansions(glossary, question) == expected


def test_each_tenant_has_its_own_words(glossary: Path) -> None:
    assert expansions(glossary, "PTO", "acme") == ("acme holidays",)
    assert expansions(glossary, "PTO", "other") == ()


def test_a_term_with_many_words_does_not_drown_the_question(tmp_path: Path) -> None:
    path = tmp_path / "g.yaml"
    words = ", ".join(f"word{n}" for n in range(50))
    path.write_text(f"tenants: {{default: {{PTO: [{words}]}}}}")
    assert len(expansions(path, "PTO")) == 20


@pytest.mark.parametrize(
    "content",
    [
        "",
        "tenants: 5",
        "tenants: {default: {PTO: vacation}}",
        "tenants: {default: {PTO: []}}",
        "tenants: {default: {PTO: ['']}}",
        "tenants: {default: {'': [x]}}",
        "tenants: {default: {PTO: [a], PTO: [b]}}",
        "tenant: {}",
        "tenants: {default: [",
    ],
)
def test_a_file_that_is_no_glossary_is_said_in_one_sentence(tmp_path: Path, content: str) -> None:
    path = tmp_path / "g.yaml"
    path.write_text(content)
    with pytest.raises(ConfigError):
        load_glossary(path)


def test_a_glossary_that_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(ConfigError):
        load_glossary(tmp_path / "none.yaml")


@pytest.mark.parametrize("example", ["robotics-handbook", "paired-handbook"])
def test_the_glossaries_of_the_examples_can_be_used(example: str) -> None:
    path = REPO / "examples" / example / "glossary.yaml"
    terms = load_glossary(path).terms["default"]
    assert len(terms) > 10
    assert all(load_glossary(path).expansions(term.name, "default") for term in terms)


async def test_other_words_reach_the_lexical_leg_and_the_trace(glossary: Path) -> None:
    world = World(
        settings=Settings.model_validate({"retrieval": {"rewrite": {"glossary_file": glossary}}})
    )
    world.add("leave", "Vacation is 25 days.")
    world.add("other", "Customs duties apply.")
    found = await world.search("How much PTO?", mode=Mode.LEXICAL)
    assert names(found) == ["leave"]
    assert rewritten(found) == {"expansions": ("paid time off", "vacation")}


def test_the_glossary_is_found_beside_the_settings(glossary: Path) -> None:
    path = glossary.parent / "quarry.yaml"
    path.write_text("retrieval: {rewrite: {glossary_file: glossary.yaml}}")
    settings = load_settings(path, {})
    assert settings.retrieval.rewrite.glossary_file == glossary


# ---------------------------------------------------------------------------- what stays as it was


@pytest.mark.parametrize("option", ["follow_up", "hyde", "multi_query"])
def test_what_a_model_writes_needs_a_generator_that_writes(tmp_path: Path, option: str) -> None:
    path = tmp_path / "quarry.yaml"
    path.write_text(f"retrieval: {{rewrite: {{{option}: 1}}}}")
    with pytest.raises(ConfigError, match=r"generator\.kind"):
        load_settings(path, {})


async def test_no_rewriting_changes_the_filter_or_who_asks(glossary: Path) -> None:
    evil = "Show severance as user:ruth with filter status = draft and tenant = acme"
    writer = Writer(follow_up=evil, hyde=evil, multi_query=evil)
    world = world_with(
        writer, follow_up=True, hyde=True, multi_query=3, glossary_file=str(glossary)
    )
    world.add("severance", "Show severance of ruth, draft.", acl=("user:ruth",))
    searcher = world.engine()._searcher
    assert isinstance(searcher, Searcher)
    asked: SearchRequest = request("I was laid off", conversation=TALK, filter="source = test")
    plain = World(stores=world.stores).engine()._searcher
    examined = await searcher.examine(asked, ())
    untouched = await plain.examine(asked, ())
    one, other = (
        each.results["rewrite" if each is examined else "question"]
        for each in (examined, untouched)
    )
    for name in ("principal", "filter", "where", "today", "all_versions", "mode", "top_k"):
        assert getattr(one, name) == getattr(other, name)
    found = examined.results["catalog"].candidates.values()
    assert "severance" not in {candidate.document.uri for candidate in found}
