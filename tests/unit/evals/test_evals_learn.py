"""Learning weights of signals: what is learned, from what, and what it is worth elsewhere."""

from __future__ import annotations

import random

import pytest

from evals.compare import Difference
from evals.improving.learn import FEWEST, against, learn, lowers, pool_of, pools, reordered
from evals.running.observe import Variant
from quarry.errors import UsageError
from quarry.fusion import FEATURES, Fusion
from tests.unit.evals.evals_world import System, case

FLAT = dict.fromkeys(FEATURES, 0.0)


def result(name, text="x", **signals):
    blank = dict.fromkeys(
        ("dense_rank", "dense_score", "lexical_rank", "lexical_score", "fused_score")
    )
    return {
        "uri": name,
        "doc_id": name,
        "title": "",
        "section": "",
        "text": text,
        "signals": blank | {"rerank_score": 0.0} | signals,
    }


def question(number, *, signal="lexical_score", noise="dense_score"):
    """Ten results of which one is right: the one that `signal` puts first; `noise` says nothing."""
    rng = random.Random(number)
    right = rng.randrange(10)
    results = [
        result(f"d{n}", **{signal: 9.0 if n == right else rng.random(), noise: rng.random()})
        for n in range(10)
    ]
    return pool_of(case(f"q{number}", relevant={f"d{right}": 1}), results)


MANY = [question(number) for number in range(40)]


def test_the_signal_that_tells_gets_the_weight_and_helps_on_unseen_questions():
    learned = learn(MANY, ["set"])
    assert max(learned.fusion.weights, key=learned.fusion.weights.__getitem__) == "lexical"
    found = learned.unseen["nDCG@10"]
    assert found.cases == 40 and found.second == 1.0 > found.first
    assert learned.sentence.startswith("It helps") and learned.fusion.learned_from == "set"


def test_what_is_reported_was_ranked_by_weights_that_had_not_seen_the_question():
    """Labels without any rule can be learned by heart, and must not look learned."""
    noise = [question(number, signal="dense_score", noise="lexical_score") for number in range(40)]
    rng = random.Random(1)
    for number, pool in enumerate(noise):
        right = rng.randrange(10)
        relevant = case(f"q{number}", relevant={f"d{right}": 1})
        results = [result(item.doc_id, dense_score=rng.random()) for item in pool.items]
        noise[number] = pool_of(relevant, results)
    found = learn(noise, ["noise"]).unseen["nDCG@10"]
    assert found.low < 0 < found.high


def test_weights_that_harm_another_set_are_told():
    other = [question(number, signal="dense_score", noise="lexical_score") for number in range(40)]
    harmful = Fusion(weights=FLAT | {"lexical": 1.0, "dense": -1.0})
    good = [pool_of(pool.case, _best_first(pool)) for pool in other]
    assert "would LOWER" in lowers(against(good, harmful), "other")
    assert "does not lower" in lowers(against(good, Fusion(weights=FLAT)), "other")
    assert "helps" in lowers(against(other, Fusion(weights=FLAT | {"dense": 1.0})), "other")


@pytest.mark.parametrize(
    ("low", "high", "told"),
    [
        (-0.08, 0.08, "this set cannot tell"),
        (-0.02, 0.001, "this set cannot tell"),
        (-0.009, 0.08, "does not lower the ranking by more than 0.01"),
        (0.001, 0.08, "It helps"),
        (-0.08, -0.001, "would LOWER"),
        (None, None, "Nobody can tell from so few questions"),
    ],
)
def test_weights_do_not_lower_a_ranking_only_where_the_interval_leaves_out_a_loss(low, high, told):
    found = Difference(
        cases=20, first=0.5, second=0.5004, low=low, high=high, better=5, worse=5, p=1.0
    )
    assert told in lowers({"nDCG@10": found}, "other")


def _best_first(pool):
    order = sorted(range(10), key=lambda n: not pool.right[n])
    return [
        result(pool.items[n].doc_id, dense_score=1.0 if pool.right[n] else 0.1, lexical_score=0.5)
        for n in order
    ]


def test_only_what_was_reranked_is_reordered_and_the_rest_stays_behind():
    results = [
        result("a", dense_score=0.1),
        result("b", dense_score=0.9),
        result("c", dense_score=1.0, rerank_score=None),
    ]
    pool = pool_of(case(relevant={"b": 1}), results)
    by_dense = Fusion(weights=FLAT | {"dense": 1.0})
    assert [each.document for each in reordered(pool, by_dense)] == ["b", "a", "c"]


def test_too_few_questions_teach_nothing():
    with pytest.raises(UsageError, match=f"{FEWEST} are the least"):
        learn(MANY[: FEWEST - 1], ["set"])


def test_documents_that_no_asker_may_read_are_told():
    with pytest.raises(UsageError, match="default_acl"):
        learn([pool_of(case(relevant={"a": 1}), [])] * FEWEST, ["set"])


def test_of_a_judged_document_only_the_best_passage_is_learned_from():
    pool = pool_of(case(relevant={"a": 1}), [result("a"), result("a"), result("b"), result("a")])
    assert list(pool.right) == [True, True, False, True]
    assert list(pool.teaches) == [True, False, True, False]
    assert all(pool_of(case(), [result("a"), result("a")]).teaches)


def test_evidence_marks_right_passages_too():
    pool = pool_of(case(), [result("a", "it is THIS"), result("b", "no")])
    assert list(pool.right) == [True, False]


async def test_judged_cases_are_searched_once_each_as_deep_as_can_be():
    ask = System(search={"What is it?": {"results": [result("a", "it is this")]}})
    told = []
    wanted = [case("one"), case("two", evidence=[], must=["x"])]
    found = await pools(wanted, ask, Variant(), lambda *step: told.append(step))
    assert [pool.case.id for pool in found] == ["one"] and told == [(1, 1)]
    assert ask.asked[0][1]["top_k"] == 100
