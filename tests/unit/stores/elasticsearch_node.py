"""Elasticsearch as a function: Quarry's own client on top, no server below."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import pytest

pytest.importorskip("elasticsearch")

from elastic_transport import ApiResponseMeta, HttpHeaders, Urllib3HttpNode

from quarry.settings_stores import ElasticsearchSettings
from quarry.stores.elasticsearch.client import Cluster

SETTINGS = ElasticsearchSettings(total_s=0.3, timeout_s=0.1)
PATIENT = ElasticsearchSettings(total_s=30.0)


@dataclass(frozen=True, slots=True)
class Request:
    method: str
    path: str
    body: bytes

    @property
    def lines(self) -> list[Any]:
        """The JSON lines of a bulk or multi-search."""
        return [json.loads(line) for line in self.body.splitlines() if line]

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass(frozen=True, slots=True)
class Answer:
    body: Any = field(default_factory=dict)
    status: int = 200
    kind: str = "application/vnd.elasticsearch+json; compatible-with=9"


PAGE = "<html>\r\n<head><title>{status} SECRET</title></head>\r\n<center>nginx</center></html>"


def page(status: int) -> Answer:
    """What a proxy says."""
    return Answer(PAGE.format(status=status), status, kind="text/html")


def refusal(status: int, name: str) -> Answer:
    """What Elasticsearch says."""
    error = {"type": name, "reason": "SECRET text of a document"}
    return Answer({"error": error | {"root_cause": [error]}, "status": status}, status)


class NodeAnswer(NamedTuple):
    meta: ApiResponseMeta
    body: bytes


Answering = Callable[[Request], Answer | Exception]


def cluster_of(
    answering: Answering,
    monkeypatch: pytest.MonkeyPatch,
    settings: ElasticsearchSettings = SETTINGS,
) -> Cluster:
    """A cluster whose requests are answered, or fail, by a function."""

    def perform_request(
        node: Urllib3HttpNode, method: str, target: str, body: Any = None, **_: Any
    ) -> NodeAnswer:
        answer = answering(Request(method, target, body or b""))
        if isinstance(answer, Exception):
            raise answer
        content = answer.body if isinstance(answer.body, str) else json.dumps(answer.body)
        headers = {"x-elastic-product": "Elasticsearch"} if answer.kind != "text/html" else {}
        meta = ApiResponseMeta(
            status=answer.status,
            http_version="1.1",
            headers=HttpHeaders({"content-type": answer.kind, **headers}),
            duration=0.0,
            node=node.config,
        )
        return NodeAnswer(meta, content.encode())

    monkeypatch.setattr(Urllib3HttpNode, "perform_request", perform_request)
    return Cluster(settings)
