"""The filter as a SQLite condition, on a real table."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator

import pytest

from quarry.access.compile import sql_columns, to_sql
from quarry.access.filters import EVERYTHING, Filter
from tests.contract.filters import ROWS, FilterContract, Find


@pytest.fixture(scope="module")
def table() -> Iterator[sqlite3.Connection]:
    connection = sqlite3.connect(":memory:")
    columns = ["id", *sql_columns(ROWS["r000"])]
    connection.execute(f"CREATE TABLE rows ({', '.join(columns)})")
    for row, labels in ROWS.items():
        values = [row, *sql_columns(labels).values()]
        connection.execute(f"INSERT INTO rows VALUES ({', '.join('?' * len(values))})", values)
    yield connection
    connection.close()


class TestSqliteFilters(FilterContract):
    @pytest.fixture
    def find(self, table: sqlite3.Connection) -> Find:
        def find(filter: Filter) -> set[str]:
            condition, values = to_sql(filter, table="r")
            query = f"SELECT id FROM rows AS r WHERE {condition}"
            return {row for (row,) in table.execute(query, values)}

        return find


def test_a_table_name_is_never_text_of_the_caller() -> None:
    with pytest.raises(ValueError, match="not a table name"):
        to_sql(EVERYTHING, table="rows; DROP TABLE rows")
