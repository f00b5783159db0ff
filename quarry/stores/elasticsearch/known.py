"""Rows that were read before: asked for again, they need not be sent again.

A read by id is realtime and tells a row's sequence number, which every write of the row changes.
Where it is the one that was seen before, the row is the one that was parsed before. So a read
always says what is stored now; only the content of unchanged rows is not sent and not parsed twice.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import islice
from typing import Any, Generic, TypeAlias, TypeVar

from quarry.stores.elasticsearch.client import Cluster

T = TypeVar("T")
Stamp: TypeAlias = tuple[int, int]
"""Sequence number and primary term."""


class KnownRows(Generic[T]):
    """Reads rows of one index by id and keeps the `size` that were sent last.

    `without` names the part of a row that no reader needs. Safe to use from several threads.
    """

    def __init__(
        self,
        cluster: Cluster,
        index: str,
        parse: Callable[[dict[str, Any]], T],
        *,
        size: int,
        without: Sequence[str] = (),
    ) -> None:
        self._cluster = cluster
        self._index = index
        self._parse = parse
        self._wanted: Any = {"excludes": list(without)} if without else True
        self._size = size
        self._rows: dict[str, tuple[Stamp, T]] = {}
        self._guard = threading.Lock()

    def read(self, ids: Collection[str]) -> dict[str, T]:
        """What is stored under each id now; those that are not there are left out."""
        wanted = sorted(set(ids))
        with self._guard:
            known = {key: row for key in wanted if (row := self._rows.get(key))}
        found: dict[str, T] = {}
        fresh: dict[str, tuple[Stamp, T]] = {}
        moved = []
        for hit in self._mget(wanted, known):
            key, stamp = hit["_id"], (hit["_seq_no"], hit["_primary_term"])
            if "_source" in hit:
                fresh[key] = stamp, self._parse(hit["_source"])
            elif known[key][0] == stamp:
                found[key] = known[key][1]
            else:
                moved.append(key)
        for hit in self._mget(moved, ()):
            stamp = hit["_seq_no"], hit["_primary_term"]
            fresh[hit["_id"]] = stamp, self._parse(hit["_source"])
        found |= {key: row for key, (_, row) in fresh.items()}
        with self._guard:
            for key in fresh.keys() | known.keys() - found.keys():
                self._rows.pop(key, None)  # so that what is put in stands last
            self._rows.update(fresh)
            for key in list(islice(self._rows, max(0, len(self._rows) - self._size))):
                del self._rows[key]
        return found

    def forget(self) -> None:
        """For an index that is dropped: sequence numbers of a new one begin again."""
        with self._guard:
            self._rows.clear()

    def _mget(self, ids: Sequence[str], known: Collection[str]) -> Iterator[dict[str, Any]]:
        docs = [{"_id": k} if k in known else {"_id": k, "_source": self._wanted} for k in ids]
        return self._cluster.mget(self._index, docs, source=False)
