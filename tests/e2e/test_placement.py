"""Where Ray really puts the deployments, on a node with four (pretended) GPUs."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import REPO

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

COMMON = {"stores": {"text": "memory", "vectors": "memory"}, "serve": {"port": 0}}


def placed(folder: Path, **sections: Any) -> dict[str, Any]:
    """Another process has its own Ray, which the suite's does not meet."""
    settings, notes, result = folder / "settings.json", folder / "notes", folder / "result.json"
    notes.mkdir()
    known = {**COMMON, "data_dir": str(folder / "data"), **sections}
    settings.write_text(json.dumps(known), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "tests.e2e.placed", str(settings), str(notes), str(result)],
        cwd=REPO,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    found: dict[str, Any] = json.loads(result.read_text(encoding="utf-8"))
    return found


def test_the_gpu_configuration_is_placed_as_written(tmp_path: Path) -> None:
    found = placed(
        tmp_path,
        embedder={"model": "fake", "gpus": 0.25},
        reranker={"kind": "fake", "gpus": 0.5},
        answers={"entailment": {"model": "fake", "gpus": 0.25}},
        generator={"kind": "vllm", "model": "m", "vllm": {"tensor_parallel_size": 2}},
    )
    replicas = found["replicas"]
    assert {name: each["resources"] for name, each in replicas.items()} == {
        "embedder": {"GPU": 0.25},
        "reranker": {"GPU": 0.5},
        "entailment": {"GPU": 0.25},
        "generator": {"GPU": 2.0},
    }
    assert replicas["generator"]["group"] is not None
    assert replicas["embedder"]["group"] is None
    assert found["groups"] == [{"bundles": [{"CPU": 0.2, "GPU": 2.0}], "strategy": "STRICT_PACK"}]
    shared = {replicas[name]["visible"] for name in ("embedder", "reranker", "entailment")}
    own = set(replicas["generator"]["visible"].split(","))
    assert len(shared) == 1, "fractions of one GPU are on one GPU"
    assert len(own) == 2
    assert not own & shared, "nobody shares the generator's GPUs"
    assert found["free"] == pytest.approx(4 - 0.25 - 0.5 - 0.25 - 2)
    cores = {"gateway": 0.1, "retriever": 0.2, "embedder": 0.4, "reranker": 0.4}
    assert found["cores"] == pytest.approx(sum(cores.values()) + 0.2 + 0.2)


def test_the_cpu_configuration_asks_for_no_gpu(tmp_path: Path) -> None:
    found = placed(
        tmp_path,
        embedder={"model": "fake"},
        reranker={"kind": "fake"},
        generator={"kind": "vllm", "model": "m", "vllm": {"device": "cpu"}},
    )
    assert set(found["replicas"]) == {"embedder", "reranker", "generator"}
    assert all(each["resources"] == {} for each in found["replicas"].values())
    assert (found["groups"], found["free"]) == ([], 4.0)
