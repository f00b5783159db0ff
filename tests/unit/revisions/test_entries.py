"""Entries against the documents that they count."""

from __future__ import annotations

from dataclasses import replace

import pytest

from quarry.entries import MARK, UNFINISHED, mark, orphans, shortfalls
from quarry.ids import doc_id
from quarry.records import DocState, SourceEntry
from quarry.stores.memory import MemoryCatalog
from tests.contract.catalog import entry
from tests.contract.rows import document

SOURCE = "handbook"


def filled(address: str, *, counted: int, live: int, buried: int = 0) -> MemoryCatalog:
    catalog = MemoryCatalog()
    catalog.put_entry(replace(entry(address), documents=counted))
    for number in range(live + buried):
        record = f"r{number}" if counted != 1 else ""
        row = document(doc_id(SOURCE, address, record), address=address)
        gone = replace(row, revision="", state=DocState.DELETED)
        catalog.commit(row if number < live else gone)
    return catalog


def short(catalog: MemoryCatalog) -> list[tuple[str, int]]:
    return [(each.entry.address, each.there) for each in shortfalls(catalog, SOURCE)]


@pytest.mark.parametrize(
    ("counted", "live", "buried", "is_short"),
    [
        (1, 1, 0, False),
        (1, 0, 0, True),
        (1, 0, 1, False),
        (3, 3, 0, False),
        (3, 4, 0, False),
        (3, 2, 0, True),
        (3, 2, 1, True),
        (0, 0, 0, False),
    ],
)
def test_an_address_is_short_if_fewer_documents_are_there_than_its_entry_counts(
    counted: int, live: int, buried: int, is_short: bool
) -> None:
    catalog = filled("a.x", counted=counted, live=live, buried=buried)
    assert short(catalog) == ([("a.x", live)] if is_short else [])


def test_what_an_unfinished_run_has_hidden_is_not_lost() -> None:
    catalog = filled("a.x", counted=3, live=2, buried=1)
    own = replace(entry(MARK), documents=0, recipe=UNFINISHED)
    catalog.put_entry(own)
    assert short(catalog) == []
    catalog.put_entry(replace(own, recipe=""))
    assert short(catalog) == [("a.x", 2)]


def test_an_entry_that_is_written_meanwhile_is_not_held_to_what_it_said() -> None:
    class Written(MemoryCatalog):
        def entry(self, source: str, address: str) -> SourceEntry | None:
            self.put_entry(replace(entry("a.x"), documents=2))
            return super().entry(source, address)

    catalog = filled("a.x", counted=3, live=2)
    written = Written()
    written.__dict__.update(catalog.__dict__)
    assert short(written) == []


def test_addresses_with_documents_and_no_entry_are_orphans() -> None:
    catalog = filled("a.x", counted=1, live=1)
    for name, address in (("b1", "b.x"), ("b2", "b.x"), ("c", "c.x")):
        catalog.commit(document(name, address=address))
    catalog.commit(document("d", address="d.x", revision="", state=DocState.DELETED))
    found = {each.address: each for each in orphans(catalog, SOURCE)}
    assert {address: each.documents for address, each in found.items()} == {"b.x": 2, "c.x": 1}
    catalog.put_entry(mark(SOURCE, unfinished=True))
    assert not list(orphans(catalog, SOURCE)), "a run commits documents before their entry"
