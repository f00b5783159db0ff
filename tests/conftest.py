"""Fixtures that every suite shares."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
import structlog
from hypothesis import settings

# Ray forks, and a fork next to gRPC's threads (Milvus Lite runs some) can hang. Read at its import.
os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")

# A busy machine is no failure. Where a change is judged the same examples are tried each time: what
# random ones find is mended when it is found at a desk, and must not stop an unrelated change.
settings.register_profile("quarry", deadline=None)
settings.register_profile("judged", deadline=None, derandomize=True)
settings.load_profile("judged" if os.environ.get("QUARRY_CI") == "1" else "quarry")

REPO = Path(__file__).resolve().parent.parent


def absent(reason: str) -> None:
    """Skips here; fails where everything must be present (QUARRY_CI=1)."""
    if os.environ.get("QUARRY_CI") == "1":
        pytest.fail(reason)
    pytest.skip(reason)


@pytest.fixture(scope="session")
def shared_dir() -> Path:
    """Real sample files and the Cranfield collection, kept beside the checkout."""
    path = REPO.parent / "shared"
    if not path.is_dir():
        absent("the sample files are not beside the checkout (../shared)")
    return path


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A test marked `ray` runs on the shared Ray, which starts before its other fixtures."""
    for item in items:
        if item.get_closest_marker("ray") and isinstance(item, pytest.Function):
            item.fixturenames.insert(0, "shared_ray")


@pytest.fixture(scope="session")
def shared_ray() -> Iterator[None]:
    """One local Ray for all suites: it takes seconds to start, and its workers are used again."""
    import ray

    from ingest.pipeline import start_local_ray

    start_local_ray(num_cpus=4)
    yield
    ray.shutdown()


@pytest.fixture(autouse=True)
def logging_as_before() -> Iterator[None]:
    """A command sets up logging for its process; what follows it in this one starts afresh."""
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    configured = structlog.get_config() if structlog.is_configured() else None
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    if configured is None:
        structlog.reset_defaults()
    else:
        structlog.configure(**configured)
