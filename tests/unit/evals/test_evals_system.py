"""An index in this process as it is measured."""

from __future__ import annotations

import pytest

from evals.running.observe import Variant
from evals.running.system import ann_recall
from quarry.cli.evaluating import system_over
from quarry.errors import StoreUnavailable
from quarry.settings import Settings
from serve.models import LoadedModels
from tests.unit.evals.evals_world import case
from tests.unit.serve.serve_world import OneOf, Scripted, World

CASE = case(question="How many weeks of leave?")


def system(retrieval, **stores):
    writes = {"kind": "openai", "model": "m", "base_url": "http://127.0.0.1:1/v1"}
    settings = Settings.model_validate({"retrieval": retrieval, "generator": writes})
    world = World(settings=settings, generator=Scripted("Tents are green."))
    for number in range(3):
        texts = [f"Leave is {number}{weeks} weeks of leave" for weeks in range(5)]
        world.add(f"document-{number}", *texts)
    world.replace_store(**{name: broken(world) for name, broken in stores.items()})
    models = LoadedModels(
        embedder=world.embedder, reranker=None, generator=world.generator, fallback=None
    )
    return system_over(world.settings, "g1", world.stores, models, world.threads)


@pytest.mark.parametrize(
    "retrieval",
    [
        {},
        {"select": {"one_per_section": True}},
        {"select": {"mmr": 0.5}},
        {"rewrite": {"multi_query": 2, "hyde": True}},
    ],
)
async def test_recall_of_the_index_does_not_depend_on_what_is_chosen_or_rewritten(retrieval):
    found = await ann_recall([CASE], system(retrieval), Variant())
    assert found == {"one": {"ann_recall@10": 1.0}}


async def test_a_search_that_fails_finds_nothing_and_the_others_are_asked():
    def broken(world):
        whole = world.stores.vectors
        answers = iter([StoreUnavailable("down"), None])

        def search(*args, **options):
            if error := next(answers):
                raise error
            return whole.search(*args, **options)

        return OneOf(whole, search=search)

    cases = [CASE, case("two", question=CASE.question)]
    found = await ann_recall(cases, system({}, vectors=broken), Variant())
    assert [each["ann_recall@10"] for each in found.values()] == [0.0, 1.0]
