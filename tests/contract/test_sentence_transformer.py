"""The packaged MiniLM keeps the embedder contract, and late interaction that of rerankers."""

from __future__ import annotations

import json
import os
import shutil
import socket
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from quarry.errors import ConfigError, ModelError
from quarry.models.factory import load_embedder, load_reranker
from quarry.models.late_interaction import LateInteractionReranker
from quarry.models.location import locate
from quarry.models.prompts import prompts_for
from quarry.models.sentence_transformer import SentenceTransformerEmbedder
from quarry.models.unloaded import certain_fingerprint
from quarry.settings import EmbedderSettings, RerankerSettings
from tests.contract.embedder import EmbedderContract, TokenEmbedderContract
from tests.contract.reranker import QUESTION, RerankerContract


@pytest.fixture(scope="module")
def packaged() -> SentenceTransformerEmbedder:
    return SentenceTransformerEmbedder(EmbedderSettings())


@pytest.fixture(scope="module")
def exact() -> SentenceTransformerEmbedder:
    return SentenceTransformerEmbedder(EmbedderSettings(dtype="float32", batch_tokens=256))


@pytest.fixture(scope="module")
def folder() -> Path:
    found = locate("packaged:all-MiniLM-L6-v2").folder
    assert found is not None
    return found


@pytest.mark.parametrize("given", [{}, {"max_tokens": 100}, {"question_prompt": "q: "}])
def test_what_is_told_without_loading_it_is_what_the_loaded_model_says(
    packaged: SentenceTransformerEmbedder, given: dict[str, Any]
) -> None:
    settings = EmbedderSettings.model_validate(given)
    loaded = SentenceTransformerEmbedder(settings) if given else packaged
    certain = certain_fingerprint(settings)
    assert certain.items() <= asdict(loaded.fingerprint).items()
    assert {"model_id", "weights_hash", "max_tokens", "question_prompt"} <= certain.keys()


class TestPackagedMiniLM(EmbedderContract, TokenEmbedderContract):
    @pytest.fixture
    def embedder(self, packaged: SentenceTransformerEmbedder) -> SentenceTransformerEmbedder:
        return packaged


class TestFloat32InSmallBatches(EmbedderContract, TokenEmbedderContract):
    @pytest.fixture
    def embedder(self, exact: SentenceTransformerEmbedder) -> SentenceTransformerEmbedder:
        return exact

    def test_vectors_are_those_of_sentence_transformers(
        self, embedder: SentenceTransformerEmbedder, folder: Path
    ) -> None:
        from sentence_transformers import SentenceTransformer

        texts = ["A dry tent.", "customs duties " * 200, "", "환불"]
        model = SentenceTransformer(str(folder), device="cpu", local_files_only=True)
        expected = model.encode(texts, normalize_embeddings=True)
        np.testing.assert_allclose(embedder.embed_documents(texts), expected, atol=1e-5)
        tokens = embedder.count_tokens(texts)
        assert tokens == [len(model.tokenizer(text)["input_ids"]) for text in texts]


class TestLateInteraction(RerankerContract):
    @pytest.fixture
    def reranker(self, packaged: SentenceTransformerEmbedder) -> LateInteractionReranker:
        return LateInteractionReranker(packaged, cache_mb=1)

    def test_the_passage_that_answers_scores_highest(
        self, reranker: LateInteractionReranker
    ) -> None:
        scores = reranker.score(
            QUESTION, ["Customs duties are paid.", "Tents must be clean and dry.", ""]
        )
        assert scores[1] == max(scores)
        assert reranker.fuses


def test_automatic_precision_keeps_the_vectors(
    packaged: SentenceTransformerEmbedder, exact: SentenceTransformerEmbedder
) -> None:
    texts = ["a boundary layer on a flat plate", "refund", "table | of | codes " * 30]
    cosines = (packaged.embed_documents(texts) * exact.embed_documents(texts)).sum(axis=1)
    assert cosines.min() > 0.999


def test_the_packaged_model_loads_without_any_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a connection was tried")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    assert load_embedder(EmbedderSettings(dtype="float32")).fingerprint.dimension == 384


def test_the_fingerprint_follows_the_weights_and_not_the_place(
    packaged: SentenceTransformerEmbedder, folder: Path, tmp_path: Path
) -> None:
    same = Path(shutil.copytree(folder, tmp_path / "same"))
    first = SentenceTransformerEmbedder(EmbedderSettings(model=str(same), dtype="float32"))
    assert first.fingerprint.weights_hash == packaged.fingerprint.weights_hash
    pooling = same / "1_Pooling" / "config.json"
    changed = json.loads(pooling.read_text())
    changed |= {"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False}
    pooling.write_text(json.dumps(changed))
    second = SentenceTransformerEmbedder(EmbedderSettings(model=str(same), dtype="float32"))
    assert second.fingerprint.weights_hash != first.fingerprint.weights_hash


def test_prompts_are_part_of_vectors_counts_and_fingerprint(
    exact: SentenceTransformerEmbedder,
) -> None:
    prompted = SentenceTransformerEmbedder(
        EmbedderSettings(question_prompt="query: ", document_prompt="passage: ", dtype="float32")
    )
    text = "a dry tent"
    expected = exact.embed_documents([f"passage: {text}", f"query: {text}"])
    np.testing.assert_allclose(prompted.embed_documents([text])[0], expected[0], atol=1e-5)
    np.testing.assert_allclose(prompted.embed_question(text), expected[1], atol=1e-5)
    assert prompted.count_tokens([text]) == exact.count_tokens([f"passage: {text}"])
    assert prompted.fingerprint.question_prompt == "query: "
    assert prompted.fingerprint.document_prompt == "passage: "


@pytest.mark.parametrize("name", ["multilingual-e5-small", "bge-small-en-v1.5", "Qwen3-Embedding"])
def test_prompts_known_by_the_models_name_reach_its_vectors(
    exact: SentenceTransformerEmbedder, folder: Path, tmp_path: Path, name: str
) -> None:
    shutil.copytree(folder, tmp_path / name, copy_function=os.symlink)
    embedder = SentenceTransformerEmbedder(
        EmbedderSettings(model=str(tmp_path / name), dtype="float32")
    )
    prompts = prompts_for(name, {}, None, None)
    assert prompts.question
    text = "a dry tent"
    expected = exact.embed_documents([prompts.question + text, prompts.document + text])
    np.testing.assert_allclose(embedder.embed_question(text), expected[0], atol=1e-5)
    np.testing.assert_allclose(embedder.embed_documents([text])[0], expected[1], atol=1e-5)
    assert embedder.fingerprint.question_prompt == prompts.question


def test_the_limit_of_the_settings_cannot_exceed_the_models(folder: Path) -> None:
    low = SentenceTransformerEmbedder(EmbedderSettings(max_tokens=32, dtype="float32"))
    high = SentenceTransformerEmbedder(EmbedderSettings(max_tokens=4096, dtype="float32"))
    assert (low.fingerprint.max_tokens, high.fingerprint.max_tokens) == (32, 256)


@pytest.mark.parametrize(
    ("settings", "error", "says"),
    [
        ({"model": "packaged:none"}, ConfigError, "not a packaged model"),
        ({"model": "./no/such/folder"}, ConfigError, "no model folder"),
        ({"device": "cuda:7"}, ConfigError, "not available"),
    ],
)
def test_what_cannot_be_loaded_is_told_in_one_sentence(
    settings: dict[str, str], error: type[Exception], says: str
) -> None:
    with pytest.raises(error, match=says) as raised:
        load_embedder(EmbedderSettings(**settings))
    assert "\n" not in str(raised.value)


def test_a_folder_without_a_model_is_told_in_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="cannot be loaded") as raised:
        load_embedder(EmbedderSettings(model=str(tmp_path)))
    assert "\n" not in str(raised.value)


def test_no_reranker_is_none(packaged: SentenceTransformerEmbedder) -> None:
    assert load_reranker(RerankerSettings(kind="none"), packaged) is None
