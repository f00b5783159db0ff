"""Writers, readers and the journal of a chaos run, on stores in memory."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from loadtests.chaos import reader, writer
from loadtests.chaos.journal import Journal, RecordedCatalog, entries
from loadtests.chaos.pages import PEOPLE, Author, Page, chunks_of
from loadtests.chaos.report import Report, report_of
from loadtests.chaos.schedule import FaultKind, server_faults, writer_kills
from loadtests.chaos.sync import sync
from loadtests.chaos.world import prepare
from quarry.errors import StoreUnavailable
from quarry.records import Document
from quarry.settings import Settings
from quarry.stores.factory import Stores
from quarry.stores.memory import MemoryCatalog, MemoryTextStore, MemoryVectorStore
from quarry.verify import verify
from serve.stage import Threads

NAMES = ["d0", "d1", "d2", "d3"]


@pytest.fixture
def stores() -> Stores:
    made = Stores(MemoryCatalog(), MemoryTextStore(), MemoryVectorStore())
    prepare(made)
    return made


@pytest.fixture
def threads() -> Iterator[Threads]:
    made = Threads(4)
    yield made
    made.close()


class Rig:
    """One writer and one reader in turns over given stores; `report` judges them."""

    def __init__(self, folder: Path, stores: Stores, threads: Threads) -> None:
        self.folder = folder
        self.stores = stores
        self.written = Journal(folder / "writer-0-0.jsonl")
        self.read = Journal(folder / "readers.jsonl")
        catalog = RecordedCatalog.over(stores.catalog, self.written)
        self.recorded = replace(stores, catalog=catalog)
        chance = random.Random(3)
        self.writer = writer.Writer(self.recorded, self.written, chance, Author("w", chance))
        self.threads = threads

    def sync(self, name: str, page: Page | None) -> None:
        if page:
            self.written.note_page(page)
        sync(self.recorded, name, page)

    def write(self, steps: int) -> None:
        for _ in range(steps):
            self.writer.step(NAMES)

    def look(self, readable: Stores | None = None) -> None:
        settings = Settings.model_validate({})
        engine = reader.engine_over(readable or self.stores, settings, self.threads)

        async def ask_all() -> None:
            for question in reader.last_questions(NAMES):
                await reader.Asker(engine, self.read).ask(question)

        asyncio.run(ask_all())

    def report(self) -> Report:
        checked = verify(self.stores, repair=False)
        return report_of(self.folder, facts={}, made={"kill writer": 1}, verified=checked)


def test_a_run_without_faults_has_no_violations(
    tmp_path: Path, stores: Stores, threads: Threads
) -> None:
    rig = Rig(tmp_path, stores, threads)
    for _ in range(5):
        rig.write(8)
        rig.look()
    report = rig.report()
    assert report.passed, report.first
    assert set(report.changes) == {"create", "edit", "acl", "delete", "settle"}
    assert report.reads == 5 * len(NAMES) * len(PEOPLE) * 3
    assert report.shown > 50
    assert report.line.endswith("violations 0")


class Unswept:
    """A store from which nothing is deleted."""

    def __init__(self, store: Any) -> None:
        self._store = store

    def delete(self, _: Any) -> None:
        pass

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)


class Remembers:
    """A catalog that readers see as it was at first: a broken cache."""

    def __init__(self, catalog: Any) -> None:
        self._rows: dict[str, Document] = {row.doc_id: row for row in catalog.scan()}
        self._catalog = catalog

    def get(self, ids: Iterable[str]) -> dict[str, Document]:
        return {key: self._rows[key] for key in ids if key in self._rows}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._catalog, name)


def test_readers_that_believe_an_old_catalog_are_caught(
    tmp_path: Path, stores: Stores, threads: Threads
) -> None:
    unswept = replace(stores, text=Unswept(stores.text), vectors=Unswept(stores.vectors))
    rig = Rig(tmp_path, unswept, threads)
    author = Author("a", random.Random(1))
    pages = {name: author.page(3, ("public",)) for name in NAMES}
    for name, page in pages.items():
        rig.sync(name, page)
    cached = replace(unswept, catalog=Remembers(stores.catalog))
    rig.look(cached)
    assert not any(rig.report().violations.values())

    rig.sync("d0", author.edit(pages["d0"], 3))
    rig.sync("d1", None)
    rig.sync("d2", replace(pages["d2"], acl=("hr",)))
    rig.look(cached)
    found = rig.report().violations
    looks = len(PEOPLE) * 3
    assert found["stale"] == looks + 3, "the edited one, and the narrowed one by who may still"
    assert found["deleted"] == looks
    assert found["leaked"] == looks - 3
    assert found["mixed"] == found["unknown"] == 0


def test_a_store_that_is_down_is_noted_and_the_writer_goes_on(
    tmp_path: Path, stores: Stores, threads: Threads, monkeypatch: pytest.MonkeyPatch
) -> None:
    def down(*_: Any) -> Any:
        raise StoreUnavailable("Milvus did not answer within 5 seconds; check that it runs.")

    rig = Rig(tmp_path, stores, threads)
    rig.write(4)
    with monkeypatch.context() as broken:
        broken.setattr(stores.vectors, "upsert", down)
        broken.setattr("time.sleep", lambda _: None)
        rig.write(4)
        rig.look()
    report = rig.report()
    assert report.writer_errors["StoreUnavailable"] >= 1
    assert not any(report.violations.values()), report.first


# ---------------------------------------------------------------------------------------- journal


def test_a_line_that_a_kill_cut_off_is_left_out(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "writer-0-0.jsonl")
    journal.note("conflict", kind="step")
    journal.close()
    with (tmp_path / "writer-0-0.jsonl").open("a") as file:
        file.write('{"event":"do')
    assert [entry["event"] for entry in entries(tmp_path)] == ["conflict"]


def test_a_commit_is_noted_before_it_is_tried(tmp_path: Path, stores: Stores) -> None:
    class Dies:
        def commit_many(self, _: Any) -> Any:
            raise SystemExit

        def __getattr__(self, name: str) -> Any:
            return getattr(stores.catalog, name)

    journal = Journal(tmp_path / "writer-0-0.jsonl")
    recorded = replace(stores, catalog=RecordedCatalog.over(Dies(), journal))
    with pytest.raises(SystemExit):
        sync(recorded, "d0", Author("a", random.Random(1)).page(3, ("public",)))
    (entry,) = entries(tmp_path)
    assert entry["event"] == "rows"
    assert entry["rows"][0][:2] == ["d0", 1]


# -------------------------------------------------------------------------------- pages, schedule


def test_an_edit_keeps_some_passages_and_their_chunks() -> None:
    author = Author("a", random.Random(1))
    old = author.page(30, ("public",))
    new = author.edit(old, 5)
    kept = {c.chunk_id for c in chunks_of("d", old)} & {c.chunk_id for c in chunks_of("d", new)}
    assert new.version != old.version
    assert len(new.passages) == 5
    assert 0 < len(kept) < 5


def test_the_same_seed_breaks_the_same_in_the_same_order() -> None:
    once, again, other = (list(islice(server_faults(s, "milvus"), 200)) for s in (7, 7, 8))
    assert once == again
    assert once != other
    assert {fault.kind for fault in once} == set(FaultKind)
    assert list(islice(writer_kills(7, 0), 9)) == list(islice(writer_kills(7, 0), 9))
    assert list(islice(writer_kills(7, 0), 9)) != list(islice(writer_kills(7, 1), 9))
