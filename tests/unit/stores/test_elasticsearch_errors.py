"""No error of Elasticsearch's client leaves the store, and no page of a proxy becomes our text."""

from __future__ import annotations

import inspect
import ssl
from collections.abc import Callable
from typing import Any

import pytest

pytest.importorskip("elasticsearch")

import elasticsearch as es
from elastic_transport import ApiResponseMeta, HttpHeaders, NodeConfig
from elasticsearch import exceptions as vendor

from quarry.errors import Conflict, StoreError, StoreLost, StoreUnavailable
from quarry.stores.elasticsearch.client import Cluster
from quarry.stores.elasticsearch.failures import is_transient, translate
from tests.unit.stores.elasticsearch_node import PATIENT, Answer, Request, cluster_of, page, refusal

URL = "http://127.0.0.1:9200"


def a_call(cluster: Cluster) -> None:
    cluster.refresh("i")


def said(
    answer: Answer | Exception, monkeypatch: pytest.MonkeyPatch, kind: type[StoreError] = StoreError
) -> str:
    """The one sentence of what a call raises, which is tried again only if it may pass."""
    asked: list[Request] = []

    def answering(request: Request) -> Answer | Exception:
        asked.append(request)
        return answer

    with pytest.raises(kind) as caught:
        a_call(cluster_of(answering, monkeypatch, PATIENT))
    assert len(asked) == 1
    text = str(caught.value)
    assert "\n" not in text
    assert "<" not in text
    assert "SECRET" not in text
    assert text.endswith(".")
    return text


@pytest.mark.parametrize("status", [400, 404, 409, 500, 501, 599])
def test_a_page_of_a_proxy_is_told_by_its_status(
    status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert f"status {status}" in said(page(status), monkeypatch)


def test_a_request_that_is_too_large_says_which_limit_to_raise(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    text = said(page(413), monkeypatch)
    assert "client_max_body_size" in text
    assert "http.max_content_length" in text


@pytest.mark.parametrize(
    "answer",
    [page(401), page(403), refusal(401, "security_exception"), refusal(403, "security_exception")],
)
def test_refused_credentials_say_what_to_check(
    answer: Answer, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "elasticsearch.api_key" in said(answer, monkeypatch)


def test_a_block_is_not_taken_for_refused_credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    text = said(refusal(403, "cluster_block_exception"), monkeypatch)
    assert "cluster_block_exception" in text
    assert "api_key" not in text


def test_elasticsearch_names_its_error_and_its_reason_stays_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    text = said(refusal(400, "mapper_parsing_exception"), monkeypatch)
    assert text.endswith("refused a request: mapper_parsing_exception.")


@pytest.mark.parametrize(
    "body",
    [
        {"error": "SECRET\n<html>"},
        {"error": {"type": "SECRET <b>"}},
        {"error": {"type": ["SECRET"]}},
        {"message": "SECRET"},
        ["SECRET"],
    ],
)
def test_what_is_no_error_of_elasticsearch_is_told_by_its_status(
    body: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "status 400" in said(Answer(body, 400), monkeypatch)


def test_an_index_that_is_gone_says_how_to_get_it_back(monkeypatch: pytest.MonkeyPatch) -> None:
    gone = refusal(404, "index_not_found_exception")
    assert "quarry verify --repair" in said(gone, monkeypatch, StoreLost)


def test_another_writer_is_a_conflict(monkeypatch: pytest.MonkeyPatch) -> None:
    said(refusal(409, "version_conflict_engine_exception"), monkeypatch, Conflict)


@pytest.mark.parametrize(
    "answer", [page(200), Answer("{SECRET", 200), Answer({"hello": "world"}, kind="text/html")]
)
def test_another_server_is_not_taken_for_elasticsearch(
    answer: Answer, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "elasticsearch.url" in said(answer, monkeypatch)


META = ApiResponseMeta(
    status=500,
    http_version="1.1",
    headers=HttpHeaders(),
    duration=0.0,
    node=NodeConfig("http", "localhost", 9200),
)
VENDOR_ERRORS: list[Exception] = [
    kind("SECRET\n<html>", META, "<html>") if issubclass(kind, es.ApiError) else kind("SECRET")
    for _, kind in inspect.getmembers(vendor, inspect.isclass)
    if issubclass(kind, es.ApiError | es.TransportError)
]


@pytest.mark.parametrize("error", VENDOR_ERRORS, ids=lambda e: type(e).__name__)
def test_each_error_of_the_vendor_is_one_of_ours(error: Exception) -> None:
    text = str(translate(error, URL))
    assert text.endswith(".")
    assert "SECRET" not in text


# ---------------------------------------------------------------------------------------- TLS


def tls(cause: Exception) -> Callable[[], es.SSLError]:
    def make() -> es.SSLError:
        error = es.SSLError("SECRET")
        error.__cause__ = cause
        return error

    return make


def test_a_certificate_that_is_not_trusted_says_what_to_set(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    error = tls(ssl.SSLCertVerificationError(1, "certificate verify failed"))()
    assert "elasticsearch.ca_certs" in said(error, monkeypatch)


def test_a_server_that_speaks_no_tls_says_what_to_check(monkeypatch: pytest.MonkeyPatch) -> None:
    error = tls(ssl.SSLError(1, "WRONG_VERSION_NUMBER"))()
    assert "elasticsearch.url" in said(error, monkeypatch)


def test_a_server_that_hangs_up_while_it_starts_is_tried_again() -> None:
    error = tls(ssl.SSLEOFError(8, "EOF occurred in violation of protocol"))()
    assert is_transient(error)
    assert isinstance(translate(error, URL), StoreUnavailable)
