"""The fake models keep the model contracts."""

from __future__ import annotations

import pytest

from quarry.models.fakes import FakeEmbedder, FakeGenerator, FakeReranker
from quarry.records import StopReason
from quarry.text import REFUSAL
from tests.contract.embedder import EmbedderContract, TokenEmbedderContract
from tests.contract.generator import GeneratorContract, pieces, prompt, source, text_of
from tests.contract.reranker import QUESTION, RerankerContract


class TestFakeEmbedder(EmbedderContract, TokenEmbedderContract):
    @pytest.fixture(params=[8, 64, 1000])
    def embedder(self, request: pytest.FixtureRequest) -> FakeEmbedder:
        return FakeEmbedder(dimension=request.param)

    def test_another_instance_gives_the_same_vectors(self, embedder: FakeEmbedder) -> None:
        other = FakeEmbedder(dimension=embedder.fingerprint.dimension)
        assert other.fingerprint == embedder.fingerprint
        assert (other.embed_question("a tent") == embedder.embed_question("a tent")).all()


class TestFakeReranker(RerankerContract):
    @pytest.fixture(params=[True, False])
    def reranker(self, request: pytest.FixtureRequest) -> FakeReranker:
        return FakeReranker(fuses=request.param)

    def test_a_passage_with_the_questions_words_scores_higher(self) -> None:
        near, far = FakeReranker().score(QUESTION, ["The tent is dry.", "Customs duties."])
        assert near > far


class TestFakeGenerator(GeneratorContract):
    @pytest.fixture
    def generator(self) -> FakeGenerator:
        return FakeGenerator()

    async def test_no_evidence_is_a_refusal(self, generator: FakeGenerator) -> None:
        assert await text_of(generator, prompt("Anything?")) == REFUSAL

    async def test_it_stops_at_the_token_limit(self, generator: FakeGenerator) -> None:
        last = (
            await pieces(generator, prompt("Any?", source("S1", "one two three"), max_tokens=2))
        )[-1]
        assert last.stop is StopReason.LENGTH
        assert last.completion_tokens == 2
