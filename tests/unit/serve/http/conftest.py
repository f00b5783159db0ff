"""People and documents of the HTTP tests."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from quarry.access.principals import load_users, token_hash
from serve.http.sign_in import SignIn
from tests.unit.serve.http.http_client import (
    LOCAL,
    Client,
    client_of,
)
from tests.unit.serve.serve_world import World


@pytest.fixture
def users(tmp_path: Path) -> SignIn:
    path = tmp_path / "users.yaml"
    path.write_text(
        f"users:\n  ruth:\n    groups: [hr]\n    token_sha256: {token_hash('ruths-token')}\n"
        "  mei:\n    groups: [staff]\n",
        encoding="utf-8",
    )
    return SignIn(lambda: load_users(path), local_token=LOCAL)


@pytest.fixture
def world() -> World:
    world = World()
    world.add(
        "returns.md",
        "Used tents are returned for store credit.",
        title="Returns",
        section=("Returns", "Used"),
        pages=(2, 3),
    )
    world.add("severance.md", "Severance is 3 weeks of salary a year.", acl=("hr",))
    world.add("staff.md", "Staff tents cost 40 euros.", acl=("staff",))
    return world


@pytest.fixture
async def client(world: World, users: SignIn) -> AsyncIterator[Client]:
    async with client_of(world.engine(), users) as client:
        yield client
