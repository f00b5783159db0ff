"""Versions compare as people read them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quarry.access.versions import MAX_KEY, version_key

ASCENDING = [
    "0.9-dev",
    "1.0-alpha",
    "1.0-beta2",
    "1.0-beta10",
    "1.0-rc1",
    "1.0",
    "1.0.2",
    "1.0.2a",
    "1.0.10",
    "1.2",
    "1.10",
    "2.0-rc1",
    "2.0",
    "9",
    "10",
    "2024-12-31",
    "2026-07-01",
    "2026-10-01",
    "99999999999999999999",
]


def test_versions_sort_as_versions_do() -> None:
    keys = [version_key(version) for version in ASCENDING]
    assert keys == sorted(keys)
    assert len(set(keys)) == len(keys)


@pytest.mark.parametrize(
    "spellings",
    [
        ["1", "1.0", "1.0.0", "v1", "V1.0", "version 1", " 1 ", "01", "rev. 1"],
        ["2.0-rc1", "2.0rc1", "v2-RC.1", "2.0.0 rc 1"],
        ["1.10", "1-10", "1_10"],
        ["４.２", "4.2"],
        ["Spring 2026", "spring-2026"],
    ],
)
def test_spellings_of_one_version_are_equal(spellings: list[str]) -> None:
    assert len({version_key(spelling) for spelling in spellings}) == 1


def test_no_version_has_no_key_and_sorts_first() -> None:
    assert version_key("") == version_key("  ") == ""
    assert version_key("0") > ""


def test_long_versions_stay_apart_though_keys_are_bounded() -> None:
    long = "1." + "7" * 10_000
    keys = {version_key(long), version_key(long + "8"), version_key(long[:64])}
    assert len(keys) == 3
    assert all(len(key) <= MAX_KEY for key in keys)


@given(st.text())
def test_any_text_gives_a_bounded_printable_key(version: str) -> None:
    key = version_key(version)
    assert key.isascii() and key.isprintable() and len(key) <= MAX_KEY
    assert bool(key) == bool(version.strip())


@given(st.lists(st.integers(0, 10**12), min_size=1, max_size=5), st.integers(0, 4), st.data())
def test_a_larger_number_anywhere_gives_a_larger_key(
    parts: list[int], place: int, data: st.DataObject
) -> None:
    place = min(place, len(parts) - 1)
    larger = [*parts]
    larger[place] += data.draw(st.integers(1, 10**12))
    spelled, spelled_larger = (".".join(map(str, each)) for each in (parts, larger))
    assert version_key(spelled) < version_key(spelled_larger)
