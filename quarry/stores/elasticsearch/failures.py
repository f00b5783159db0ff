"""What a failed request to Elasticsearch means: whether it may pass, and which of our errors it is.

Between us and Elasticsearch there may be a proxy, whose answers are pages and not Elasticsearch's
JSON. So nothing of an answer becomes text of ours but the name that Elasticsearch gives an error.
"""

from __future__ import annotations

import re
import ssl
from collections.abc import Iterator, Mapping

import elasticsearch as es
from urllib3.util.ssl_match_hostname import CertificateError

from quarry.errors import Conflict, QuarryError, StoreError, StoreLost, StoreUnavailable

TRANSIENT_STATUS = frozenset({408, 429, 502, 503, 504})
TOO_LARGE = 413
NO_INDEX = "index_not_found_exception"
_NAME = re.compile(r"[a-z][a-z0-9_]{0,99}")
_HUNG_UP = (ssl.SSLEOFError, ssl.SSLZeroReturnError, ssl.SSLSyscallError)
"""A peer that went away in the middle of a connection, which passes; what it is does not."""
_CERTIFICATE = (ssl.SSLCertVerificationError, CertificateError)


class ItemsPending(QuarryError):
    """Some items of a request failed for a passing reason (429 and such)."""


def is_transient(error: BaseException) -> bool:
    """Whether the same request may succeed a little later."""
    if isinstance(error, es.ApiError):
        return error.status_code in TRANSIENT_STATUS
    if isinstance(error, es.SSLError):
        return any(isinstance(cause, _HUNG_UP) for cause in _causes(error))
    return isinstance(error, es.ConnectionError | es.ConnectionTimeout | ItemsPending)


def is_too_large(error: BaseException) -> bool:
    return isinstance(error, es.ApiError) and error.status_code == TOO_LARGE


def is_missing(error: es.NotFoundError) -> bool:
    """Whether Elasticsearch says that the row or its index is not there; a proxy cannot know."""
    body = error.body
    unknown = isinstance(body, Mapping) and body.get("found") is False
    return unknown or error_name(body) == NO_INDEX


def error_name(answer: object) -> str:
    """Elasticsearch's name of the error in an answer, such as `index_not_found_exception`; "" if it
    has none. Its reason is left out: it may quote the document or the question."""
    error = answer.get("error") if isinstance(answer, Mapping) else None
    name = error.get("type") if isinstance(error, Mapping) else None
    return name if isinstance(name, str) and _NAME.fullmatch(name) else ""


def translate(error: Exception, url: str) -> StoreError:
    """The vendor's error as one of ours."""
    where = f"Elasticsearch at {url}"
    if is_transient(error):
        return StoreUnavailable(f"{where} cannot be reached; start it or check elasticsearch.url.")
    if isinstance(error, es.SSLError):
        return StoreError(_tls(error, where))
    if isinstance(error, es.ApiError):
        return _answered(error, where)
    return StoreError(
        f"{where} gave an answer that cannot be read ({type(error).__name__}); check that "
        "elasticsearch.url names it and no other server."
    )


def _answered(error: es.ApiError, where: str) -> StoreError:
    status, name = error.status_code, error_name(error.body)
    if isinstance(error, es.UnsupportedProductError):
        return StoreError(f"{where} is another server; check elasticsearch.url.")
    if status == 401 or (status == 403 and name in ("", "security_exception")):
        return StoreError(f"{where} refused the credentials; check elasticsearch.api_key.")
    if status == 409 and name:
        return Conflict("Another writer changed this document in Elasticsearch; read it again.")
    if status == TOO_LARGE:
        return StoreError(
            f"{where} refused a request for its size; raise the limit of the proxy before it "
            "(nginx: client_max_body_size) or http.max_content_length."
        )
    if name == NO_INDEX:
        return StoreLost.of(f"Indices of {where} are")
    if name:
        return StoreError(f"{where} refused a request: {name}.")
    return StoreError(
        f"{where} answered with status {status} and not as Elasticsearch does; look at the proxy "
        "before it, or check elasticsearch.url."
    )


def _tls(error: es.SSLError, where: str) -> str:
    if any(isinstance(cause, _CERTIFICATE) for cause in _causes(error)):
        return (
            f"The certificate of {where} is not trusted; set elasticsearch.ca_certs to that of its "
            "CA, and name the host in elasticsearch.url as the certificate does."
        )
    return f"{where} does not speak TLS as it should; check the scheme of elasticsearch.url."


def _causes(error: BaseException) -> Iterator[BaseException]:
    """The error, and those that it was raised for."""
    cause: BaseException | None = error
    while cause is not None:
        yield cause
        cause = cause.__cause__ or cause.__context__
