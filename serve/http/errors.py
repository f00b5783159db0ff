"""Turns every error into `{"error": {"code", "message"}}`: no traceback, no text of the caller."""

from __future__ import annotations

import math
from http import HTTPStatus

import structlog
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from quarry.errors import Overloaded, QuarryError
from serve.http.schemas import error_json

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
    first = error.errors()[0]
    # The names of unknown keys and the values given are the caller's text: they stay out.
    key = ".".join(str(part) for part in first["loc"][1:])
    if first["type"] == "extra_forbidden":
        message = "The body has a key that is not known here; see /docs for the ones that are."
    elif first["type"] == "json_invalid":
        message = "The body is not JSON; send one JSON object."
    elif not key:
        message = "The body is not a JSON object; send one with Content-Type: application/json."
    else:
        message = f"'{key}' is not right: {first['msg']}."
    return JSONResponse(error_json("invalid_request", message), HTTPStatus.UNPROCESSABLE_ENTITY)


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
