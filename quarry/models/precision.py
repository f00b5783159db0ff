"""Chooses the precision of an embedder: the lowest that keeps its vectors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import structlog
import torch

from quarry.errors import ModelError
from quarry.records import Vectors

_log = structlog.get_logger(__name__)

MIN_COSINE = 0.999
"""Least cosine of a vector to its float32 self; ranks change for cosines well below it."""

_PROBES = (
    "What does E-1042 mean?",
    "Standard delivery takes three to five working days.",
    "The drive of the shoulder axis switched off to protect its output stage.",
    "Der Elternurlaub beträgt zwanzig Wochen bei vollem Gehalt.",
    "환불은 30일 이내에 가능합니다. 東京都の天気は晴れです。",
    "def total(rows):\n    return sum(row.price * row.count for row in rows)",
    "| code | cause | action |\n| E-1017 | encoder signal lost | check the cable |\n" * 6,
    "A boundary layer grows along the plate until the flow becomes turbulent. " * 20,
)
"""Short and long, several scripts, code and a table: what an index holds."""


def choose_dtype(model: Any, wanted: str, embed: Callable[[Sequence[str]], Vectors]) -> str:
    """Sets the model's dtype and names it.

    `auto` tries what the device is fast in, and stays in float32 if no vector check passes.
    """
    if wanted != "auto":
        model.to(getattr(torch, wanted))
        return wanted
    reference = embed(_PROBES)
    exact = {name: value.clone() for name, value in model.state_dict().items()}
    for name in _fast_dtypes(model.device):
        model.to(getattr(torch, name))
        cosine = _least_cosine(reference, embed)
        if cosine >= MIN_COSINE:
            return name
        _log.warning("embedder_precision_rejected", dtype=name, cosine=round(cosine, 5))
        model.to(torch.float32)
        model.load_state_dict(exact)
    return "float32"


def _least_cosine(reference: Vectors, embed: Callable[[Sequence[str]], Vectors]) -> float:
    try:
        return float((reference * embed(_PROBES)).sum(axis=1).min())
    except ModelError:  # not finite, or the kernel does not exist in this precision
        return 0.0


def _fast_dtypes(device: torch.device) -> tuple[str, ...]:
    """Half precisions that this device computes faster than float32."""
    if device.type == "cuda":
        return ("float16", "bfloat16") if torch.cuda.is_bf16_supported() else ("float16",)
    if device.type == "mps":
        return ("float16",)
    return ("bfloat16",) if _cpu_has_bfloat16() else ()


def _cpu_has_bfloat16() -> bool:
    """AMX or AVX512-BF16; without them bfloat16 is emulated and slower than float32."""
    features = torch.cpu.get_capabilities()  # names are those of cpuinfo
    return any(features.get(name, False) for name in ("amx_bf16", "avx512_bf16", "bf16"))
