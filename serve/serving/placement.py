"""What each deployment asks Ray for: cores, shares of a GPU, or a group of GPUs on one node.

A model that shares a GPU reserves a fraction of it. The generator takes whole GPUs: as many as its
tensor-parallel size, in a placement group of one bundle, so that they are on one node and are
there together or not at all.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from quarry.settings import GeneratorSettings, Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    cpus: float
    """Logical cores of one replica."""
    gpus: float = 0.0
    grouped: bool = False
    """Whether its resources are one bundle of a placement group."""

    def options(self) -> dict[str, Any]:
        """As arguments of `ray.serve.deployment`."""
        actor = {"num_cpus": self.cpus, "num_gpus": self.gpus}
        if not self.grouped:
            return {"ray_actor_options": actor}
        return {
            "ray_actor_options": actor,
            "placement_group_bundles": [{"CPU": self.cpus, "GPU": self.gpus}],
            "placement_group_strategy": "STRICT_PACK",
        }


def placements(settings: Settings) -> Mapping[str, Placement]:
    """By deployment. The cores of all together fit on two."""
    generator_gpus = _generator_gpus(settings.generator)
    return {
        "gateway": Placement(cpus=0.1),
        "retriever": Placement(cpus=0.2),
        "embedder": Placement(cpus=0.4, gpus=settings.embedder.gpus),
        "reranker": Placement(cpus=0.4, gpus=settings.reranker.gpus),
        "entailment": Placement(cpus=0.2, gpus=settings.answers.entailment.gpus),
        "generator": Placement(cpus=0.2, gpus=generator_gpus, grouped=generator_gpus > 1),
    }


def _generator_gpus(settings: GeneratorSettings) -> int:
    if settings.kind != "vllm" or settings.vllm.device == "cpu":
        return 0
    return settings.vllm.tensor_parallel_size
