"""What a person deleted stays deleted until its content changes."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from quarry.errors import RowsRejected
from quarry.records import TextRow
from quarry.stores.sqlite_text import SqliteTextStore
from tests.e2e.ingest_world import World

TEXT = "# A\n\nThe word is zebra.\n"


@pytest.fixture(autouse=True)
def deleted(world: World) -> None:
    world.write("a.md", TEXT)
    world.write("b.md", "# B\n\nIt stays.\n")
    world.write("c.jsonl", '{"_id": "1", "text": "One."}\n{"_id": "2", "text": "Two."}\n')
    world.sync()
    assert world.delete("a.md", "c.jsonl#1").deleted == 2


def touch(path: Path) -> None:
    os.utime(path, ns=(0, path.stat().st_mtime_ns + 1_000_000))


def set_acl(world: World) -> None:
    world.overrides["sources"] = {"default": {"default_acl": ["public", "staff"]}}


def reject(_: object, rows: Sequence[TextRow]) -> None:
    raise RowsRejected("SQLite", {row.chunk.row_id: "it is too long" for row in rows})


def turn_ocr_off(world: World) -> None:
    world.overrides["ingest"] = {"parse_workers": 1, "ocr": False}


CHANGES: dict[str, Callable[[World], object]] = {
    "touched": lambda world: touch(world.folder / "a.md"),
    "folder metadata": lambda world: world.write("_meta.yaml", "owner: x\n"),
    "sidecar": lambda world: world.write("a.md.meta.yaml", "acl: [public, staff]\n"),
    "settings of the source": set_acl,
    "other parsers": turn_ocr_off,
    "another record": lambda world: world.write(
        "c.jsonl", '{"_id": "1", "text": "One."}\n{"_id": "2", "text": "Two!"}\n'
    ),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=list(CHANGES))
def test_what_was_deleted_by_hand_stays_so_while_its_content_is_the_same(
    world: World, change: Callable[[World], object]
) -> None:
    change(world)
    summary = world.sync()
    assert (summary.listed, summary.exit_code) == (2, 0)
    assert set(world.rows()) == {"b.md", "c.jsonl#2"}
    assert world.found("zebra") == set()
    assert (world.sync().listed, world.is_clean()) == (2, True)


def test_it_stays_deleted_when_its_file_could_not_be_read_for_a_while(world: World) -> None:
    for content in (b"\x00\x01\x02\xff\xfe\x00" * 50, TEXT.encode()):
        (world.folder / "a.md").write_bytes(content)
        assert world.sync().exit_code == 0
        assert "a.md" not in world.rows()


def test_it_stays_deleted_when_it_was_empty_for_a_while(world: World) -> None:
    for text, record in (("", ""), (TEXT, "One.")):
        world.write("a.md", text)
        world.write(
            "c.jsonl", f'{{"_id": "1", "text": "{record}"}}\n{{"_id": "2", "text": "Two."}}\n'
        )
        assert world.sync().exit_code == 0
        assert set(world.rows()) == {"b.md", "c.jsonl#2"}


def test_it_stays_deleted_when_its_text_gave_nothing_to_serve_for_a_while(world: World) -> None:
    for text, record in (("\u200d\u2060\n", "\u200d\u2060"), (TEXT, "One.")):
        world.write("a.md", text)
        world.write(
            "c.jsonl", f'{{"_id": "1", "text": "{record}"}}\n{{"_id": "2", "text": "Two."}}\n'
        )
        summary = world.sync()
        assert (summary.exit_code, summary.listed) == (0, 2)
        assert set(world.rows()) == {"b.md", "c.jsonl#2"}
        assert (world.sync().listed, world.is_clean()) == (2, True)


def test_it_stays_deleted_when_a_store_rejected_it_for_a_while(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.write("a.md", "# A\n\nAnother okapi.\n")
    with monkeypatch.context() as patch:
        patch.setattr(SqliteTextStore, "upsert", reject)
        summary = world.sync()
        assert [each.uri for each in summary.failures] == ["a.md"]
        assert summary.listed == 2
    assert "a.md" not in world.rows()
    world.write("a.md", TEXT)
    assert world.sync().exit_code == 0
    assert "a.md" not in world.rows()
    assert world.is_clean()


def test_what_a_store_rejected_comes_back_with_its_other_content_once_it_takes_it(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.write("a.md", "# A\n\nAnother okapi.\n")
    with monkeypatch.context() as patch:
        patch.setattr(SqliteTextStore, "upsert", reject)
        world.sync()
    assert world.sync().indexed == 1
    assert world.found("okapi") == {"a.md"}


def test_one_whose_update_had_failed_stays_away_with_the_content_that_was_served(
    world: World,
) -> None:
    served = (world.folder / "b.md").read_text()
    world.write("b.md", "---\nx: [\n---\n")
    world.sync()
    world.delete("b.md")
    world.write("b.md", served)
    assert world.sync().exit_code == 0
    assert "b.md" not in world.rows()
    world.write("b.md", f"{served}More.\n")
    world.sync()
    assert "b.md" in world.rows()


def test_one_that_had_never_been_read_comes_back_when_it_can_be(world: World) -> None:
    world.write("n.md", "---\nx: [\n---\n")
    world.sync()
    world.delete("n.md")
    world.write("n.md", "# N\n\nNew.\n")
    assert world.sync().indexed == 1
    assert "n.md" in world.rows()


def test_it_comes_back_with_other_content(world: World) -> None:
    world.write("a.md", f"{TEXT}More.\n")
    world.write("c.jsonl", '{"_id": "1", "text": "Another."}\n{"_id": "2", "text": "Two."}\n')
    assert world.sync().indexed == 2
    assert set(world.rows()) == {"a.md", "b.md", "c.jsonl#1", "c.jsonl#2"}
    assert not world.row("a.md").deleted_by_hand
    assert world.found("zebra") == {"a.md"}


def test_all_documents_of_a_file_of_records_stay_deleted(world: World) -> None:
    world.delete("c.jsonl")
    touch(world.folder / "c.jsonl")
    assert (world.sync().listed, world.sync().listed) == (1, 1)


def test_a_file_that_was_gone_comes_back_as_before(world: World) -> None:
    """Its source took it out, so that its source may give it back."""
    text = world.folder / "b.md"
    content = text.read_text()
    text.unlink()
    world.sync()
    text.write_text(content)
    assert world.sync().indexed == 1
    assert "b.md" in world.rows()
