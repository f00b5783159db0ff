"""Turns every error into `{"error": {"code", "message"}}`: no traceback, no text of the caller.

The one exception is the name of a key that is not known: who misspelt it has to find it again.
"""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

import structlog
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from quarry.errors import Overloaded, QuarryError
from serve.http.schemas import UNKNOWN_KEY, error_json

_log = structlog.get_logger(__name__)

CODES = {
    "bad_request": HTTPStatus.BAD_REQUEST,
    "not_found": HTTPStatus.NOT_FOUND,
    "method_not_allowed": HTTPStatus.METHOD_NOT_ALLOWED,
    "body_too_large": HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    "invalid_request": HTTPStatus.UNPROCESSABLE_ENTITY,
    "internal": HTTPStatus.INTERNAL_SERVER_ERROR,
}
"""What HTTP answers with beside the codes of `quarry.errors`."""

QUERY = "query"
"""Type of the error for keys in the address of a request that takes none there."""
_NAME = re.compile(r"[A-Za-z][\w-]{0,39}", re.ASCII)
"""What may be the name of a key. Anything else may be a question, and is not repeated."""

INTERNAL = error_json("internal", "Something went wrong in the server; its log says what.")


def add_handlers(app: FastAPI) -> None:
    app.add_exception_handler(QuarryError, _quarry_error)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _http_error)
    app.add_exception_handler(Exception, _fault)


def error_body(error: BaseException) -> dict[str, object]:
    """The body for any error; one that is not ours says no more than that."""
    if isinstance(error, QuarryError):
        return error_json(error.code, str(error))
    return INTERNAL


async def _quarry_error(_request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, QuarryError)
    headers = {}
    if isinstance(error, Overloaded):
        headers["Retry-After"] = str(max(1, math.ceil(error.retry_after)))
    elif error.http_status == HTTPStatus.SERVICE_UNAVAILABLE:
        headers["Retry-After"] = "1"
    elif error.http_status == HTTPStatus.UNAUTHORIZED:
        headers["WWW-Authenticate"] = "Bearer"
    if error.http_status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        _log.warning("request_failed", code=error.code, error=str(error))
    return JSONResponse(error_body(error), error.http_status, headers)


async def _invalid(_request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RequestValidationError)
    found = error.errors()
    # A misspelt key comes first: it may be why another one is missing.
    unknown = (each for each in found if each["type"] == UNKNOWN_KEY)
    message = _sentence(next(unknown, found[0]))
    return JSONResponse(error_json("invalid_request", message), HTTPStatus.UNPROCESSABLE_ENTITY)


def _sentence(first: Mapping[str, Any]) -> str:
    # The values given are the caller's text: they stay out.
    key = ".".join(str(part) for part in first["loc"][1:])
    if first["type"] == UNKNOWN_KEY:
        return _unknown_key(key, first["ctx"]["key"], first["ctx"]["known"])
    if first["type"] == QUERY:
        return "This address takes no keys after a question mark; send them in the JSON body."
    if first["type"] == "json_invalid":
        return "The body is not JSON; send one JSON object."
    if not key:
        return "The body is not a JSON object; send one with Content-Type: application/json."
    return f"'{key}' is not right: {first['msg']}."


def _unknown_key(where: str, key: str, known: list[str]) -> str:
    place = f"'{where}'" if where else "the body"
    is_name = _NAME.fullmatch(key) is not None
    named = f"The key '{key}' of {place}" if is_name else f"A key of {place}"
    near = difflib.get_close_matches(key.lower(), known, n=1) if is_name else []
    hint = f"did you mean '{near[0]}'?" if near else f"the ones that are: {', '.join(known)}."
    return f"{named} is not known here; {hint}"


async def _http_error(_request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)
    phrase = HTTPStatus(error.status_code).phrase
    message = f"{phrase}; see /docs for what there is."
    if error.status_code == HTTPStatus.BAD_REQUEST:
        message = "The body cannot be read; send one JSON object in UTF-8."
    body = error_json(phrase.lower().replace(" ", "_"), message)
    return JSONResponse(body, error.status_code, error.headers)


async def _fault(_request: Request, error: Exception) -> JSONResponse:
    _log.error("request_broke", error=type(error).__name__, exc_info=error)
    return JSONResponse(INTERNAL, HTTPStatus.INTERNAL_SERVER_ERROR)
