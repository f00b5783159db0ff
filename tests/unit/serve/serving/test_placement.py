"""What each deployment asks Ray for; tests/e2e/test_placement.py looks at what Ray gives."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from quarry.settings import Settings
from serve.serving.placement import placements

GPU = {
    "embedder": {"device": "cuda", "gpus": 0.3},
    "reranker": {"gpus": 0.2},
    "answers": {"entailment": {"model": "nli", "gpus": 0.5}},
    "generator": {"kind": "vllm", "model": "m", "vllm": {"tensor_parallel_size": 2}},
}


def options(**sections: Any) -> dict[str, dict[str, Any]]:
    placed = placements(Settings.model_validate(sections))
    return {name: placement.options() for name, placement in placed.items()}


def gpus(**sections: Any) -> dict[str, float]:
    return {
        name: each["ray_actor_options"]["num_gpus"]
        for name, each in options(**sections).items()
        if each["ray_actor_options"]["num_gpus"]
    }


def test_models_that_share_a_gpu_reserve_fractions_of_it() -> None:
    assert gpus(**GPU) == {"embedder": 0.3, "reranker": 0.2, "entailment": 0.5, "generator": 2}


def test_gateway_and_retriever_take_no_gpu_and_the_entailment_model_its_share() -> None:
    placed = options(**GPU)
    for name, cores in (("gateway", 0.1), ("retriever", 0.2)):
        assert placed[name] == {"ray_actor_options": {"num_cpus": cores, "num_gpus": 0}}
    assert placed["entailment"] == {"ray_actor_options": {"num_cpus": 0.2, "num_gpus": 0.5}}


def test_a_tensor_parallel_generator_is_one_group_on_one_node() -> None:
    generator = options(**GPU)["generator"]
    actor = generator["ray_actor_options"]
    assert generator["placement_group_bundles"] == [{"CPU": actor["num_cpus"], "GPU": 2}]
    assert generator["placement_group_strategy"] == "STRICT_PACK"


def test_a_generator_on_one_gpu_needs_no_group() -> None:
    one = {**GPU, "generator": {"kind": "vllm", "model": "m"}}
    assert gpus(**one)["generator"] == 1
    assert "placement_group_bundles" not in options(**one)["generator"]


@pytest.mark.parametrize(
    "generator",
    [
        {"kind": "extractive"},
        {"kind": "openai", "model": "m", "base_url": "http://h"},
        {"kind": "vllm", "model": "m", "vllm": {"device": "cpu", "tensor_parallel_size": 2}},
    ],
)
def test_without_gpus_in_the_settings_none_is_asked_for(generator: dict[str, Any]) -> None:
    assert gpus(generator=generator) == {}
    assert all("placement_group_bundles" not in each for each in options().values())


def test_all_parts_together_fit_on_two_cores() -> None:
    assert sum(each["ray_actor_options"]["num_cpus"] for each in options(**GPU).values()) <= 2


def test_an_embedder_on_the_cpu_cannot_reserve_a_gpu() -> None:
    with pytest.raises(ValidationError, match="gpus must be 0 with device cpu"):
        Settings.model_validate({"embedder": {"device": "cpu", "gpus": 0.5}})
