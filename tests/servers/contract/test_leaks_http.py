"""Nothing forbidden and nothing dead over HTTP: 500 generated cases on Elasticsearch and Milvus.

The cases, people and corpora are those of `tests/leaks`; the app is the one that `quarry serve`
runs, with stores that are real, and models without weights.
"""

from __future__ import annotations

import asyncio
import json
from itertools import count
from typing import Any

import httpx
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from quarry.access.principals import Users
from quarry.models.fakes import FakeGenerator
from quarry.records import Principal
from quarry.settings import Settings
from quarry.settings_stores import ElasticsearchSettings, MilvusSettings
from quarry.stores.factory import Stores, open_stores
from serve.engine import make_engine
from serve.http.app import create_app
from serve.http.sign_in import SignIn
from serve.index import Index
from serve.stage import Threads
from tests.leaks.cases import TENANTS, Ask, asks, corpora
from tests.leaks.judge import count as counted
from tests.leaks.judge import leaked, tally, told
from tests.leaks.world import EMBEDDER, Filled, Listening, models_with, stores_with

CORPORA, ASKS = 4, 125
LOCAL = "local-token"
PEOPLE = Users(
    principals={name: Principal(user=name, tenant=TENANTS[name]) for name in TENANTS if name},
    hashes={},
)


@pytest.fixture
def cluster(
    elasticsearch_settings: ElasticsearchSettings, milvus_settings: MilvusSettings
) -> Settings:
    return Settings.model_validate(
        {
            "profile": "cluster",
            "stores": {"elasticsearch": elasticsearch_settings, "milvus": milvus_settings},
            "retrieval": {"candidates": 20},
        }
    )


def app_of(stores: Stores, cluster: Settings, outage: str, generator: Any) -> Any:
    engine = make_engine(
        cluster,
        index=Index.of("g1", stores_with(outage, stores)),
        models=models_with(outage, generator),
        threads=Threads(8),
    )
    return create_app(engine, cluster, sign_in=SignIn(lambda: PEOPLE, local_token=LOCAL))


async def check(ask: Ask, filled: Filled, cluster: Settings) -> None:
    generator = Listening(FakeGenerator())
    app = app_of(filled.stores, cluster, ask.outage, generator)
    transport = httpx.ASGITransport(app=app, raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://quarry") as client:
        response = await client.post(
            f"/v1/{ask.endpoint}",
            json=ask.body(),
            headers={"Authorization": f"Bearer {LOCAL}"},
        )
        metrics = (await client.get("/metrics")).text
    corpus, asked = filled.corpus, json.dumps(ask.body())
    shown = filled.allowed(corpus.shown(ask))
    counted(ask, corpus, response.text)
    assert told(metrics) == set()
    if response.is_error:
        assert response.status_code == 503
        assert told(response.text) == set()
        return
    reply = response.json()
    if ask.endpoint == "explain":
        readable = filled.allowed(corpus.readable(ask.who))
        assert leaked(response.text, readable, asked) == set()
        reply = {part: reply[part] for part in ("answer", "prompt")}
    assert leaked(json.dumps(reply), shown, asked) == set()
    for prompt in generator.prompts:
        assert leaked(repr(prompt.messages), shown, asked) == set()


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_no_reply_tells_of_what_its_asker_may_not_see(cluster: Settings) -> None:
    generations = count(1)

    @settings(
        max_examples=CORPORA,
        phases=[Phase.generate],  # a case that fails is told as it is: shrinking takes hours here
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
        derandomize=True,
    )
    @given(st.data())
    def holds(data: st.DataObject) -> None:
        corpus = data.draw(corpora(least=20, most=30), label="corpus")
        several = data.draw(st.lists(asks(corpus), min_size=ASKS, max_size=ASKS), label="asks")
        stores = open_stores(cluster, f"g{next(generations)}")
        stores.ensure(EMBEDDER.fingerprint.dimension)
        try:
            filled = Filled.of(corpus, stores)
            tally["corpora"] += 1

            async def all_of_them() -> None:
                for ask in several:
                    await check(ask, filled, cluster)

            asyncio.run(all_of_them())
        finally:
            stores.vectors.drop()
            stores.close()

    holds()
    assert tally["cases"] >= CORPORA * ASKS
    assert tally["forbidden"] > 0.7 * tally["cases"]
    assert tally["replies"] > 0.3 * tally["cases"]
