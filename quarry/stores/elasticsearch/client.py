"""One connection to an Elasticsearch cluster: retries with a total, bulk by item, our errors."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias, TypeVar

from tenacity import Retrying, retry_if_exception, stop_after_delay, wait_random_exponential

from quarry.addresses import shown
from quarry.errors import MissingExtra, StoreError, StoreUnavailable
from quarry.settings_stores import ElasticsearchSettings
from quarry.stores.tls import ca_file

try:
    import elasticsearch as es
    import orjson

    from quarry.stores.elasticsearch.failures import (
        NO_INDEX,
        TRANSIENT_STATUS,
        ItemsPending,
        error_name,
        is_too_large,
        is_transient,
        translate,
    )
except ImportError as error:  # the extra is optional; importing this package is not
    raise MissingExtra("elasticsearch", "elasticsearch") from error

T = TypeVar("T")
Encoded: TypeAlias = tuple[bytes, bytes | None]
"""An action and its source, if it has one."""

BULK_OPERATIONS = 1000
BULK_BYTES = 8 * 1024 * 1024
"""Elasticsearch's own advice for one bulk request is 5–15 MB."""
PAGE = 1000
INDEX_EXISTS = "resource_already_exists_exception"


class _Json(es.OrjsonSerializer):  # type: ignore[misc]
    """Answers of hundreds of passages are parsed three times as fast by it."""

    mimetype = "application/vnd.elasticsearch+json"


class Cluster:
    """Calls with a time limit each and one in all; raises only errors of `quarry.errors`."""

    def __init__(self, settings: ElasticsearchSettings) -> None:
        key = settings.api_key.get_secret_value() if settings.api_key else None
        ca = ca_file(settings.ca_certs, "stores.elasticsearch.ca_certs")
        self.settings = settings
        self._at = shown(settings.url)
        self.client = es.Elasticsearch(
            settings.url,
            api_key=key,
            **({"ca_certs": ca} if ca else {}),
            request_timeout=settings.timeout_s,
            serializers={_Json.mimetype: _Json()},
            max_retries=0,  # ours have a total
            retry_on_timeout=False,
        )
        self._bulk_bytes = BULK_BYTES
        """Less once a request of so many bytes was refused: a proxy may take no more than 1 MB."""

    def index(self, generation: str, kind: str) -> str:
        """Name of one of a generation's indices, such as `quarry-g1-chunks`."""
        return f"{self.settings.index_prefix}-{generation}-{kind}"

    def call(self, request: Callable[[es.Elasticsearch], T]) -> T:
        """Runs one request, again with backoff while it fails for a passing reason."""
        retrying = Retrying(
            stop=stop_after_delay(self.settings.total_s),
            wait=wait_random_exponential(multiplier=0.1, max=5.0),
            retry=retry_if_exception(is_transient),
            reraise=True,
        )
        try:
            return retrying(request, self.client)
        except (es.ApiError, es.TransportError) as error:
            raise translate(error, self._at) from error

    def ensure(self, index: str, body: Mapping[str, Any]) -> None:
        """Creates an index if it is not there; two at once are fine."""
        if self.call(lambda c: bool(c.indices.exists(index=index))):
            return

        def create(client: es.Elasticsearch) -> None:
            try:
                client.indices.create(index=index, **body)
            except es.BadRequestError as error:
                if error_name(error.body) != INDEX_EXISTS:
                    raise

        self.call(create)
        self.call(lambda c: c.cluster.health(index=index, wait_for_status="yellow", timeout="30s"))

    def drop(self, indices: Sequence[str]) -> None:
        self.call(lambda c: c.indices.delete(index=list(indices), ignore_unavailable=True))

    def refresh(self, index: str) -> None:
        """Makes all completed writes visible to searches; cheap when nothing has changed."""
        self.call(lambda c: c.indices.refresh(index=index))

    def bulk(self, index: str, operations: Sequence[tuple[dict[str, Any], Any]]) -> dict[str, str]:
        """Runs (action, source or None) pairs; gives the ids that are refused for good, and why.

        Retries only the items that failed for a passing reason; raises StoreUnavailable when the
        total time is up. A delete of a row that is not there is no failure. A request that is
        refused for its size is sent again in parts.
        """
        rejected: dict[str, str] = {}
        for batch in _batches(_encoded(operations), lambda: self._bulk_bytes):
            rejected |= self._bulk_batch(index, batch)
        return rejected

    def _bulk_batch(self, index: str, batch: list[Encoded]) -> dict[str, str]:
        rejected: dict[str, str] = {}
        pending = batch
        refused = False

        def attempt(client: es.Elasticsearch) -> None:
            nonlocal pending, refused
            try:
                answer = client.bulk(index=index, operations=_lines(pending))
            except es.ApiError as error:
                if not is_too_large(error):
                    raise
                refused = True
                return
            pending, failed = _sorted_out(pending, answer["items"])
            rejected.update(failed)
            if pending:
                raise ItemsPending(f"{len(pending)} rows were turned away for now")

        try:
            self.call(attempt)
        except ItemsPending:
            raise StoreUnavailable(
                f"Elasticsearch at {self._at} turned rows away for "
                f"{self.settings.total_s:.0f} s; look at its load and disk, then run again."
            ) from None
        return rejected | self._in_parts(index, pending) if refused else rejected

    def _in_parts(self, index: str, batch: list[Encoded]) -> dict[str, str]:
        """Writes what was refused as one request; a row that is too large by itself is rejected."""
        size = sum(map(_weight, batch))
        if len(batch) == 1:
            return {
                _row_id(batch[0]): f"its {size} bytes are more than one request may have; raise "
                "the limit of the proxy (nginx: client_max_body_size) or http.max_content_length"
            }
        self._bulk_bytes = min(self._bulk_bytes, size // 2)
        rejected: dict[str, str] = {}
        for part in _batches(batch, lambda: size // 2):
            rejected |= self._bulk_batch(index, part)
        return rejected

    def mget(
        self, index: str, docs: Sequence[Mapping[str, Any]], *, source: bool = True
    ) -> Iterator[dict[str, Any]]:
        """Realtime read of the rows that `docs` name by `_id`; those that are not there are left
        out. `source`: whether a row whose `docs` entry says nothing of `_source` is sent.

        While a shard is on its way back, the answer has an error in the place of each of its rows:
        these are not missing, and are asked for again. Raises StoreUnavailable.
        """

        for start in range(0, len(docs), PAGE):
            yield from self._mget_page(index, docs[start : start + PAGE], source=source)

    def _mget_page(
        self, index: str, docs: Sequence[Mapping[str, Any]], *, source: bool
    ) -> list[dict[str, Any]]:
        def read(client: es.Elasticsearch) -> list[dict[str, Any]]:
            answer = client.mget(index=index, docs=docs, source=source)
            rows: list[dict[str, Any]] = answer["docs"]
            errors = {row["error"].get("type") for row in rows if "error" in row}
            if errors - {NO_INDEX}:
                raise ItemsPending(f"{len(rows)} rows cannot be read for now")
            return [row for row in rows if row.get("found")]

        try:
            return self.call(read)
        except ItemsPending:
            raise StoreUnavailable(
                f"Elasticsearch at {self._at} had no shard of {index} to read from for "
                f"{self.settings.total_s:.0f} s; look at its health, then run again."
            ) from None

    def first_hits(
        self, index: str, queries: Sequence[Mapping[str, Any]]
    ) -> list[dict[str, Any] | None]:
        """One row that each query matches, in one request; None for a query without any."""
        searches: list[dict[str, Any]] = []
        for query in queries:
            one = {"size": 1, "terminate_after": 1, "track_total_hits": False, "_source": False}
            searches += [{"allow_partial_search_results": False}, {"query": query, **one}]

        def search(client: es.Elasticsearch) -> list[dict[str, Any] | None]:
            answers = client.msearch(index=index, searches=searches)["responses"]
            failed = [answer for answer in answers if "error" in answer]
            if any(answer["status"] in TRANSIENT_STATUS for answer in failed):
                raise ItemsPending(f"{len(failed)} searches failed for now")
            if failed:
                raise StoreError(
                    f"Elasticsearch at {self._at} refused a search: "
                    f"{error_name(failed[0]) or 'unknown'}."
                )
            return [next(iter(answer["hits"]["hits"]), None) for answer in answers]

        try:
            return self.call(search)
        except ItemsPending:
            raise StoreUnavailable(
                f"Elasticsearch at {self._at} turned searches away for "
                f"{self.settings.total_s:.0f} s; look at its health, then run again."
            ) from None

    def pages(
        self,
        index: str,
        *,
        query: Mapping[str, Any],
        sort: str,
        after: str = "",
        limit: int | None = None,
        source: Sequence[str] | bool = True,
    ) -> Iterator[dict[str, Any]]:
        """Hits in the order of one keyword field, from the first value greater than `after`."""
        left = limit
        cursor = after
        while left is None or left > 0:
            size = PAGE if left is None else min(PAGE, left)
            request: dict[str, Any] = {
                "index": index,
                "allow_partial_search_results": False,  # a row that is left out would count as gone
                "query": query,
                "sort": [{sort: "asc"}],
                "size": size,
                "source": source,
                "track_total_hits": False,
            }
            if cursor:
                request["search_after"] = [cursor]
            hits = self.call(lambda c, r=request: c.search(**r))["hits"]["hits"]  # type: ignore[misc]
            yield from hits
            if len(hits) < size:
                return
            cursor = hits[-1]["sort"][0]
            left = None if left is None else left - len(hits)

    def close(self) -> None:
        self.client.close()


def _encoded(operations: Iterable[tuple[dict[str, Any], Any]]) -> Iterator[Encoded]:
    """As the lines of a bulk request, once for all its attempts."""
    for action, source in operations:
        yield orjson.dumps(action), None if source is None else orjson.dumps(source)


def _batches(
    operations: Iterable[Encoded], most_bytes: Callable[[], int]
) -> Iterator[list[Encoded]]:
    """Splits by number and by bytes, which may be fewer from one batch to the next."""
    batch: list[Encoded] = []
    size = 0
    for operation in operations:
        weight = _weight(operation)
        if batch and (len(batch) >= BULK_OPERATIONS or size + weight > most_bytes()):
            yield batch
            batch, size = [], 0
        batch.append(operation)
        size += weight
    if batch:
        yield batch


def _weight(operation: Encoded) -> int:
    return sum(map(len, _lines([operation])))


def _lines(operations: Iterable[Encoded]) -> list[bytes]:
    return [line for operation in operations for line in operation if line is not None]


def _row_id(operation: Encoded) -> str:
    (action,) = orjson.loads(operation[0]).values()
    return str(action["_id"])


def _sorted_out(
    batch: Sequence[Encoded], items: Sequence[Mapping[str, Any]]
) -> tuple[list[Encoded], dict[str, str]]:
    """What must be sent again, and what is refused for good."""
    again: list[Encoded] = []
    rejected: dict[str, str] = {}
    for operation, item in zip(batch, items, strict=True):
        (result,) = item.values()
        status = result["status"]
        if status in TRANSIENT_STATUS:
            again.append(operation)
        elif status >= 400 and not (status == 404 and "delete" in item):
            rejected[result["_id"]] = error_name(result) or "unknown"
    return again, rejected
