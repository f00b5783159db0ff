"""What happens to an index when its folder changes: real parsers and stores, one process."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from ingest.sources import LocalSource
from quarry.errors import (
    ConfigError,
    FingerprintMismatch,
    ParseError,
    SourceNotFound,
    UsageError,
)
from quarry.records import DocState, SourceItem
from tests.e2e.ingest_world import InlinePipeline, NoPipeline, World, filled


def touch(path: Path) -> None:
    """Another change mark, whatever the clock's resolution."""
    status = path.stat()
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns + 1_000_000))


# ----------------------------------------------------------------------------------- first run


def test_every_listed_file_ends_in_a_state(world: World) -> None:
    world.write("a.md", "# Tents\n\nA tent for two.\n")
    world.write("b/c.html", "<html><body><p>A stove.</p></body></html>")
    world.write("d.jsonl", '{"_id": "1", "title": "T", "text": "First."}\n{"_id": "2"}\nbroken\n')
    world.write("empty.txt", "")
    world.write("x.pdf", "no pdf at all")
    summary = world.sync().to_json()
    assert summary["documents"]["by_state"] == {"corrupt": 2, "empty": 2, "indexed": 3}
    assert summary["documents"]["listed"] == 7
    assert {failure["uri"] for failure in summary["failures"]} == {
        "d.jsonl#2",
        "d.jsonl#line-3",
        "empty.txt",
        "x.pdf",
    }
    assert set(world.rows()) >= {"a.md", "b/c.html", "d.jsonl#1"}
    assert world.found("tent for two") >= {"a.md"}
    assert world.is_clean()


def test_failures_give_exit_code_3_and_are_not_repeated(world: World) -> None:
    world.write("x.pdf", "no pdf at all")
    assert world.sync().exit_code == 3
    again = world.sync()
    assert (again.exit_code, again.failures) == (0, ())
    assert again.by_state == {"corrupt": 1}


def test_what_is_no_document_of_a_beir_folder_is_told_by_every_run(world: World) -> None:
    world.write("corpus.jsonl", '{"_id": "1", "title": "T", "text": "First."}\n')
    world.write("queries.jsonl", '{"_id": "q1", "text": "Which?"}\n')
    for _ in range(2):
        summary = world.sync()
        assert (summary.listed, summary.exit_code) == (1, 0)
        assert [each["uri"] for each in summary.to_json()["left_out"]] == ["queries.jsonl"]


def test_an_empty_folder_is_no_error(world: World) -> None:
    assert world.sync().to_json()["documents"]["listed"] == 0


# --------------------------------------------------------------------------------- second run


def test_an_unchanged_folder_is_not_read(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    filled(world)
    monkeypatch.delattr(LocalSource, "read")
    summary = world.sync(pipeline=NoPipeline())
    assert (summary.listed, summary.unchanged, summary.embedded) == (4, 4, 0)


def test_only_the_edited_file_is_read(world: World) -> None:
    filled(world)
    world.write("page1.md", "# Page 1\n\nA new sentence stands here.\n")
    pipeline = InlinePipeline()
    summary = world.sync(pipeline=pipeline)
    assert pipeline.read == ["page1.md"]
    assert (summary.indexed, summary.unchanged, summary.deleted_chunks) == (1, 3, 1)
    assert "page1.md" in world.found("new sentence")
    assert "page1.md" not in world.found("Word1")
    assert world.is_clean()


def test_a_file_that_was_only_touched_is_read_and_left_alone(world: World) -> None:
    filled(world)
    before = world.rows()
    touch(world.folder / "page1.md")
    summary = world.sync()
    assert (summary.indexed, summary.unchanged) == (0, 4)
    assert world.rows() == before


def test_an_edit_that_shrinks_a_document_leaves_no_old_chunk(world: World) -> None:
    sections = "".join(f"## Part {n}\n\n{'Long text of it. ' * 40}\n\n" for n in range(30))
    world.write("big.md", f"# Big\n\n{sections}")
    world.sync()
    many = world.rows()["big.md"].chunk_count
    world.write("big.md", "# Big\n\nShort now.\n")
    summary = world.sync()
    assert many >= 30
    assert summary.deleted_chunks == many
    assert world.rows()["big.md"].chunk_count == 1
    assert world.is_clean()


def test_a_deleted_file_is_gone_for_readers_and_from_the_stores(world: World) -> None:
    filled(world)
    world.remove("page1.md")
    summary = world.sync()
    assert (summary.listed, summary.deleted, summary.deleted_chunks) == (3, 1, 1)
    assert "page1.md" not in world.rows()
    assert "page1.md" not in world.found("Word1")
    assert world.is_clean()


def test_a_file_that_moved_is_not_embedded_again(world: World) -> None:
    filled(world)
    (world.folder / "new").mkdir()
    (world.folder / "page1.md").rename(world.folder / "new" / "page1.md")
    summary = world.sync()
    assert (summary.deleted, summary.embedded, summary.reused) == (1, 0, 1)
    assert set(world.rows()) == {"page0.md", "new/page1.md", "page2.md", "page3.md"}
    assert world.is_clean()


def test_a_record_that_left_its_file_is_deleted(world: World) -> None:
    path = world.write("c.jsonl", '{"_id": "1", "text": "First."}\n{"_id": "2", "text": "Second."}')
    world.sync()
    path.write_text('{"_id": "2", "text": "Second."}')
    summary = world.sync()
    assert (summary.deleted, summary.unchanged) == (1, 1)
    assert set(world.rows()) == {"c.jsonl#2"}
    assert world.is_clean()


def test_a_change_of_the_acl_embeds_nothing_and_stands_in_the_catalog(world: World) -> None:
    filled(world)
    world.write("_meta.yaml", "acl: [hr]\n")
    summary = world.sync()
    assert (summary.indexed, summary.embedded, summary.reused) == (4, 0, 4)
    assert {row.acl for row in world.rows().values()} == {("hr",)}
    assert world.is_clean()


def test_a_source_that_is_closed_closes_its_unchanged_documents(world: World) -> None:
    filled(world)
    world.overrides["sources"] = {"default": {"default_acl": ["staff"]}}
    summary = world.sync()
    assert (summary.indexed, summary.unchanged, summary.embedded) == (4, 0, 0)
    assert {row.acl for row in world.rows().values()} == {("staff",)}
    assert world.sync(pipeline=NoPipeline()).unchanged == 4


def test_a_failed_update_keeps_serving_the_last_good_revision(world: World) -> None:
    filled(world)
    (world.folder / "page1.md").write_bytes(b"\x00\x01\x02\xff\xfe\x00" * 50)
    summary = world.sync()
    assert summary.failed == 1
    row = world.row("page1.md")
    assert row.state not in ("indexed", "partial")
    assert row.revision
    assert "page1.md" in world.found("Word1")


def test_what_could_not_be_opened_is_tried_again(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def closed(self: LocalSource, item: SourceItem) -> bytes:
        raise ParseError(DocState.FAILED, "It cannot be read: Permission denied.")

    world.write("a.md", "# A\n\nBack again.\n")
    with monkeypatch.context() as patch:
        patch.setattr(LocalSource, "read", closed)
        summary = world.sync()
    assert [failure.state for failure in summary.failures] == ["failed"]
    assert world.sync().indexed == 1
    assert world.found("Back again") == {"a.md"}


# -------------------------------------------------------------------------- suspicious deletes


def test_a_listing_that_shrinks_too_much_deletes_nothing_and_says_so(world: World) -> None:
    filled(world, 20)
    for number in range(12):
        world.remove(f"page{number}.md")
    world.write("page19.md", "# Page 19\n\nStill indexed.\n")
    summary = world.sync()
    assert (summary.deleted, summary.indexed, summary.exit_code) == (0, 1, 3)
    assert "--allow-mass-delete" in summary.failures[0].reason
    assert len(world.rows()) == 20
    allowed = world.sync(allow_mass_delete=True)
    assert (allowed.deleted, allowed.exit_code) == (12, 0)
    assert len(world.rows()) == 8
    assert world.is_clean()


def test_a_file_that_loses_too_many_records_keeps_them(world: World) -> None:
    lines = [f'{{"_id": "{n}", "text": "Record {n}."}}' for n in range(20)]
    path = world.write("c.jsonl", "\n".join(lines))
    world.sync()
    path.write_text("\n".join(lines[:5]))
    summary = world.sync()
    assert (summary.deleted, summary.exit_code) == (0, 3)
    assert len(world.rows()) == 20
    assert world.sync(allow_mass_delete=True).deleted == 15
    assert len(world.rows()) == 5


# ------------------------------------------------------------------------------ where it is from


def test_a_folder_of_the_same_name_elsewhere_does_not_replace_a_source(world: World) -> None:
    filled(world)
    other = world.root / "elsewhere" / "docs"
    other.mkdir(parents=True)
    (other / "x.md").write_text("# X\n\nOther.\n")
    with pytest.raises(UsageError, match=f"pass --moved to read it from {other}"):
        world.sync(other)
    assert len(world.rows()) == 4
    summary = world.sync(other, moved=True)
    assert (summary.indexed, summary.deleted) == (1, 4)
    assert summary.deleted_uris == ("page0.md", "page1.md", "page2.md", "page3.md")


def test_a_name_that_was_given_to_another_folder_deletes_nothing_unless_that_is_meant(
    world: World,
) -> None:
    filled(world)
    other = world.root / "other"
    other.mkdir()
    (other / "page0.md").write_text("# Page 0\n\nOther.\n")
    said = r"3 of its 4 documents are not in .*other \(page1.md, page2.md, page3.md\); pass --moved"
    with pytest.raises(UsageError, match=said):
        world.sync(other, source="docs")
    assert world.sync().unchanged == 4
    summary = world.sync(other, source="docs", moved=True)
    assert (summary.indexed, summary.deleted) == (1, 3)


def test_a_source_that_moved_is_known_at_its_new_place(world: World) -> None:
    filled(world)
    new = world.root / "new place" / "docs"
    shutil.copytree(world.folder, new)
    assert world.sync(new, source="docs").unchanged == 4
    assert world.sync(new).unchanged == 4


def test_a_folder_under_another_name_is_not_there_twice_unless_that_is_meant(world: World) -> None:
    filled(world)
    new = world.folder.rename(world.root / "manuals")
    said = "4 of the 4 files of the source docs.*--source docs --moved.*--source manuals to have"
    with pytest.raises(UsageError, match=said):
        world.sync(new)
    assert len(world.rows()) == 4
    summary = world.sync(new, source="docs", moved=True)
    assert (summary.unchanged, summary.indexed, summary.embedded) == (4, 0, 0)
    assert world.sync(new, source="manuals").indexed == 4
    assert world.sync(new, source="manuals").unchanged == 4


def test_a_single_file_leaves_the_rest_of_its_source_alone(world: World) -> None:
    filled(world)
    world.write("page1.md", "# Page 1\n\nAlone.\n")
    summary = world.sync(world.folder / "page1.md", source="docs")
    assert (summary.indexed, summary.deleted) == (1, 0)
    assert len(world.rows()) == 4
    assert world.sync().unchanged == 4


def test_several_folders_can_be_one_source_or_sources_of_their_own(world: World) -> None:
    for name in ("one", "two"):
        (world.root / name).mkdir()
        (world.root / name / f"{name}.md").write_text(f"# {name}\n\nText of {name}.\n")
    folders = (world.root / "one", world.root / "two")
    assert world.sync(*folders).source == "one, two"
    assert world.sync(*folders, source="both").indexed == 2
    assert {row.source for row in world.rows().values()} >= {"both"}


def test_targets_that_would_share_a_name_by_chance_are_refused(world: World) -> None:
    other = world.root / "elsewhere" / "docs"
    other.mkdir(parents=True)
    with pytest.raises(UsageError, match="--source"):
        world.sync(world.folder, other)


def test_a_path_that_is_not_there_is_named(world: World) -> None:
    with pytest.raises(SourceNotFound):
        world.sync(world.root / "nothing")


# --------------------------------------------------------------------------- other fingerprints


def test_another_chunk_size_is_refused_even_if_nothing_changed(world: World) -> None:
    filled(world)
    world.overrides["chunking"] = {"max_tokens": 100}
    with pytest.raises(FingerprintMismatch):
        world.sync()


def test_chunks_longer_than_the_embedder_reads_are_refused(world: World) -> None:
    world.write("a.md", "Text.")
    world.overrides["chunking"] = {"max_tokens": 300}
    with pytest.raises(ConfigError, match=r"chunking\.max_tokens"):
        world.sync()


def test_stores_in_memory_are_refused(world: World) -> None:
    world.overrides["stores"] = {"vectors": "memory"}
    with pytest.raises(ConfigError, match="memory"):
        world.sync()


# ------------------------------------------------------------------------------------- deleting


def test_a_document_is_deleted_by_uri_and_stays_deleted(world: World) -> None:
    filled(world)
    summary = world.delete("page1.md")
    assert (summary.deleted, summary.deleted_chunks, summary.source) == (1, 1, "docs")
    assert "page1.md" not in world.found("Word1")
    again = world.sync()
    assert (again.listed, again.indexed, again.by_state) == (3, 0, {"indexed": 3})
    assert "page1.md" not in world.rows()
    assert world.is_clean()


def test_all_documents_of_a_file_are_deleted_by_its_address(world: World) -> None:
    world.write("c.jsonl", '{"_id": "1", "text": "First."}\n{"_id": "2", "text": "Second."}')
    world.sync()
    assert world.delete("c.jsonl").deleted == 2


def test_nothing_is_deleted_if_a_name_is_unknown(world: World) -> None:
    filled(world)
    with pytest.raises(UsageError, match="There is no document nothing"):
        world.delete("page1.md", "nothing")
    assert len(world.rows()) == 4
