"""docs/api.md says what the code does."""

from __future__ import annotations

import re
from collections.abc import Iterator

from quarry.errors import ParseError, QuarryError
from serve.http.errors import CODES
from serve.http.limits import MAX_BODY_BYTES
from tests.conftest import REPO

PAGE = (REPO / "docs" / "api.md").read_text(encoding="utf-8")
ROW = re.compile(r"^\| `(?P<code>\w+)` \| (?P<http>\d+|—) \| (?P<exit>\d+|—) \| \S.* \|$", re.M)


def kinds(kind: type[QuarryError] = QuarryError) -> Iterator[type[QuarryError]]:
    yield kind
    for below in kind.__subclasses__():
        if below.__module__ == QuarryError.__module__:
            yield from kinds(below)


def test_every_error_code_is_in_the_table_with_its_status_and_exit_code() -> None:
    ours = {
        kind.__new__(kind).code: (
            "—" if kind is ParseError else str(kind.http_status),
            str(kind.exit_code),
        )
        for kind in kinds()
    }
    http_only = {code: (str(int(status)), "—") for code, status in CODES.items()}
    rows = [row.groups() for row in ROW.finditer(PAGE)]
    assert {code: (http, ends) for code, http, ends in rows} == ours | http_only
    assert len(rows) == len(ours) + len(http_only), "a code has one row"


def test_the_limit_of_a_body_is_in_the_table() -> None:
    assert f"more than {MAX_BODY_BYTES:,} bytes" in PAGE


def test_the_table_is_in_the_order_of_statuses() -> None:
    statuses = [int(row["http"]) for row in ROW.finditer(PAGE) if row["http"] != "—"]
    assert statuses == sorted(statuses)
