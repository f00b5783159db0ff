"""A small random NLI cross-encoder, made here, judges entailment."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from quarry.errors import ConfigError, ModelError
from quarry.models.entailment import CrossEncoderEntailment
from quarry.models.factory import load_entailment
from quarry.models.location import locate
from quarry.settings_answers import EntailmentSettings

PAIRS = [
    ("Tents must be clean and dry.", "A tent has to be dry."),
    ("A stove. " * 300, "Customs duties are paid."),
    ("", "Nothing was said."),
]
CLASSES = ("contradiction", "Entailment", "neutral")


def make_model(folder: Path, classes: tuple[str, ...] = CLASSES) -> str:
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
        id2label=dict(enumerate(classes)),
        label2id={name: number for number, name in enumerate(classes)},
        initializer_range=0.5,
    )
    BertForSequenceClassification(config).save_pretrained(folder)
    tokenizer.model_max_length = 128
    tokenizer.save_pretrained(folder)
    return str(folder)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    return make_model(tmp_path_factory.mktemp("nli"))


@pytest.fixture
def entailment(model: str) -> CrossEncoderEntailment:
    return CrossEncoderEntailment(EntailmentSettings(model=model))


def test_it_gives_the_models_probability_of_entailment(
    entailment: CrossEncoderEntailment, model: str
) -> None:
    import torch
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    passages, claims = zip(*PAIRS, strict=True)
    tokens = AutoTokenizer.from_pretrained(model)(
        list(passages), list(claims), padding=True, truncation=True, return_tensors="pt"
    )
    with torch.no_grad():
        logits = AutoModelForSequenceClassification.from_pretrained(model)(**tokens).logits
    expected = torch.softmax(logits, dim=-1)[:, 1].numpy()
    np.testing.assert_allclose(entailment.entails(PAIRS), expected, atol=1e-4)


def test_nothing_to_judge_is_nothing_judged(entailment: CrossEncoderEntailment) -> None:
    assert entailment.entails([]) == []


def test_a_model_without_the_class_is_refused(tmp_path: Path) -> None:
    settings = EntailmentSettings(model=make_model(tmp_path, ("positive", "negative")))
    with pytest.raises(ConfigError, match="no class 'entailment'"):
        CrossEncoderEntailment(settings)


def test_a_folder_without_a_model_is_told_in_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="cannot be loaded"):
        CrossEncoderEntailment(EntailmentSettings(model=str(tmp_path)))


def test_values_that_are_not_finite_are_an_error(
    entailment: CrossEncoderEntailment, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        entailment._model, "predict", lambda *_, **__: np.full((1, 3), float("nan"), np.float32)
    )
    with pytest.raises(ModelError, match="not finite"):
        entailment.entails(PAIRS[:1])


def test_the_factory_makes_it_only_if_a_model_is_set(model: str) -> None:
    assert load_entailment(EntailmentSettings()) is None
    made = load_entailment(EntailmentSettings(model=model))
    assert made is not None
    assert made.name.startswith("cross_encoder:")
