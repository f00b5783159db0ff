"""Starts of the server that cannot succeed, on fake models."""

from __future__ import annotations

from pathlib import Path

import pytest

from quarry.errors import FingerprintMismatch
from quarry.generations import open_live
from quarry.models.factory import load_embedder
from quarry.settings import Settings
from quarry.stores.milvus_lite import vector_server
from serve.serving.app import run

pytestmark = [pytest.mark.ray, pytest.mark.slow, pytest.mark.timeout(600)]


def test_an_index_of_another_chunker_is_named_as_the_reason(tmp_path: Path) -> None:
    settings = Settings.model_validate(
        {
            "data_dir": tmp_path,
            "serve": {"port": 0},
            "embedder": {"model": "fake"},
            "reranker": {"kind": "none"},
        }
    )
    with vector_server(settings):
        open_live(settings, load_embedder(settings.embedder))[1].close()
    chunking = settings.chunking.model_copy(update={"max_tokens": 99})
    with pytest.raises(FingerprintMismatch, match=r"chunking.max_tokens \(250 → 99\)"):
        run(settings.model_copy(update={"chunking": chunking}), block=False)
    assert not (tmp_path / "server.json").exists()
