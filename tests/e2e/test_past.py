"""Going back in time over runs of a real folder: embedded stores, real parsers, one process."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from quarry import retention
from quarry.errors import AsOfError
from quarry.records import Principal, SearchRequest
from quarry.stores.milvus_lite import vector_server
from serve.engine import open_engine
from tests.e2e.ingest_world import InProcessParsers, NoPipeline, World

STAFF = Principal(user="mei", groups=("staff",))


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    monkeypatch.setattr("ingest.parsers.sandbox.ParserPool", InProcessParsers)
    made = World(tmp_path, overrides={"stores": {"retention_days": 30}})
    with vector_server(made.settings):  # one owner for the whole test: it takes a second to start
        yield made


def searched(world: World, *moments: datetime | None, person: Principal = STAFF) -> list[set[str]]:
    """The texts that a search for tents finds as of each time."""
    with open_engine(world.settings) as engine:
        results = [
            asyncio.run(
                engine.search(
                    SearchRequest(question="tents", principal=person, top_k=50, as_of=moment)
                )
            )
            for moment in moments
        ]
    return [{candidate.chunk.text for candidate in result.candidates} for result in results]


def page(text: str, acl: str = "public") -> str:
    return f"---\nacl: [{acl}]\n---\nTents {text}.\n"


def test_each_run_leaves_a_time_to_go_back_to(world: World) -> None:
    world.write("a.md", page("cost 40 euros"))
    world.write("b.md", page("are green"))
    world.write("c.md", page("are for staff and all"))
    world.sync()
    first = datetime.now(UTC)
    world.write("a.md", page("cost 50 euros now"))
    world.write("c.md", page("are for staff and all", acl="staff"))
    world.write("d.md", page("are new"))
    world.sync()
    second = datetime.now(UTC)
    world.remove("d.md")
    world.delete("b.md")
    world.sync()

    staff = searched(world, first, second, None)
    assert staff == [
        {"Tents cost 40 euros.", "Tents are for staff and all."},
        {"Tents cost 50 euros now.", "Tents are for staff and all."},
        {"Tents cost 50 euros now.", "Tents are for staff and all."},
    ]
    everybody = searched(world, first, second, None, person=Principal())
    assert everybody == [
        {"Tents cost 40 euros."},
        {"Tents cost 50 euros now."},
        {"Tents cost 50 euros now."},
    ]
    assert world.is_clean()


def test_a_run_with_nothing_to_read_ends_the_retention(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.write("a.md", page("cost 40 euros"))
    world.sync()
    first = datetime.now(UTC)
    world.write("a.md", page("cost 50 euros now"))
    world.sync()
    with world.stores() as stores:
        assert stores.text.count() == stores.vectors.count() == 2

    monkeypatch.setattr(retention, "GRACE", timedelta(0))
    world.overrides = {"stores": {"retention_days": 1e-7}}
    world.pipeline = NoPipeline()
    world.sync()
    with world.stores() as stores:
        assert stores.text.count() == stores.vectors.count() == 1
        assert len(stores.catalog.history(world.row("a.md").doc_id)) == 1
    world.overrides = {"stores": {"retention_days": 30}}
    with pytest.raises(AsOfError):
        searched(world, first)
    assert searched(world, None) == [{"Tents cost 50 euros now."}]
    assert world.is_clean()


def test_a_retention_set_later_promises_nothing_from_before(world: World) -> None:
    world.overrides = {}
    world.write("a.md", page("cost 40 euros"))
    world.sync()
    first = datetime.now(UTC)
    world.overrides = {"stores": {"retention_days": 30}}
    with pytest.raises(AsOfError, match="quarry ingest"):
        searched(world, first)
    world.sync()
    second = datetime.now(UTC)
    world.write("a.md", page("cost 50 euros now"))
    world.sync()
    with pytest.raises(AsOfError, match="kept since"):
        searched(world, first)
    assert searched(world, second) == [{"Tents cost 40 euros."}]
