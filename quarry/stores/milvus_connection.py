"""One connection to Milvus: reconnects, retries what may pass, and raises only errors of ours."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import TypeVar

import grpc
from pymilvus import MilvusClient
from pymilvus.exceptions import MilvusException
from tenacity import (
    Retrying,
    retry_if_exception,
    stop_after_delay,
    wait_random_exponential,
)

from quarry.errors import QuarryError, StoreError, StoreLost, StoreUnavailable
from quarry.settings_stores import MilvusSettings
from quarry.stores.tls import ca_file

T = TypeVar("T")

VENDOR_ERRORS = (MilvusException, grpc.RpcError, grpc.FutureTimeoutError)

TRANSIENT_CODES = frozenset({2, 3, 4, 8, 101, 103, 106, 401, 503, 901, 902, 1000})
"""Codes of Milvus 2.3 that say "not now": service unavailable or out of memory, too many requests,
rate limit, collection or replica still loading, channel or node gone, message queue."""
TRANSIENT_STATUS = frozenset(
    {grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED, grpc.StatusCode.ABORTED}
)
CHANNEL_OPTIONS = {
    "grpc.initial_reconnect_backoff_ms": 100,
    "grpc.min_reconnect_backoff_ms": 5000,  # time for one attempt
    "grpc.max_reconnect_backoff_ms": 1000,
}
"""Without them gRPC waits longer after each failure, up to two minutes, before it tries again to
connect, and fails every call at once until then: Milvus would be back and not be used."""
NO_COLLECTION = 100


class MilvusConnection:
    """Calls with a time limit each and a time limit in all; safe to use from several threads.

    `address` is asked before each call: when the owner of Milvus Lite changes, so does the address.
    """

    def __init__(self, settings: MilvusSettings, address: Callable[[], str]) -> None:
        # It prints a traceback for every error that it also raises; ours go to the person once.
        logging.getLogger("pymilvus").setLevel(logging.CRITICAL)
        self._settings = settings
        self._ca_file = ca_file(settings.ca_certs, "stores.milvus.ca_certs")
        self._address = address
        self._lock = threading.Lock()
        self._clients: dict[str, MilvusClient] = {}

    def call(self, request: Callable[[MilvusClient], T]) -> T:
        """Runs `request`, again while its error may pass. Raises StoreUnavailable, StoreError."""
        retrying = Retrying(
            stop=stop_after_delay(self._settings.total_s),
            wait=wait_random_exponential(multiplier=0.1, max=2.0),
            retry=retry_if_exception(self._may_pass),
            reraise=True,
        )
        try:
            return retrying(lambda: request(self._client()))
        except QuarryError:
            raise
        except Exception as error:
            raise translate(error, self._settings.total_s) from error

    def _may_pass(self, error: BaseException) -> bool:
        """An owner that is gone is waited for only if there was one: it may be changing."""
        if isinstance(error, StoreUnavailable):
            return bool(self._clients)
        return is_transient(error)

    def _client(self) -> MilvusClient:
        address = self._address()
        with self._lock:
            if address not in self._clients:
                self._clients[address] = self._connect(address)
            return self._clients[address]

    def _connect(self, address: str) -> MilvusClient:
        token = self._settings.token
        return MilvusClient(
            uri=address,
            token=token.get_secret_value() if token else "",
            timeout=self._settings.timeout_s,
            dedicated=True,
            grpc_options=CHANNEL_OPTIONS,
            server_pem_path=self._ca_file,
        )

    def close(self) -> None:
        with self._lock:
            clients, self._clients = self._clients, {}
        for client in clients.values():
            client.close()


def is_transient(error: BaseException) -> bool:
    """Whether the same request may succeed a little later."""
    if isinstance(error, MilvusException):
        if error.code in TRANSIENT_STATUS or error.retriable:
            return True
        return error.code in TRANSIENT_CODES or error.compatible_code in (8, 49)
    if isinstance(error, grpc.RpcError):
        code = getattr(error, "code", None)
        return callable(code) and code() in TRANSIENT_STATUS
    return isinstance(error, grpc.FutureTimeoutError)


def is_missing_collection(error: BaseException) -> bool:
    return isinstance(error, MilvusException) and error.code == NO_COLLECTION


def translate(error: Exception, total_s: float) -> StoreError:
    """Our error for anything that the client raises."""
    if is_transient(error):
        return StoreUnavailable(
            f"Milvus did not answer within {total_s:g} seconds; check that it runs, its address, "
            "and with https:// its certificate (milvus.ca_certs)."
        )
    if is_missing_collection(error):
        return StoreLost.of("The vectors of this index are")
    # Its message may quote the request: filter values and groups, which no log or client may see.
    if isinstance(error, MilvusException):
        return StoreError(f"Milvus refused a request with code {error.code}; its own log says why.")
    return StoreError(f"Milvus failed with {type(error).__name__}; look at its log.")
