"""A LoRA adapter from the settings is put on the model of a real engine."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from quarry.models.vllm import VllmGenerator
from quarry.models.vllm_engine import engine_arguments
from tests.contract.generator import prompt, text_of
from tests.vllm.conftest import cpu_settings

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

RANK = 4
ASKED = prompt("Name three animals.", max_tokens=24)


def make_adapter(folder: Path, model: Path, *, strength: float) -> str:
    """Random low-rank changes of the value projections, scaled."""
    import torch
    from safetensors.torch import save_file

    facts = json.loads((model / "config.json").read_text(encoding="utf-8"))
    hidden, heads = facts["hidden_size"], facts["num_key_value_heads"]
    width = heads * hidden // facts["num_attention_heads"]
    torch.manual_seed(7)
    weights = {}
    for layer in range(facts["num_hidden_layers"]):
        name = f"base_model.model.model.layers.{layer}.self_attn.v_proj"
        weights[f"{name}.lora_A.weight"] = torch.randn(RANK, hidden)
        weights[f"{name}.lora_B.weight"] = torch.randn(width, RANK) * strength
    folder.mkdir(exist_ok=True)
    save_file(weights, folder / "adapter_model.safetensors")
    config = {
        "peft_type": "LORA",
        "task_type": "CAUSAL_LM",
        "r": RANK,
        "lora_alpha": RANK,
        "target_modules": ["v_proj"],
        "bias": "none",
    }
    (folder / "adapter_config.json").write_text(json.dumps(config), encoding="utf-8")
    return str(folder)


def test_it_arrives_in_the_engines_configuration(model: Path, tmp_path: Path) -> None:
    from vllm import AsyncEngineArgs

    lora = make_adapter(tmp_path, model, strength=0.0)
    arguments = engine_arguments(cpu_settings(model, vllm={"lora": lora}))
    config = AsyncEngineArgs(**arguments).create_engine_config()
    assert config.lora_config.max_lora_rank == 8


async def test_it_changes_what_the_model_writes(model: Path, tmp_path: Path) -> None:
    lora = make_adapter(tmp_path, model, strength=0.5)
    generator = VllmGenerator(cpu_settings(model, vllm={"lora": lora}))
    try:
        with_adapter = await text_of(generator, ASKED)
        generator._lora = None
        without = await text_of(generator, ASKED)
    finally:
        generator.close()
    assert with_adapter != without
