"""Starts Ray with four GPUs that are not there, deploys settings on it, and says who got what.

    python -m tests.e2e.placed SETTINGS.json FOLDER RESULT.json

The models are fakes that write down, in FOLDER, what Ray gave to their replica.
"""

from __future__ import annotations

import json
import logging
import os
import sys
from functools import partial
from pathlib import Path
from typing import Any

GPUS = 4


def noting(folder: str, name: str, settings: Any, *_: Any) -> Any:
    """A fake model of this kind; its replica's GPUs are written down."""
    import ray

    from quarry.models.fakes import FakeEmbedder, FakeGenerator, FakeReranker

    class FakeEntailment:
        name = "fake"

    context = ray.get_runtime_context()
    facts = {
        "resources": {k: v for k, v in context.get_assigned_resources().items() if k == "GPU"},
        "visible": os.environ.get("CUDA_VISIBLE_DEVICES", ""),
        "group": context.get_placement_group_id(),
    }
    Path(folder, f"{name}.json").write_text(json.dumps(facts), encoding="utf-8")
    makers = {
        "embedder": FakeEmbedder,
        "reranker": FakeReranker,
        "generator": FakeGenerator,
        "entailment": FakeEntailment,
    }
    return makers[name]()


def main(settings_file: str, folder: str, result_file: str) -> None:
    from quarry.settings import Settings
    from serve.serving.app import LOCAL_RAY

    for name, value in LOCAL_RAY.items():
        os.environ.setdefault(name, value)
    import ray
    from ray import serve
    from ray.util import placement_group_table

    from serve.serving.deployments import Loaders, build

    settings = Settings.model_validate_json(Path(settings_file).read_text(encoding="utf-8"))
    ray.init(
        address="local",
        num_cpus=4,
        num_gpus=GPUS,
        include_dashboard=False,
        logging_level=logging.ERROR,
        log_to_driver=False,
        _node_ip_address="127.0.0.1",
    )
    models = ("embedder", "reranker", "generator", "entailment")
    make = {name: partial(noting, folder, name) for name in models}
    serve.start(proxy_location="Disabled", logging_config={"log_level": "ERROR"})
    serve.run(build(settings, "token", Loaders(**make)))
    replicas = {
        path.stem: json.loads(path.read_text(encoding="utf-8"))
        for path in Path(folder).glob("*.json")
    }
    groups = [
        {"bundles": list(group["bundles"].values()), "strategy": group["strategy"]}
        for group in placement_group_table().values()
        if group["state"] == "CREATED"
    ]
    left = ray.available_resources()
    free = left.get("GPU", 0.0)
    result = {"replicas": replicas, "groups": groups, "free": free, "cores": 4 - left["CPU"]}
    Path(result_file).write_text(json.dumps(result), encoding="utf-8")
    serve.shutdown()
    ray.shutdown()


if __name__ == "__main__":
    main(*sys.argv[1:])
