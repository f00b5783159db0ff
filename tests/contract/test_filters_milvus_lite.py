"""The filter as a Milvus expression, on a real Milvus Lite."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from quarry.access.compile import milvus_fields, to_milvus
from quarry.access.filters import Compare, Filter, Op
from tests.contract.filters import (
    ROWS,
    FilterContract,
    Find,
    comparisons,
    names_hostile_key,
    names_long_text,
)
from tests.contract.milvus_rows import filled_collection


def _is_inexact(compare: Compare) -> bool:
    if isinstance(compare.value, str):
        return any(c in '%_\\"' or c < " " for c in compare.value)
    return compare.op not in (Op.EQ, Op.NE)


class TestMilvusLiteFilters(FilterContract):
    def may_widen(self, filter: Filter) -> bool:
        """LIKE has wildcards and no escape, and in Lite true is 1."""
        return (
            names_long_text(filter)
            or names_hostile_key(filter)
            or any(_is_inexact(compare) for compare in comparisons(filter))
        )

    @pytest.fixture(scope="class")
    def find(self, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Find]:
        rows = {row: milvus_fields(labels) for row, labels in ROWS.items()}
        path: Path = tmp_path_factory.mktemp("lite") / "filters.db"
        with filled_collection(str(path), rows) as query:
            yield lambda filter: query(to_milvus(filter, lite=True))
