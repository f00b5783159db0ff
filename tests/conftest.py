"""Fixtures that every suite shares."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

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
