"""Chunks are counted as the embedder counts, though its weights are not loaded."""

from __future__ import annotations

from quarry.models.counter import TokenizerCounter, load_counter
from quarry.models.factory import load_embedder
from quarry.settings import EmbedderSettings

TEXTS = [
    "",
    "A wing in a slipstream.",
    "E-1042 Überlauf 東京",
    "word " * 400,
    "def f(x):\n    return x",
]


def test_the_packaged_model_counts_alike_with_and_without_weights() -> None:
    settings = EmbedderSettings()
    counter = load_counter(settings)
    assert isinstance(counter, TokenizerCounter)
    assert counter.count_tokens(TEXTS) == load_embedder(settings).count_tokens(TEXTS)


def test_a_document_prompt_counts() -> None:
    plain = load_counter(EmbedderSettings()).count_tokens(["tent"])
    prompted = load_counter(EmbedderSettings(document_prompt="passage: ")).count_tokens(["tent"])
    assert prompted == [plain[0] + 2]


def test_the_fake_embedder_counts_for_itself() -> None:
    assert load_counter(EmbedderSettings(model="fake")).count_tokens(["two words"]) == [4]
