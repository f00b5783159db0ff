"""Fixtures that every suite shares."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

# Ray forks, and a fork next to gRPC's threads (Milvus Lite runs some) can hang. Read at its import.
os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")

settings.register_profile("quarry", deadline=None)  # a busy machine is no failure
settings.load_profile("quarry")

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
    os.environ.setdefault("RAY_AUTH_MODE", "disabled")
    import ray

    ray.init(
        address="local",
        num_cpus=4,
        include_dashboard=False,
        log_to_driver=False,
        logging_level=logging.ERROR,
        configure_logging=False,
    )
    yield
    ray.shutdown()
