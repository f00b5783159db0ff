"""Who a request is from, and what that opens."""

from __future__ import annotations

from typing import Any

import pytest

from serve.http.sign_in import SignIn
from tests.unit.serve.http.http_client import (
    LOCAL,
    Client,
    bearer,
    client_of,
    uris,
)
from tests.unit.serve.serve_world import World


async def test_without_a_token_one_sees_what_is_public(client: Client) -> None:
    assert await uris(client) == {"returns.md"}


async def test_a_users_token_opens_what_the_user_may_read(client: Client) -> None:
    found = await uris(client, headers=bearer("ruths-token"))
    assert found == {"returns.md", "severance.md"}


async def test_the_local_token_may_name_a_person_who_has_the_groups_of_the_users_file(
    client: Client,
) -> None:
    assert await uris(client, headers=bearer(LOCAL), **{"as": "mei"}) == {
        "returns.md",
        "staff.md",
    }


async def test_groups_beside_a_name_take_the_place_of_its_own(client: Client) -> None:
    found = await uris(client, headers=bearer(LOCAL), **{"as": "mei", "groups": []})
    assert found == {"returns.md"}
    assert await uris(client, headers=bearer(LOCAL), groups=["hr"]) == {
        "returns.md",
        "severance.md",
    }


async def test_the_local_token_by_itself_is_nobody(client: Client) -> None:
    assert await uris(client, headers=bearer(LOCAL)) == {"returns.md"}


@pytest.mark.parametrize(
    ("headers", "body"),
    [
        ({}, {"as": "ruth"}),
        ({}, {"groups": ["hr"]}),
        ({}, {"groups": []}),
        (bearer("ruths-token"), {"as": "ruth"}),
        (bearer("ruths-token"), {"groups": ["staff"]}),
        (bearer("unknown"), {}),
        (bearer(""), {}),
        ({"Authorization": "Basic cnV0aDpy"}, {}),
        ({"Authorization": LOCAL}, {}),
    ],
)
@pytest.mark.parametrize("path", ["/v1/search", "/v1/answer", "/v1/explain"])
async def test_whoever_claims_more_than_the_token_gives_is_turned_away(
    client: Client, path: str, headers: dict[str, str], body: dict[str, Any]
) -> None:
    response = await client.post(path, json={"question": "tents", **body}, headers=headers)
    assert response.status_code == 401
    assert response.json()["error"]["code"] == "not_signed_in"
    assert response.headers["WWW-Authenticate"] == "Bearer"


async def test_a_server_without_a_local_token_takes_none(world: World, users: SignIn) -> None:
    async with client_of(world.engine(), SignIn(users._users)) as client:
        response = await client.post(
            "/v1/search", json={"question": "tents"}, headers=bearer(LOCAL)
        )
    assert response.status_code == 401


async def test_a_group_that_poses_as_a_person_is_an_error_of_the_caller(client: Client) -> None:
    response = await client.post(
        "/v1/search", json={"question": "x", "groups": ["user:ruth"]}, headers=bearer(LOCAL)
    )
    assert response.status_code == 400
