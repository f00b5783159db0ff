"""No error of the Milvus client leaves the store: each is one of ours, and some are retried."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import grpc
import numpy as np
import pytest
from pymilvus import exceptions as vendor

from quarry.access import EVERYTHING
from quarry.errors import StoreError, StoreUnavailable
from quarry.ports import VectorStore
from quarry.settings_stores import MilvusSettings
from quarry.stores.milvus import MilvusVectorStore
from quarry.stores.milvus_connection import MilvusConnection, is_transient, translate
from tests.contract.rows import DIMENSION, vector, vector_row


class RpcFailure(grpc.RpcError):  # type: ignore[misc]
    def __init__(self, status: grpc.StatusCode) -> None:
        super().__init__()
        self._status = status

    def code(self) -> grpc.StatusCode:
        return self._status

    def details(self) -> str:
        return "no word of it"


VENDOR_CLASSES: list[Any] = [
    kind
    for _, kind in inspect.getmembers(vendor, inspect.isclass)
    if issubclass(kind, vendor.MilvusException)
]
ERRORS: list[Exception] = [
    *(kind(code=1, message="it is broken") for kind in VENDOR_CLASSES),
    *(RpcFailure(status) for status in grpc.StatusCode),
    grpc.FutureTimeoutError(),
    ValueError("Cannot invoke RPC on closed channel!"),
    KeyError("vector"),
]
ONCE = MilvusSettings(uri="http://127.0.0.1:1", total_s=0.01, timeout_s=0.01)

CALLS: dict[str, Callable[[MilvusVectorStore], object]] = {
    "ensure": lambda s: s.ensure(DIMENSION),
    "upsert": lambda s: s.upsert([vector_row("a", vector(1.0))]),
    "fetch": lambda s: s.fetch(["a"]),
    "present": lambda s: s.present(["a"]),
    "row_refs": lambda s: s.row_refs(["d"]),
    "delete": lambda s: s.delete(["a"]),
    "search": lambda s: s.search(vector(1.0), limit=1, where=EVERYTHING),
    "scan": lambda s: s.scan(),
    "count": lambda s: s.count(),
    "flush": lambda s: s.flush(),
    "drop": lambda s: s.drop(),
}


class Broken:
    """A client whose every method raises."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    def __getattr__(self, name: str) -> Any:
        def fail(*args: Any, **options: Any) -> Any:
            raise self._error

        return fail


def connect_to(client: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(MilvusConnection, "_connect", lambda self, address: client)


def test_every_method_of_the_port_is_tried() -> None:
    methods = {name for name in vars(VectorStore) if not name.startswith("_")}
    assert methods - {"close"} == set(CALLS)


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("error", ERRORS, ids=lambda e: f"{type(e).__name__} {e!s}"[:40])
def test_no_vendor_error_leaves_a_method(
    name: str, error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    connect_to(Broken(error), monkeypatch)
    with pytest.raises(StoreError) as caught:
        CALLS[name](MilvusVectorStore(ONCE, "g1"))
    assert "\n" not in str(caught.value)


def test_errors_of_connecting_are_ours_too(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: MilvusConnection, address: str) -> object:
        raise vendor.MilvusException(code=2, message="Fail connecting to server")

    monkeypatch.setattr(MilvusConnection, "_connect", refuse)
    with pytest.raises(StoreUnavailable, match="Milvus did not answer"):
        MilvusVectorStore(ONCE, "g1").count()


@pytest.mark.parametrize(
    "error",
    [
        RpcFailure(grpc.StatusCode.UNAVAILABLE),
        RpcFailure(grpc.StatusCode.DEADLINE_EXCEEDED),
        vendor.MilvusException(code=grpc.StatusCode.UNAVAILABLE, message="Retry timeout"),
        vendor.MilvusException(code=2, message="service unavailable"),
        vendor.MilvusException(code=8, message="rate limit"),
        vendor.MilvusException(code=1, message="it says so itself", retriable=True),
    ],
)
def test_what_may_pass_is_tried_again_until_it_passes(
    error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Recovering(Broken):
        tries = 0

        def query(self, *args: Any, **options: Any) -> list[dict[str, int]]:
            self.tries += 1
            if self.tries < 3:
                raise self._error
            return [{"count(*)": 7}]

    client = Recovering(error)
    connect_to(client, monkeypatch)
    patient = ONCE.model_copy(update={"total_s": 30.0})
    assert MilvusVectorStore(patient, "g1").count() == 7
    assert client.tries == 3


def test_what_cannot_pass_is_tried_once(monkeypatch: pytest.MonkeyPatch) -> None:
    class Counting(Broken):
        tries = 0

        def query(self, *args: Any, **options: Any) -> None:
            self.tries += 1
            raise self._error

    client = Counting(vendor.ParamError(message="wrong"))
    connect_to(client, monkeypatch)
    with pytest.raises(StoreError, match="Milvus refused a request with code"):
        MilvusVectorStore(ONCE.model_copy(update={"total_s": 30.0}), "g1").count()
    assert client.tries == 1


def test_what_milvus_says_is_not_passed_on_for_it_may_quote_the_request() -> None:
    error = vendor.MilvusException(code=1100, message='cannot parse: region == "SECRET"')
    assert str(translate(error, 60)) == (
        "Milvus refused a request with code 1100; its own log says why."
    )
    assert "SECRET" not in str(translate(ValueError("SECRET"), 60))
    assert not is_transient(error)


def test_a_missing_collection_says_what_to_do() -> None:
    error = vendor.MilvusException(code=100, message="collection not found")
    assert "ingest" in str(translate(error, 60))


def test_vectors_of_another_length_than_the_collection_are_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Other(Broken):
        def has_collection(self, *args: Any, **options: Any) -> bool:
            return True

        def list_indexes(self, *args: Any, **options: Any) -> list[str]:
            return ["vector"]

        def load_collection(self, *args: Any, **options: Any) -> None:
            return None

        def describe_collection(self, *args: Any, **options: Any) -> dict[str, Any]:
            return {"fields": [{"name": "vector", "params": {"dim": 3}}]}

    connect_to(Other(KeyError()), monkeypatch)
    with pytest.raises(StoreError, match="3 dimensions and not 8"):
        MilvusVectorStore(ONCE, "g1").ensure(DIMENSION)


@pytest.mark.parametrize("matching", [5, 20_000])
def test_a_search_that_a_filter_starves_compares_what_matches_or_widens_its_beam(
    matching: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    beams: list[int] = []
    rows = [{"row_id": f"r{n}", "doc_id": "d", "revision": "t"} for n in range(5)]

    class Starved(Broken):
        def search(self, *args: Any, **options: Any) -> list[list[dict[str, Any]]]:
            beams.append(options["search_params"]["params"]["ef"])
            found = rows[:1] if len(beams) == 1 else rows
            return [[{"distance": 1.0, "entity": row} for row in found]]

        def query(self, *args: Any, **options: Any) -> list[dict[str, Any]]:
            if options["output_fields"] == ["count(*)"]:
                return [{"count(*)": matching}]
            vectors = np.eye(DIMENSION, dtype=np.float32)
            return [{**row, "vector": vectors[n]} for n, row in enumerate(rows)]

    connect_to(Starved(KeyError()), monkeypatch)
    question = np.arange(DIMENSION, dtype=np.float32)
    hits = MilvusVectorStore(ONCE, "g1").search(question, limit=10, where=EVERYTHING)
    if matching == 5:
        assert [(hit.row_id, hit.score) for hit in hits] == [(f"r{n}", n) for n in (4, 3, 2, 1, 0)]
        assert len(beams) == 1
    else:
        assert len(hits) == 5
        assert beams[1] > beams[0]
