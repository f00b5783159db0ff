"""Every error has its status and one shape, and says nothing of itself."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator

import pytest

from quarry.errors import (
    DataDirBusy,
    DeadlineExceeded,
    FilterError,
    ModelError,
    Overloaded,
    QuarryError,
    QuestionError,
    StoreUnavailable,
)
from serve.http.errors import CODES
from serve.http.limits import MAX_BODY_BYTES
from serve.http.sign_in import SignIn
from tests.unit.serve.http.http_client import (
    Broken,
    Client,
    client_of,
)


@pytest.mark.parametrize(
    "error",
    [
        QuestionError("q"),
        FilterError("f"),
        StoreUnavailable("s"),
        ModelError("m"),
        DeadlineExceeded("d"),
        DataDirBusy("b"),
        Overloaded("o"),
        QuarryError("any"),
    ],
    ids=lambda error: type(error).__name__,
)
@pytest.mark.parametrize("kind", ["search", "answer", "stream", "explain"])
async def test_every_error_has_its_status_and_one_shape(
    users: SignIn, error: QuarryError, kind: str
) -> None:
    path = "/v1/answer" if kind == "stream" else f"/v1/{kind}"
    body = {"question": "x", **({"stream": True} if kind == "stream" else {})}
    async with client_of(Broken(error), users) as client:
        response = await client.post(path, json=body)
    assert response.status_code == error.http_status
    assert response.json() == {"error": {"code": error.code, "message": str(error)}}
    assert ("Retry-After" in response.headers) == (error.http_status in (429, 503))


async def test_a_fault_of_ours_says_nothing_of_itself(users: SignIn) -> None:
    async with client_of(Broken(RuntimeError("secret detail")), users) as client:
        response = await client.post("/v1/search", json={"question": "my words"})
    assert response.status_code == 500
    assert response.json()["error"]["code"] == "internal"
    assert "secret" not in response.text and "my words" not in response.text


@pytest.mark.parametrize(
    "content",
    [
        b'{"question": 5}',
        b'{"question": "PRIVATE", "mode": "PRIVATE"}',
        b'{"question": "PRIVATE", "top_k": 0}',
        b'{"question": "PRIVATE", "top_k": 101}',
        b'{"question": "PRIVATE", "top_k": "PRIVATE"}',
        b'{"question": "PRIVATE", "What is PRIVATE?": 1}',
        b'{"PRIVATE' + b"E" * 40 + b'": 1}',
        b'{"question": "PRIVATE", "groups": "PRIVATE"}',
        b'{"question": "PRIVATE", "conversation": [{"role": "PRIVATE", "content": "PRIVATE"}]}',
        b'{"question": "PRIVATE", "conversation": [{"role": "user", "content": 5}]}',
        b'{"question": "PRIVATE", "conversation": "PRIVATE"}',
        b'{"mode": "PRIVATE"}',
        b'["PRIVATE"]',
        b"PRIVATE {",
        b"\xff\xfe",
        b"",
    ],
)
async def test_a_body_that_is_not_right_is_named_without_its_text(
    client: Client, content: bytes
) -> None:
    for path in ("/v1/search", "/v1/answer", "/v1/explain"):
        response = await client.post(
            path, content=content, headers={"Content-Type": "application/json"}
        )
        assert response.status_code in (400, 422)
        assert set(response.json()["error"]) == {"code", "message"}
        assert "PRIVATE" not in response.text


@pytest.mark.parametrize(
    ("path", "more", "named", "hint"),
    [
        ("search", {"topk": 3}, "The key 'topk' of the body", "did you mean 'top_k'?"),
        ("answer", {"asOf": "2026-01-01"}, "'asOf'", "did you mean 'as_of'?"),
        ("explain", {"expected": []}, "'expected'", "did you mean 'expect'?"),
        ("search", {"stream": True}, "'stream'", "the ones that are: question, mode, top_k, "),
        ("answer", {"as_user": "ruth"}, "'as_user'", " as, groups, stream."),
        (
            "answer",
            {"conversation": [{"rol": "user", "content": "x"}]},
            "The key 'rol' of 'conversation.0'",
            "did you mean 'role'?",
        ),
    ],
)
async def test_a_key_that_is_not_known_is_named_with_the_right_one(
    client: Client, path: str, more: dict[str, object], named: str, hint: str
) -> None:
    for body in ({"question": "x", **more}, more):
        response = await client.post(f"/v1/{path}", json=body)
        error = response.json()["error"]
        assert (response.status_code, error["code"]) == (422, "invalid_request")
        assert named in error["message"] and hint in error["message"]


async def test_keys_in_the_address_are_refused_and_not_ignored(client: Client) -> None:
    response = await client.post("/v1/search?top_k=1", json={"question": "used tents"})
    assert (response.status_code, response.json()["error"]["code"]) == (422, "invalid_request")
    assert "in the JSON body" in response.json()["error"]["message"]


@pytest.mark.parametrize(
    ("method", "path", "content", "code"),
    [
        ("POST", "/v1/search", b'{"question": "\xff\xfe"}', "bad_request"),
        ("POST", "/v1/search", b"{", "invalid_request"),
        ("POST", "/v1/search", b" " * (MAX_BODY_BYTES + 1), "body_too_large"),
        ("GET", "/v1/search", b"", "method_not_allowed"),
        ("GET", "/v2", b"", "not_found"),
    ],
)
async def test_what_is_no_request_gets_its_code_and_a_sentence_that_says_what_to_do(
    client: Client, method: str, path: str, content: bytes, code: str
) -> None:
    headers = {"Content-Type": "application/json"}
    response = await client.request(method, path, content=content, headers=headers)
    error = response.json()["error"]
    assert (response.status_code, error["code"]) == (CODES[code], code)
    assert re.search(r"[;:] (send|see) ", error["message"])


async def test_every_status_of_the_questions_is_described(client: Client) -> None:
    described = (await client.get("/openapi.json")).json()["paths"]["/v1/search"]["post"]
    statuses = "200 400 401 413 422 429 500 503 504".split()
    assert sorted(described["responses"]) == statuses


async def test_a_body_beyond_the_limit_is_refused(client: Client) -> None:
    response = await client.post("/v1/search", json={"question": "x" * MAX_BODY_BYTES})
    assert response.status_code == 413
    assert response.json()["error"]["code"] == "body_too_large"


@pytest.mark.parametrize("ascii_only", [True, False])
async def test_the_longest_conversation_is_let_in_however_it_is_escaped(
    client: Client, ascii_only: bool
) -> None:
    turn = {"role": "user", "content": "\U0001f600" * 8000}
    body = {"question": "x", "conversation": [turn] * 20}
    response = await client.post(
        "/v1/search",
        content=json.dumps(body, ensure_ascii=ascii_only).encode(),
        headers={"Content-Type": "application/json"},
    )
    assert response.status_code == 200


async def test_a_body_in_pieces_beyond_the_limit_is_refused(client: Client) -> None:
    async def pieces() -> AsyncIterator[bytes]:
        for _ in range(MAX_BODY_BYTES // 1024 + 1):
            yield b" " * 1024

    response = await client.post("/v1/search", content=pieces())
    assert response.status_code == 413


@pytest.mark.parametrize(
    ("method", "path", "status"), [("GET", "/v1/search", 405), ("GET", "/x", 404)]
)
async def test_unknown_places_answer_in_the_same_shape(
    client: Client, method: str, path: str, status: int
) -> None:
    response = await client.request(method, path)
    assert response.status_code == status
    assert set(response.json()["error"]) == {"code", "message"}


async def test_a_question_that_is_too_long_is_an_error_of_the_caller(client: Client) -> None:
    response = await client.post("/v1/search", json={"question": "x" * 2001})
    assert (response.status_code, response.json()["error"]["code"]) == (422, "question_error")
