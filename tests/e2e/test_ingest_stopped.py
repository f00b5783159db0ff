"""A run that is stopped, or that meets another writer: the next one goes on from there."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from ingest.stages import Encoder
from ingest.work import Row
from quarry.errors import (
    Conflict,
    DataDirBusy,
    ModelError,
    StoreUnavailable,
)
from quarry.records import Document
from quarry.stores.factory import Stores
from quarry.stores.milvus_lite import writer_lock
from quarry.stores.sqlite_catalog import SqliteCatalog
from tests.e2e.ingest_world import InlinePipeline, World, filled


class Stopping(InlinePipeline):
    """Stops with an error after some addresses."""

    def __init__(self, after: int, error: Exception) -> None:
        super().__init__()
        self._after = after
        self._error = error

    def run(self, config, tasks):  # type: ignore[no-untyped-def]
        for number, rows in enumerate(super().run(config, tasks)):
            if number == self._after:
                raise self._error
            yield rows


def test_a_run_that_was_stopped_goes_on_where_it_was(world: World) -> None:
    for number in range(6):
        world.write(f"page{number}.md", f"# Page {number}\n\nWord{number}.\n")
    with pytest.raises(StoreUnavailable):
        world.sync(pipeline=Stopping(3, StoreUnavailable("The store is away.")))
    pipeline = InlinePipeline()
    summary = world.sync(pipeline=pipeline)
    assert len(pipeline.read) == 3
    assert (summary.unchanged, summary.indexed) == (4, 2)  # one was committed without its entry
    assert summary.embedded == 2
    assert world.is_clean()


def test_a_document_without_an_entry_whose_file_is_gone_is_deleted(world: World) -> None:
    for number in range(3):
        world.write(f"page{number}.md", f"# Page {number}\n\nWord{number}.\n")
    with pytest.raises(StoreUnavailable):
        world.sync(pipeline=Stopping(1, StoreUnavailable("The store is away.")))
    orphan = next(uri for uri in world.rows() if uri != "page0.md")
    world.remove(orphan)
    assert world.sync().deleted == 1
    assert orphan not in world.rows()
    assert world.is_clean()


def records(first: int) -> str:
    lines = ({"id": str(n), "text": f"Word{n}.", "acl": "public"} for n in range(first, 6))
    return "".join(json.dumps(line) + "\n" for line in lines)


def test_rows_of_records_that_a_stopped_run_took_out_are_swept_by_the_next(world: World) -> None:
    world.write("all.jsonl", records(0))
    world.sync()
    world.write("all.jsonl", records(2))
    world.write("z.md", "# Z\n\nLast.\n")

    def stop(address: str) -> None:
        if address == "z.md":
            raise ModelError("The embedder failed.")

    with pytest.raises(ModelError):
        world.sync(pipeline=InlinePipeline(stop))
    assert "all.jsonl#0" not in world.rows()
    world.sync()
    assert world.is_clean()


class Killed(BaseException):
    """Ends a run as a kill would: nothing catches it."""


class Kill:
    """Kills a run in place of the n-th write to its catalog; 0: never."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.at = 0
        self.writes = 0
        for name in ("commit", "commit_many", "put_entry", "delete_entry"):
            monkeypatch.setattr(SqliteCatalog, name, self._killing(getattr(SqliteCatalog, name)))

    def _killing(self, write: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **named: Any) -> Any:
            self.writes += 1
            if self.writes == self.at:
                raise Killed
            return write(*args, **named)

        return call


def changed(world: World) -> None:
    """Of each kind of change one, after a run without them."""
    world.write("all.jsonl", records(0))
    (world.folder / "new.md").unlink(missing_ok=True)
    for name in ("edited.md", "withdrawn.md", "gone.md", "same.md"):
        world.write(name, f"# {name}\n\nWords of {name}.\n")
    world.sync()
    world.write("all.jsonl", records(2))
    world.write("edited.md", "---\nacl: [hr]\n---\n# Edited\n\nOther words.\n")
    world.write("withdrawn.md", "---\nstatus: withdrawn\n---\n# Withdrawn\n\nWords.\n")
    world.write("new.md", "# New\n\nNew words.\n")
    world.remove("gone.md")


def test_a_run_that_is_killed_at_any_write_to_the_catalog_is_made_good_by_the_next(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    kill = Kill(monkeypatch)

    def states() -> dict[str, object]:
        return {uri: (row.state, row.acl, row.status) for uri, row in world.rows().items()}

    wanted, steps = None, 0
    while True:
        changed(world)
        kill.at, kill.writes = steps, 0
        try:
            world.sync()
        except Killed:
            kill.at = 0
            world.sync()
        else:
            if steps:
                break  # there is no such write
            wanted = states()
        kill.at = 0
        assert (states(), world.is_clean()) == (wanted, True), f"killed at write {steps}"
        steps += 1
    assert steps > 12


def test_an_embedder_that_fails_stops_the_run_and_loses_nothing(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled(world)
    world.write("page1.md", "# Page 1\n\nNew words.\n")

    def broken(self: Encoder, rows: list[Row]) -> list[Row]:
        raise ModelError("The embedder failed.")

    with monkeypatch.context() as patch:
        patch.setattr(Encoder, "__call__", broken)
        with pytest.raises(ModelError):
            world.sync()
    assert "page1.md" in world.found("Word1")
    assert world.sync().indexed == 1
    assert "page1.md" in world.found("New words")


def test_what_another_writer_changed_meanwhile_is_read_again(world: World) -> None:
    filled(world)
    world.write("page1.md", "# Page 1\n\nMine.\n")

    def commit_first(address: str) -> None:
        if pipeline.read.count(address) == 1:
            with world.stores() as stores:
                stores.catalog.commit(world.row("page1.md"))

    pipeline = InlinePipeline(before_writing=commit_first)
    summary = world.sync(pipeline=pipeline)
    assert pipeline.read == ["page1.md", "page1.md"]
    assert (summary.indexed, summary.exit_code) == (1, 0)
    assert "page1.md" in world.found("Mine")
    assert world.is_clean()


def test_what_another_writer_keeps_changing_is_named_and_left_for_the_next_run(
    world: World,
) -> None:
    filled(world)
    world.write("page1.md", "# Page 1\n\nMine.\n")

    def always_first(address: str) -> None:
        with world.stores() as stores:
            stores.catalog.commit(world.row("page1.md"))

    summary = world.sync(pipeline=InlinePipeline(before_writing=always_first))
    assert [failure.uri for failure in summary.failures] == ["page1.md"]
    assert world.sync().indexed == 1


def test_a_deletion_that_lost_to_another_writer_is_made_by_the_next_run(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    records = world.write("c.jsonl", '{"_id": "1", "text": "One."}\n{"_id": "2", "text": "Two."}')
    filled(world)
    records.write_text('{"_id": "2", "text": "Two."}')
    world.remove("page1.md")

    def always_first(stores: Stores, document: Document, *, by_hand: bool) -> Document:
        raise Conflict("It moved.")

    with monkeypatch.context() as patch:
        patch.setattr("quarry.revisions.bury", always_first)
        summary = world.sync()
    assert (summary.deleted, summary.exit_code) == (0, 3)
    assert {failure.uri for failure in summary.failures} == {"page1.md", "c.jsonl#1"}
    assert world.sync().deleted == 2
    assert not {"page1.md", "c.jsonl#1"} & set(world.rows())
    assert world.is_clean()


def test_only_one_ingest_writes_at_a_time(world: World) -> None:
    world.write("a.md", "Text.")
    with writer_lock(world.settings), pytest.raises(DataDirBusy):
        world.sync()
