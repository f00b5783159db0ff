"""`quarry show` prints what is served of a document, chunk by chunk, and nothing else of it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from quarry.access.labels import labels_of
from quarry.cli.main import run
from quarry.records import DocState, Generation, TextRow
from quarry.settings import load_settings
from quarry.stores.factory import open_registry, open_stores
from tests.unit.serve.serve_world import World

SETTINGS = "stores: {vectors: memory}\nserve: {port: 0}\n"


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("QUARRY_CONFIG", raising=False)
    (tmp_path / "quarry.yaml").write_text(SETTINGS)
    settings = load_settings(tmp_path / "quarry.yaml", {})
    registry = open_registry(settings)
    registry.create(Generation(name="g1", fingerprint={}, created_at=datetime.now(UTC)))
    registry.switch("g1", expected="")
    registry.close()
    world = World(settings=settings, stores=open_stores(settings, "g1"))
    yield world
    world.stores.close()


@pytest.fixture
def say(capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    def call(*arguments: str, code: int = 0) -> str:
        assert run(["show", *arguments]) == code
        printed = capsys.readouterr()
        return printed.err if code else printed.out

    return call


def test_a_document_is_shown_as_it_is_indexed(world: World, say: Callable[..., str]) -> None:
    page = world.add(
        "returns.md",
        "Unused items: 30 days.",
        "Used tents:\n\n- store credit\x1b[2J",
        title="Returns",
        header="Returns\nReturns > Used outdoors",
        section=("Returns", "Used outdoors"),
        pages=(3, 4),
        acl=("hr",),
    )
    first, second = world.stores.text.chunks(page.doc_id, page.revision, range(2))
    assert say("returns.md").splitlines() == [
        f"Returns  returns.md  doc_id {page.doc_id}",
        "indexed; 2 chunks; readable by hr",
        "",
        f"1/2  {first.chunk_id}  pp. 3–4  {first.tokens} tokens",
        "  | Returns",
        "  | Returns > Used outdoors",
        "    Unused items: 30 days.",
        "",
        f"2/2  {second.chunk_id}  pp. 3–4  {second.tokens} tokens",
        "  | Returns",
        "  | Returns > Used outdoors",
        "    Used tents:",
        "",
        "    - store credit␛[2J",
    ]
    assert say(page.doc_id) == say("returns.md")


def test_a_chunk_is_shown_alone_with_its_place(world: World, say: Callable[..., str]) -> None:
    page = world.add("a.md", "First.", "Second.")
    _, second = world.stores.text.chunks(page.doc_id, page.revision, range(2))
    shown = say(second.chunk_id)
    assert "2/2" in shown and "Second." in shown and "First." not in shown
    printed = json.loads(say(second.chunk_id, "--json"))
    assert (printed["uri"], printed["chunk_count"]) == ("a.md", 2)
    assert printed["chunks"] == [
        {
            "chunk_id": second.chunk_id,
            "ordinal": 1,
            "section": "",
            "pages": None,
            "tokens": second.tokens,
            "header": "a.md",
            "text": "Second.",
        }
    ]


def test_only_the_revision_that_is_served_is_shown(world: World, say: Callable[..., str]) -> None:
    old = world.add("a.md", "The old text.")
    (gone,) = world.stores.text.chunks(old.doc_id, old.revision, range(1))
    row = replace(gone, row_id=f"{gone.chunk_id}.99999999-x", revision="99999999-x")
    world.add("a.md", "The new text.")
    assert "old text" not in say("a.md")
    assert "There is no document or chunk" in say(gone.chunk_id, code=2)
    world.stores.text.upsert([TextRow(chunk=row, labels=labels_of(old))])  # as a crash leaves it
    told = say(gone.chunk_id, code=2)
    assert "of a revision that is not served" in told and old.doc_id in told
    assert "old text" not in told

    world.remove("a.md")
    assert say("a.md").splitlines()[1].startswith("deleted; nothing of it is served")
    assert json.loads(say(old.doc_id, "--json"))["chunks"] == []


def test_what_has_no_chunks_says_why(world: World, say: Callable[..., str]) -> None:
    page = world.add("a.md", "Text.")
    bad = replace(page, doc_id="0" * 32, uri="b.pdf", address="b.pdf", revision="", serial=0)
    world.stores.catalog.commit(replace(bad, state=DocState.CORRUPT, error="It is broken."))
    assert "corrupt; nothing of it is served; readable by public; It is broken." in say("b.pdf")


def test_chunks_that_the_text_store_lost_are_told(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    page = world.add("a.md", "First.", "Second.")
    first, _ = world.stores.text.chunks(page.doc_id, page.revision, range(2))
    world.stores.text.delete([first.row_id])
    assert run(["show", "a.md"]) == 0
    assert "The text store lacks 1 chunk;" in capsys.readouterr().err


def test_before_the_first_ingest_nothing_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, say: Callable[..., str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "quarry.yaml").write_text(SETTINGS)
    assert "quarry ingest" in say("a.md", code=2)
    assert [path.name for path in tmp_path.iterdir()] == ["quarry.yaml"]
