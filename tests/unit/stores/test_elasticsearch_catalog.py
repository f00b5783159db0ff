"""What the catalog makes of rows that Elasticsearch refuses, without a server."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import Any

import pytest

from quarry.errors import Conflict, RowsRejected
from quarry.records import DocState, Document
from quarry.settings_stores import ElasticsearchSettings
from quarry.stores.elasticsearch.catalog import VERSION_CONFLICT, ElasticsearchCatalog
from tests.contract.rows import document
from tests.unit.stores.elasticsearch_node import Answer, Request, cluster_of


class Cluster:
    """Holds nothing, and refuses the writes that it is told to."""

    settings = ElasticsearchSettings()

    def __init__(self, refused: dict[str, str]) -> None:
        self.refused = refused
        self.written: list[str] = []

    def index(self, generation: str, kind: str) -> str:
        return f"{generation}-{kind}"

    def mget(self, index: str, docs: Sequence[Any]) -> Iterator[dict[str, Any]]:
        return iter(())

    def bulk(self, index: str, operations: Sequence[tuple[dict[str, Any], Any]]) -> dict[str, str]:
        self.written += [source["doc_id"] for _, source in operations]
        return self.refused

    def refresh(self, index: str) -> None:
        """Nothing to do."""


def opened(cluster: Cluster) -> ElasticsearchCatalog:
    return ElasticsearchCatalog(cluster, "g1", retention=timedelta(0))  # type: ignore[arg-type]


def test_a_row_that_is_refused_does_not_stop_the_others() -> None:
    reasons = {"d1": "illegal_argument_exception", "d2": VERSION_CONFLICT}
    results = opened(Cluster(reasons)).commit_many([document(f"d{n}") for n in (1, 2, 3)])
    assert [type(result) for result in results] == [RowsRejected, Conflict, Document]
    assert isinstance(results[0], RowsRejected)
    assert results[0].rows == {"d1": "illegal_argument_exception"}


@pytest.mark.parametrize(
    ("source", "query"), [("", {"match_all": {}}), ("wiki", {"term": {"source": "wiki"}})]
)
def test_rows_are_counted_over_all_sources_or_one(
    source: str, query: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Any] = []

    def answer(request: Request) -> Answer:
        if "_search" not in request.path:
            return Answer()
        asked.append(request.json)
        buckets = [{"key": "indexed", "doc_count": 2}, {"key": "deleted", "doc_count": 1}]
        return Answer({"aggregations": {"all": {"buckets": buckets}}})

    catalog = ElasticsearchCatalog(cluster_of(answer, monkeypatch), "g1", retention=timedelta(0))
    assert catalog.counts(source=source) == {DocState.INDEXED: 2, DocState.DELETED: 1}
    assert [each["query"] for each in asked] == [query]


@pytest.mark.parametrize(
    "bad",
    [{"title": "x\ud800"}, {"series": "x\ud800"}, {"metadata": {"owner": "x\ud800"}}],
    ids=str,
)
def test_a_row_that_is_no_unicode_is_not_even_sent(bad: dict[str, Any]) -> None:
    cluster = Cluster({})
    rejected, good = opened(cluster).commit_many([document("d1", **bad), document("d2")])
    assert isinstance(rejected, RowsRejected) and isinstance(good, Document)
    assert cluster.written == ["d2"]
    with pytest.raises(RowsRejected):
        opened(cluster).commit(document("d1", **bad))
