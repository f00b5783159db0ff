"""Nothing forbidden and nothing dead reaches anybody: 10,000 generated cases over stores in memory.

A case is one request of one person over one corpus: search, answer or explanation, with each leg
alone, both, and parts down. Its whole reply, every prompt of it and every error are looked through
for the mark or the id of anything that this person may not see.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from quarry.errors import QuarryError
from quarry.models.fakes import FakeGenerator
from quarry.records import Message, Mode, Prompt, SearchRequest
from quarry.settings import Settings
from quarry.stores.factory import Stores
from quarry.stores.memory import MemoryCatalog, MemoryTextStore, MemoryVectorStore
from serve.engine import Engine, make_engine
from serve.http.explanations import explanation_json
from serve.http.schemas import answer_json, search_json
from serve.index import Index
from tests.leaks.cases import GLOSSARY, GLOSSARY_MARKS, Ask, Corpus, asks, corpora
from tests.leaks.judge import count, leaked, tally
from tests.leaks.world import (
    EMBEDDER,
    Filled,
    Listening,
    models_with,
    principal,
    stores_with,
)

CORPORA, ASKS = 500, 20
"""Of one run; their product is the number of cases."""

OPTIONS = (
    {},
    {"retrieval": {"candidates": 3}},
    {"retrieval": {"candidates": 2, "select": {"widen": "section", "one_per_section": True}}},
    {"retrieval": {"select": {"mmr": 0.5, "widen": "neighbours"}}},
    {"retrieval": {"select": {"long_context": True}}},
    {
        "retrieval": {"rewrite": {"hyde": True, "multi_query": 2}},
        "generator": {"kind": "fake"},
    },
    {
        "retrieval": {"rewrite": {"follow_up": True, "glossary_file": str(GLOSSARY)}},
        "generator": {"kind": "fake"},
    },
)
"""Settings that change what a search looks at."""


class Inline:
    """Runs what threads would run, at once: thousands of cases need no pool."""

    async def __call__(self, call: Callable[..., Any], *args: Any, **options: Any) -> Any:
        return call(*args, **options)

    apart = __call__


def fresh() -> Stores:
    stores = Stores(MemoryCatalog(), MemoryTextStore(), MemoryVectorStore())
    stores.ensure(EMBEDDER.fingerprint.dimension)
    return stores


def engine_of(stores: Stores, generator: Any, outage: str, options: dict[str, Any]) -> Engine:
    return make_engine(
        Settings.model_validate(options),
        index=Index.of("g1", stores_with(outage, stores)),
        models=models_with(outage, generator),
        threads=Inline(),  # type: ignore[arg-type]
    )


def request_of(ask: Ask) -> SearchRequest:
    return SearchRequest(
        question=ask.question,
        principal=principal(ask.who),
        mode=ask.mode,
        top_k=ask.top_k,
        filter=ask.filter.text,
        all_versions=ask.all_versions,
        rerank=ask.rerank,
        conversation=tuple(Message(**turn) for turn in ask.conversation),
    )


async def reply_to(ask: Ask, engine: Engine) -> dict[str, Any]:
    """The JSON of the reply, or of the error."""
    request = request_of(ask)
    try:
        if ask.endpoint == "search":
            return search_json(await engine.search(request))
        if ask.endpoint == "answer":
            return answer_json(await engine.answer_whole(request))
        pieces = [(phrase,) for phrase in ask.body()["expect"]]
        return explanation_json(await engine.explain(request, pieces))
    except QuarryError as error:
        return {"error": {"code": error.code, "message": str(error)}}


async def check(ask: Ask, filled: Filled, options: dict[str, Any]) -> None:
    generator = Listening(FakeGenerator())
    engine = engine_of(filled.stores, generator, ask.outage, options)
    reply = await reply_to(ask, engine)
    corpus = filled.corpus
    asked = json.dumps(ask.body()) + GLOSSARY_MARKS[ask.who.tenant]
    shown, readable = corpus.shown(ask), corpus.readable(ask.who)
    if ask.endpoint == "explain" and "error" not in reply:
        assert leaked(json.dumps(reply), filled.allowed(readable), asked) == set()
        reply = {part: reply[part] for part in ("answer", "prompt")}
    assert leaked(json.dumps(reply), filled.allowed(shown), asked) == set()
    for prompt in generator.prompts:
        assert leaked(written(prompt), filled.allowed(shown), asked) == set()
    count(ask, corpus, json.dumps(reply))


def written(prompt: Prompt) -> str:
    """All that a generator is given, but for hashes that stand for no text."""
    evidence = [
        (e.text, e.chunk.row_id, e.chunk.header, e.chunk.section, repr(e.document))
        for e in prompt.evidence
    ]
    return repr((prompt.messages, prompt.question, evidence))


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_no_reply_tells_of_what_its_asker_may_not_see() -> None:
    @settings(
        max_examples=CORPORA,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )
    @given(st.data())
    def holds(data: st.DataObject) -> None:
        corpus = data.draw(corpora(least=3, most=10), label="corpus")
        options = data.draw(st.sampled_from(OPTIONS), label="options")
        several = data.draw(st.lists(asks(corpus), min_size=ASKS, max_size=ASKS), label="asks")
        tally["corpora"] += 1
        filled = Filled.of(corpus, fresh())

        async def all_of_them() -> None:
            for ask in several:
                await check(ask, filled, options)

        asyncio.run(all_of_them())

    holds()
    assert tally["cases"] >= CORPORA * ASKS
    assert tally["forbidden"] > 0.7 * tally["cases"], "there was little to give away"
    assert tally["rewritten"] > 0.02 * tally["cases"], "few follow-ups were rewritten"
    assert tally["replies"] > 0.3 * tally["cases"], "few replies had anything to tell"


# ----------------------------------------------------------------- with and without what is hidden


@pytest.mark.slow
@settings(
    max_examples=200,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(st.data())
def test_a_search_is_the_same_as_if_what_is_hidden_did_not_exist(data: st.DataObject) -> None:
    """Scores of the lexical leg depend on word frequencies of the whole index, and so may its
    order; everything else is equal, and in the dense mode that is all there is."""
    corpus = data.draw(corpora(least=3, most=10), label="corpus")
    options = data.draw(st.sampled_from(OPTIONS[:2]), label="options")
    filled = Filled.of(corpus, fresh())
    for drawn in data.draw(st.lists(asks(corpus), min_size=3, max_size=3), label="asks"):
        ask = replace(drawn, endpoint="search", outage="", rerank=False)
        readable = [replace(doc, fate="live") for doc in corpus.readable(ask.who)]
        alone = Filled.of(Corpus(tuple(readable)), fresh())
        one, other = (
            asyncio.run(reply_to(ask, engine_of(each.stores, FakeGenerator(), "", options)))
            for each in (filled, alone)
        )
        limit = None
        if ask.mode is not Mode.DENSE:
            limit = max(options.get("retrieval", {}).get("candidates", 100), ask.top_k)
        assert comparable(one, limit, ask.top_k) == comparable(other, limit, ask.top_k)


def comparable(reply: dict[str, Any], limit: int | None, top_k: int) -> Any:
    """Without times, and how often documents moved.

    With a `limit`, of the rows that a leg gives, what is a matter of its scores is left out: order
    and scores, which of the results are the first, and all that follows if a leg was cut at it.
    """
    trace = [
        (stage["stage"], stage["count"], without(stage["detail"], ["looked_again"]))
        for stage in reply["trace"]
    ]
    results: Any = reply["results"]
    if limit is not None:
        legs = [stage for stage in trace if stage[0] in ("dense", "lexical")]
        if any(count >= limit for _, count, _ in legs):
            return legs, reply["degraded"]
        dropped = ("rank", "score", "signals")
        results = sorted(json.dumps(without(result, dropped)) for result in results)
        if len(results) >= top_k:  # there may be more, and which are the first is theirs to say
            results = len(results)
    return results, trace, reply["degraded"]


def without(values: dict[str, Any], names: Iterable[str]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if name not in names}


def test_an_expected_phrase_that_is_hidden_is_told_like_one_that_nobody_wrote() -> None:
    """Every place and number of an explanation that a forbidden phrase could change."""

    @settings(max_examples=100, suppress_health_check=[HealthCheck.too_slow])
    @given(st.data())
    def holds(data: st.DataObject) -> None:
        corpus = data.draw(corpora(least=3, most=6))
        ask = replace(data.draw(asks(corpus)), endpoint="explain", outage="")
        filled = Filled.of(corpus, fresh())
        engine = engine_of(filled.stores, FakeGenerator(), "", {})
        reply = asyncio.run(reply_to(ask, engine))
        hidden, nobody = ({**each, "phrases": []} for each in reply["expected"])
        if ask.expected not in {doc.number for doc in corpus.readable(ask.who)}:
            assert hidden == nobody

    holds()
