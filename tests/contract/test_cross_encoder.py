"""A small random cross-encoder, made here, keeps the reranker contract."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from quarry.errors import ConfigError, ModelError
from quarry.models.cross_encoder import CrossEncoderReranker
from quarry.models.factory import load_reranker
from quarry.models.fakes import FakeEmbedder
from quarry.models.location import locate
from quarry.settings import RerankerSettings
from tests.contract.reranker import QUESTION, RerankerContract

PASSAGES = ["Tents must be clean and dry.", "Customs duties are paid.", "A stove. " * 300]


def make_model(folder: Path, *, labels: int = 1) -> str:
    """A BERT of two small layers with random weights and the packaged model's tokenizer."""
    import torch
    from transformers import AutoTokenizer, BertConfig, BertForSequenceClassification

    torch.manual_seed(7)
    tokenizer = AutoTokenizer.from_pretrained(locate("packaged:all-MiniLM-L6-v2").source)
    config = BertConfig(
        vocab_size=len(tokenizer),
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=64,
        max_position_embeddings=128,
        num_labels=labels,
        initializer_range=0.5,
    )
    BertForSequenceClassification(config).save_pretrained(folder)
    tokenizer.model_max_length = 128
    tokenizer.save_pretrained(folder)
    return str(folder)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    return make_model(tmp_path_factory.mktemp("cross-encoder"))


class TestCrossEncoder(RerankerContract):
    @pytest.fixture
    def reranker(self, model: str) -> CrossEncoderReranker:
        return CrossEncoderReranker(RerankerSettings(kind="cross_encoder", model=model))

    def test_scores_are_the_models_logits_not_probabilities(
        self, reranker: CrossEncoderReranker, model: str
    ) -> None:
        import torch
        from transformers import AutoModelForSequenceClassification, AutoTokenizer

        tokens = AutoTokenizer.from_pretrained(model)(
            [QUESTION] * 3, PASSAGES, padding=True, truncation=True, return_tensors="pt"
        )
        with torch.no_grad():
            logits = AutoModelForSequenceClassification.from_pretrained(model)(**tokens).logits
        np.testing.assert_allclose(
            reranker.score(QUESTION, PASSAGES), logits[:, 0].numpy(), atol=1e-4
        )

    def test_its_scores_decide_alone(self, reranker: CrossEncoderReranker) -> None:
        assert not reranker.fuses

    def test_the_factory_makes_it(self, model: str) -> None:
        settings = RerankerSettings(kind="cross_encoder", model=model)
        made = load_reranker(settings, FakeEmbedder())
        assert made is not None
        assert made.name.startswith("cross_encoder:")


def test_a_classifier_of_several_classes_is_refused(tmp_path: Path) -> None:
    settings = RerankerSettings(kind="cross_encoder", model=make_model(tmp_path, labels=3))
    with pytest.raises(ConfigError, match="3 scores"):
        CrossEncoderReranker(settings)


def test_a_folder_without_a_model_is_told_in_one_sentence(tmp_path: Path) -> None:
    settings = RerankerSettings(kind="cross_encoder", model=str(tmp_path))
    with pytest.raises(ModelError, match="cannot be loaded"):
        CrossEncoderReranker(settings)


def test_scores_that_are_not_finite_are_an_error(
    model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    reranker = CrossEncoderReranker(RerankerSettings(kind="cross_encoder", model=model))
    monkeypatch.setattr(
        reranker._model, "predict", lambda *_, **__: np.array([1.0, float("nan")], np.float32)
    )
    with pytest.raises(ModelError, match="not finite"):
        reranker.score(QUESTION, PASSAGES[:2])
