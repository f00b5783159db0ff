"""Searches of the past on any stores; a test of some inherits this and gives `stores`."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from quarry.entries import mark
from quarry.records import Mode
from quarry.stores.factory import Stores
from quarry.verify import verify
from tests.unit.revisions.as_of_world import HOUR, Past, people
from tests.unit.revisions.revision_world import DIMENSION, Page

KEPT_HOURS = 48.0
DOCS = ("d1", "d2", "d3")
SCOPES = ("public", "hr", "eng")
PEOPLE = people((), ("hr",), ("hr", "eng"))


class AsOfContract:
    @pytest.fixture
    def stores(self) -> Stores:
        """Empty stores whose catalog forgets nothing by itself."""
        raise NotImplementedError

    @pytest.fixture(params=["deleted is gone", "deleted is kept"])
    def past(self, request: pytest.FixtureRequest, stores: Stores) -> Past:
        stores.ensure(DIMENSION)
        stores.catalog.put_entry(mark("handbook", unfinished=True))  # no document has an entry
        keeping = request.param == "deleted is kept"
        world = Past(replace(stores, retention=KEPT_HOURS * HOUR, retain_deleted=keeping))
        world.ingest_ends()
        return world

    def test_the_past_is_what_a_replay_of_all_changes_says(self, past: Past) -> None:
        chance = random.Random(7)
        for _ in range(24):
            past.hours += chance.choice([0.0, 1.0, 3.0])
            past.change(chance.choice(DOCS), change(chance))
        for age in (0.0, 0.5, 5.0, 11.0, 30.0):
            hours = max(0.0, past.hours - age)
            for mode, person in zip(Mode, PEOPLE, strict=True):
                assert past.found(hours, person, mode=mode) == past.shown(hours, person)
        assert past.found(None, PEOPLE[0]) == past.shown(past.hours, PEOPLE[0])
        assert verify(past.stores, repair=True).clean

    def test_a_result_is_full_whatever_else_is_kept(self, past: Past) -> None:
        for number in range(12):
            past.hours += 0.1
            for doc in DOCS:
                past.change(doc, Page((f"{doc} {number}", f"{doc} {number} more")))
        for mode in Mode:
            for hours in (0.1, 0.65, None):
                found = past.found(hours, PEOPLE[0], mode=mode, top_k=6, candidates=6)
                assert sum(map(len, found.values())) == 6

    def test_nothing_is_left_when_the_retention_has_ended(self, past: Past) -> None:
        chance = random.Random(3)
        for doc in DOCS:
            for _ in range(3):
                past.change(doc, change(chance))
        past.change("d1", None)
        past.change("d2", Page(("last",)))
        past.change("d3", Page(("last", "words")))
        past.hours += KEPT_HOURS + 1
        past.ingest_ends()
        stores = past.stores
        assert stores.text.count() == stores.vectors.count() == 3
        assert all(len(stores.catalog.history(doc)) == 1 for doc in DOCS)
        assert not verify(stores, repair=False).found
        assert past.found(past.hours - 1, PEOPLE[0]) == past.shown(past.hours, PEOPLE[0])


def change(chance: random.Random) -> Page | None:
    if chance.random() < 0.15:
        return None
    words = sorted(chance.sample("abcdef", k=chance.randint(1, 3)))
    scopes = sorted(chance.sample(SCOPES, k=chance.randint(0, 2)))
    return Page(tuple(words), acl=tuple(scopes), broken=chance.random() < 0.15)
