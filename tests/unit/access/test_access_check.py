"""The catalog check: closed by default, and of a series only the current version."""

from __future__ import annotations

from dataclasses import replace
from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quarry.access.check import (
    admit,
    current_of_series,
    fields_of,
    may_read,
    scope_filter,
    search_filter,
)
from quarry.access.compile import labels_of, matches
from quarry.access.language import parse_filter
from quarry.errors import UsageError
from quarry.records import Document, Principal, Status

TODAY = date(2026, 11, 30)
ANA = Principal(user="ana", groups=("hr",))
NOBODY = Principal()


def document(name: str = "d", **fields: object) -> Document:
    values = {"source": "wiki", "revision": "00000000-aa", "acl": ("public",), **fields}
    return Document(doc_id=name, address=name, uri=name, **values)  # type: ignore[arg-type]


def shown(
    documents: list[Document],
    filter: str = "",
    *,
    by: Principal = NOBODY,
    all_versions: bool = False,
) -> set[str]:
    return {
        each.doc_id
        for each in documents
        if admit(
            each,
            principal=by,
            filter=parse_filter(filter),
            today=TODAY,
            siblings=[other for other in documents if other.series == each.series],
            all_versions=all_versions,
        )
    }


# ---------------------------------------------------------------------------------- who may read


@pytest.mark.parametrize(
    ("acl", "reads"),
    [
        ((), False),
        (("public",), True),
        (("hr",), True),
        (("user:ana",), True),
        (("user:anna",), False),
        (("ana",), False),
        (("HR",), False),
        (("legal", "hr"), True),
        (("",), False),
    ],
)
def test_a_document_is_read_by_whom_its_acl_names(acl: tuple[str, ...], reads: bool) -> None:
    assert may_read(ANA, document(acl=acl)) is reads


def test_nobody_in_particular_reads_public_documents_only() -> None:
    assert may_read(NOBODY, document())
    assert not may_read(NOBODY, document(acl=("hr",)))


def test_a_document_that_is_not_served_is_read_by_nobody() -> None:
    assert not may_read(ANA, document(revision=""))


@pytest.mark.parametrize("tenant", ["acme", "", "DEFAULT"])
def test_another_tenant_reads_nothing(tenant: str) -> None:
    assert not may_read(replace(ANA, tenant=tenant), document())
    assert not may_read(replace(ANA, tenant=""), document(tenant=""))


def test_a_principal_with_a_hostile_group_is_refused() -> None:
    eve = Principal(user="eve", groups=("user:ana",))
    for refused in (lambda: may_read(eve, document()), lambda: scope_filter(eve)):
        with pytest.raises(UsageError):
            refused()


# ---------------------------------------------------------------------------------- which version


def series(*versions: str, **fields: object) -> list[Document]:
    return [
        document(f"v{version}", series="HR-014", version=version, **fields) for version in versions
    ]


def test_only_the_highest_version_of_a_series_is_shown() -> None:
    assert shown(series("9", "10", "2")) == {"v10"}
    assert shown(series("2.0", "2.0-rc1")) == {"v2.0"}


def test_documents_outside_a_series_do_not_compete() -> None:
    assert shown([document("a", version="1"), document("b", version="2")]) == {"a", "b"}


def test_a_series_of_another_source_is_another_series() -> None:
    leave = document("hr", source="hr", series="leave", version="2")
    claimed = document("wiki", source="wiki", series="leave", version="999")
    assert shown([leave, claimed]) == {"hr", "wiki"}
    assert shown([leave, claimed, document("old", source="hr", series="leave", version="1")]) == {
        "hr",
        "wiki",
    }


def test_other_versions_are_shown_when_they_are_asked_for() -> None:
    documents = series("3", "4")
    assert shown(documents, all_versions=True) == {"v3", "v4"}
    assert shown(documents, "version = 3") == {"v3"}
    assert shown(documents, "version < 4") == {"v3"}
    assert shown(documents, "source = wiki") == {"v4"}


def test_a_version_that_somebody_may_not_read_is_to_them_as_if_it_did_not_exist() -> None:
    secret, open_ = (
        document("v4", series="s", version="4", acl=("hr",)),
        document("v3", series="s", version="3"),
    )
    assert shown([secret, open_], by=ANA) == {"v4"}
    assert shown([secret, open_]) == shown([open_]) == {"v3"}
    assert shown([replace(secret, tenant="acme"), open_], by=ANA) == {"v3"}
    assert shown([replace(secret, revision=""), open_], by=ANA) == {"v3"}


def test_drafts_and_withdrawn_documents_are_shown_only_when_status_is_asked_for() -> None:
    documents = [
        *series("3"),
        *series("4", status=Status.DRAFT),
        *series("5", status=Status.WITHDRAWN),
    ]
    assert shown(documents) == {"v3"}
    assert shown(documents, all_versions=True) == {"v3"}
    assert shown(documents, "version >= 4") == set()
    assert shown(documents, "status = draft") == {"v4"}
    assert shown(documents, "status in (current, withdrawn)") == {"v3", "v5"}


def test_a_version_counts_from_the_day_that_it_takes_effect() -> None:
    documents = [*series("3"), *series("4", effective=date(2026, 12, 1))]
    assert shown(documents) == {"v3"}
    documents = [*series("3"), *series("4", effective=TODAY)]
    assert shown(documents) == {"v4"}
    assert shown([document("a", effective=date(2027, 1, 1))]) == set()
    assert shown([document("a", effective=date(2027, 1, 1))], "effective > 2026-12-31") == {"a"}
    assert shown([document("a", effective=date(2027, 1, 1))], all_versions=True) == {"a"}


def test_of_equal_versions_the_latest_in_effect_is_current_and_equals_stand_together() -> None:
    old = document("old", series="s", version="1", effective=date(2024, 1, 1))
    english = document("en", series="s", version="1.0", effective=date(2025, 1, 1))
    german = replace(english, doc_id="de")
    assert current_of_series([old, english, german], principal=NOBODY, today=TODAY) == (
        english,
        german,
    )
    assert current_of_series([], principal=NOBODY, today=TODAY) == ()


def test_fields_of_a_filter() -> None:
    named = fields_of(parse_filter("not (a = 1 or status = draft) and b in (x)"))
    assert named == {"a", "status", "b"}


# ------------------------------------------------------------------------------------- together

_documents = st.builds(
    document,
    name=st.sampled_from("abcdef"),
    series=st.sampled_from(["", "s", "t"]),
    version=st.sampled_from(["", "1", "9", "10"]),
    status=st.sampled_from(Status),
    effective=st.sampled_from([None, date(2020, 1, 1), TODAY, date(2027, 1, 1)]),
    tenant=st.sampled_from(["default", "acme"]),
    acl=st.lists(st.sampled_from(["public", "hr", "user:ana"]), max_size=2).map(tuple),
    revision=st.sampled_from(["", "00000000-aa"]),
)
_filters = st.sampled_from(
    ["", "version >= 9", "status = draft", "not status = draft", "effective > 2026-01-01",
     "not effective > 2026-12-01", "source = wiki or version = 1", "source = other"]
)  # fmt: skip


@given(
    st.lists(_documents, max_size=6, unique_by=lambda each: each.doc_id),
    _filters,
    st.sampled_from([NOBODY, ANA, Principal(user="ben", tenant="acme")]),
    st.booleans(),
)
def test_what_is_shown_is_readable_matches_and_is_found_by_the_store_filter(
    documents: list[Document], filter: str, by: Principal, all_versions: bool
) -> None:
    where = search_filter(by, parse_filter(filter), today=TODAY, all_versions=all_versions)
    found = shown(documents, filter, by=by, all_versions=all_versions)
    for each in documents:
        if each.doc_id in found:
            assert may_read(by, each)
            assert matches(parse_filter(filter), labels_of(each))
            assert matches(where, labels_of(each))
    readable = [each for each in documents if may_read(by, each)]
    assert shown(readable, filter, by=by, all_versions=all_versions) == found
