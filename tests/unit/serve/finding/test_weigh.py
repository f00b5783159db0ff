"""Learned weights decide the order of what was reranked, and nothing else."""

from __future__ import annotations

import pytest

from quarry.errors import ConfigError
from quarry.fusion import FEATURES, Fusion, save_fusion
from quarry.models.fakes import FakeReranker
from quarry.settings import Settings
from serve.extras import load_extras
from tests.unit.serve.serve_world import World, names

FLAT = dict.fromkeys(FEATURES, 0.0)


def world(tmp_path, weights, depth=50):
    path = tmp_path / "fusion.json"
    save_fusion(Fusion(weights=FLAT | weights), path, {})
    settings = Settings.model_validate(
        {
            "retrieval": {"fusion_file": str(path)},
            "reranker": {"kind": "fake", "depth": depth},
        }
    )
    made = World(settings=settings, reranker=FakeReranker())
    made.add("words", "leave leave leave leave", title="a")
    made.add("title", "something about leave", title="parental leave in Canada")
    made.add("other", "nothing of the kind", title="b")
    return made


async def test_the_weights_decide_the_order(tmp_path):
    by_title = world(tmp_path, {"title": 5.0})
    assert names(await by_title.search("parental leave Canada"))[0] == "title"
    against = world(tmp_path, {"title": -5.0})
    assert names(await against.search("parental leave Canada"))[-1] == "title"


async def test_what_was_not_reranked_stays_behind(tmp_path):
    plain = World(settings=Settings(), reranker=None)
    made = world(tmp_path, {"title": 5.0}, depth=1)
    plain.stores = made.stores
    fused = names(await plain.search("leave"))
    assert names(await made.search("leave")) == fused


async def test_a_passage_with_the_exact_code_stays_in_front(tmp_path):
    made = world(tmp_path, {"title": 5.0})
    made.add("code", "E-1042 is a fault.", title="z")
    assert names(await made.search("parental leave Canada E-1042"))[0] == "code"


async def test_a_search_without_reranking_does_not_weigh(tmp_path):
    question = "parental leave Canada"
    made = []
    for number, weight in enumerate((5.0, -5.0)):
        folder = tmp_path / str(number)
        folder.mkdir()
        made.append(world(folder, {"title": weight}))
    one, other = made
    assert names(await one.search(question)) != names(await other.search(question))
    plain = [names(await each.search(question, rerank=False)) for each in made]
    assert plain[0] == plain[1]


def test_weights_without_a_reranker_are_an_error(tmp_path):
    settings = world(tmp_path, {}).settings
    off = settings.reranker.model_copy(update={"kind": "none"})
    with pytest.raises(ConfigError, match="fusion_file"):
        load_extras(settings.model_copy(update={"reranker": off}))
    assert load_extras(settings).fusion is not None
