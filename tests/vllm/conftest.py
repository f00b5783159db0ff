"""One real engine for the suite: it takes half a minute to start on two cores."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from quarry.models.vllm import VllmGenerator
from quarry.settings import GeneratorSettings
from tests.conftest import absent


def cpu_settings(model: Path, **more: Any) -> GeneratorSettings:
    """For two cores and little memory; the engine starts without compiling."""
    vllm = {
        "device": "cpu",
        "dtype": "bfloat16",
        "kv_cache_gib": 1.0,
        "enforce_eager": True,
        "guided_citations": True,
        **more.pop("vllm", {}),
    }
    values = {"kind": "vllm", "model": str(model), "context_tokens": 2048, "timeout_s": 120}
    return GeneratorSettings.model_validate({**values, **more, "vllm": vllm})


@pytest.fixture(scope="session")
def model() -> Path:
    if importlib.util.find_spec("vllm") is None:
        absent("vLLM is not installed; run: make test-vllm")
    from tests.vllm.smollm2 import smollm2

    return smollm2()


@pytest.fixture(scope="module")
def engine(model: Path) -> Iterator[VllmGenerator]:
    generator = VllmGenerator(cpu_settings(model))
    yield generator
    generator.close()
