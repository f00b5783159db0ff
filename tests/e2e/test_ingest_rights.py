"""Rights that were taken away end at once, whatever becomes of the rest of the run."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

import pytest

from ingest.stages import Encoder
from ingest.work import Row
from quarry.errors import ModelError, QuarryError, StoreError
from quarry.settings import Settings
from quarry.stores.milvus_lite import vector_server
from tests.e2e.ingest_world import InlinePipeline, NoPipeline, World

RECORDS = '{{"_id": "1", "text": "One.", "acl": {acl}}}\n{{"_id": "2", "text": "Two."}}\n'


@pytest.fixture(autouse=True)
def filled(world: World) -> None:
    world.write("a.md", "# A\n\nFirst in order.\n")
    world.write("b.md", "# B\n\nSalaries.\n")
    world.write("c.html", "<html><body><p>Salaries too.</p></body></html>")
    world.write("d.jsonl", RECORDS.format(acl='["public", "hr"]'))
    world.sync()


def stopped_run(world: World) -> None:
    """One whose embedder fails at the first document, before the others are read."""
    world.write("a.md", "# A\n\nOther words.\n")

    def broken(self: Encoder, rows: list[Row]) -> list[Row]:
        raise ModelError("The embedder failed.")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Encoder, "__call__", broken)
        with pytest.raises(ModelError):
            world.sync()


def acls(world: World) -> dict[str, tuple[str, ...]]:
    return {uri: row.acl for uri, row in world.rows().items() if row.revision}


ALL = dict.fromkeys(("a.md", "b.md", "c.html", "d.jsonl#2"), ("public",)) | {
    "d.jsonl#1": ("public", "hr")
}


@pytest.mark.parametrize(
    ("address", "text", "narrowed"),
    [
        ("b.md.meta.yaml", "acl: [hr]\n", {"b.md": ()}),
        ("c.html.meta.yaml", "acl: [hr]\n", {"c.html": ()}),
        ("b.md", "---\nacl: [hr]\n---\n# B\n\nSalaries.\n", {"b.md": ()}),
        ("b.md", "---\nacl: [hr\n---\n# B\n\nSalaries.\n", {"b.md": ()}),
        ("c.html.meta.yaml", "acl: [hr\n", {"c.html": ()}),
        ("d.jsonl", RECORDS.format(acl='["hr"]'), {"d.jsonl#1": ("hr",)}),
        ("d.jsonl.meta.yaml", "acl: [hr]\n", {"d.jsonl#2": ()}),
    ],
)
def test_what_a_document_no_longer_grants_ends_though_the_embedder_fails(
    world: World, address: str, text: str, narrowed: dict[str, tuple[str, ...]]
) -> None:
    assert acls(world) == ALL
    world.write(address, text)
    stopped_run(world)
    assert acls(world) == ALL | narrowed


def test_what_a_source_no_longer_grants_ends_though_the_embedder_fails(world: World) -> None:
    world.overrides["sources"] = {"default": {"default_acl": ["hr"]}}
    stopped_run(world)
    assert acls(world) == dict.fromkeys(ALL, ()) | {"d.jsonl#1": ("public", "hr")}


class NoRay(InlinePipeline):
    def session(self) -> AbstractContextManager[None]:
        raise QuarryError("Ray did not start.")


@pytest.mark.parametrize("fault", ["Ray", "vectors"])
def test_what_is_gone_and_what_is_no_longer_granted_ends_though_nothing_starts(
    world: World, fault: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    @contextmanager
    def closed(settings: Settings) -> Iterator[None]:
        raise StoreError("The vectors cannot be opened.")
        yield

    world.write("b.md.meta.yaml", "acl: [hr]\n")
    world.write("d.jsonl", RECORDS.format(acl='["hr"]'))
    world.remove("a.md")
    with monkeypatch.context() as patch:
        patch.setattr("ingest.run.vector_server", closed if fault == "vectors" else vector_server)
        with pytest.raises(QuarryError):
            world.sync(pipeline=NoRay() if fault == "Ray" else world.pipeline)
    kept = {uri: acl for uri, acl in ALL.items() if uri != "a.md"}
    assert acls(world) == kept | {"b.md": (), "d.jsonl#1": ("hr",)}
    assert world.sync().exit_code == 0
    assert acls(world) == kept | {"b.md": ("hr",), "d.jsonl#1": ("hr",)}
    assert world.is_clean()


def test_a_file_of_records_that_cannot_be_read_is_closed_though_the_embedder_fails(
    world: World,
) -> None:
    (world.folder / "d.jsonl").write_bytes(b"\x00\x01\x02\xff\xfe\x00" * 50)
    stopped_run(world)
    assert acls(world) == ALL | {"d.jsonl#1": (), "d.jsonl#2": ()}


def test_nothing_is_granted_by_a_run_whose_embedder_fails(world: World) -> None:
    world.write("b.md.meta.yaml", "acl: [public, staff]\n")
    stopped_run(world)
    assert acls(world) == ALL


def test_the_next_run_gives_the_rights_that_stand_and_embeds_nothing_for_them(
    world: World,
) -> None:
    world.write("b.md.meta.yaml", "acl: [hr]\n")
    stopped_run(world)
    summary = world.sync()
    assert (summary.indexed, summary.embedded) == (2, 1)
    assert acls(world)["b.md"] == ("hr",)
    assert world.is_clean()


def test_a_file_whose_sidecar_keeps_its_old_name_is_closed_and_both_are_told(world: World) -> None:
    world.write("pay.md", "# Pay\n\nzebra\n")
    world.write("pay.md.meta.yaml", "acl: [hr]\n")
    world.sync()
    (world.folder / "pay.md").rename(world.folder / "pay-2026.md")
    summary = world.sync()
    assert summary.exit_code == 3
    told = {failure.uri: failure.reason for failure in summary.failures}
    assert "pay.md.meta.yaml may be meant for it" in told["pay-2026.md"]
    assert "metadata of no file" in told["pay.md.meta.yaml"]
    assert acls(world)["pay-2026.md"] == ()
    (world.folder / "pay.md.meta.yaml").rename(world.folder / "pay-2026.md.meta.yaml")
    assert (world.sync().exit_code, acls(world)["pay-2026.md"]) == (0, ("hr",))


def test_what_can_never_be_read_is_told_by_each_run_and_keeps_none_busy(world: World) -> None:
    world.write("old.md.meta.yaml", "acl: [hr]\n")
    (world.folder / "link.md").symlink_to("/etc/hostname")
    first = world.sync()
    assert [failure.uri for failure in first.failures] == ["link.md", "old.md.meta.yaml"]
    again = world.sync(pipeline=NoPipeline())
    assert (again.failures, again.exit_code, again.failed) == (first.failures, 3, 0)
    assert (again.listed, again.unchanged) == (first.listed, first.listed)
    world.remove("link.md")
    world.write("link.md", "# Link\n\nA file of its own.\n")
    world.write("old.md", "# Old\n\nOld words.\n")
    mended = world.sync()
    assert (mended.exit_code, mended.indexed, mended.deleted) == (0, 2, 1)
    assert acls(world)["old.md"] == ("hr",)


def test_what_a_stray_sidecar_closes_is_closed_before_anything_is_read(world: World) -> None:
    world.write("b.meta.yaml", "acl: [hr]\n")
    stopped_run(world)
    assert acls(world) == ALL | {"b.md": ()}


@pytest.mark.parametrize("status", ["draft", "withdrawn"])
@pytest.mark.parametrize(
    ("address", "text", "uri"),
    [
        ("b.md", "---\nstatus: {}\n---\n# B\n\nSalaries.\n", "b.md"),
        ("c.html.meta.yaml", "status: {}\n", "c.html"),
        ("d.jsonl", '{{"_id": "2", "text": "Two.", "status": "{}"}}\n', "d.jsonl#2"),
    ],
)
def test_what_is_withdrawn_is_so_though_the_embedder_fails(
    world: World, address: str, text: str, uri: str, status: str
) -> None:
    world.write(address, text.format(status))
    stopped_run(world)
    assert world.row(uri).status == status
    world.sync()
    assert (world.row(uri).status, world.is_clean()) == (status, True)


def test_what_was_withdrawn_is_current_again_only_when_the_run_commits_it(world: World) -> None:
    world.write("c.html.meta.yaml", "status: withdrawn\n")
    world.sync()
    world.remove("c.html.meta.yaml")
    stopped_run(world)
    assert world.row("c.html").status == "withdrawn"
    world.sync()
    assert world.row("c.html").status == "current"


# -------------------------------------------------------------------------- records that are gone

MANY = "".join(f'{{"_id": "{n}", "text": "Word{n}."}}\n' for n in range(30))


def records(world: World) -> set[str]:
    return {uri for uri, row in world.rows().items() if row.revision and "#" in uri}


def without(*numbers: int) -> str:
    return "".join(f'{{"_id": "{n}", "text": "Word{n}."}}\n' for n in range(30) if n not in numbers)


def test_a_record_that_its_file_holds_no_more_is_hidden_though_the_embedder_fails(
    world: World,
) -> None:
    world.write("d.jsonl", '{"_id": "2", "text": "Two."}\n')
    for _ in range(2):
        stopped_run(world)
        assert records(world) == {"d.jsonl#2"}
        assert world.found("one") == set()
    summary = world.sync()
    assert (summary.exit_code, summary.deleted) == (0, 0)
    assert world.is_clean()  # the rows of what an earlier run had hidden are swept
    with world.stores() as stores:
        assert stores.text.count() == len(world.rows())


def test_a_run_that_goes_through_hides_sweeps_and_counts_it_once(world: World) -> None:
    world.write("d.jsonl", '{"_id": "2", "text": "Two."}\n')
    summary = world.sync()
    assert (summary.deleted, summary.deleted_uris) == (1, ("d.jsonl#1",))
    assert records(world) == {"d.jsonl#2"}
    assert world.is_clean()


def test_a_hidden_record_returns_if_its_file_is_put_back_as_it_was(world: World) -> None:
    path = world.folder / "d.jsonl"
    before = path.stat()
    text = path.read_text()
    world.write("d.jsonl", '{"_id": "2", "text": "Two."}\n')
    stopped_run(world)
    path.write_text(text)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert world.sync().exit_code == 0
    assert records(world) == {"d.jsonl#1", "d.jsonl#2"}
    assert world.is_clean()


def test_records_that_are_suspiciously_many_stay_when_the_embedder_fails(world: World) -> None:
    world.write("m.jsonl", MANY)
    world.sync()
    world.write("m.jsonl", without(*range(11)))
    stopped_run(world)
    assert len(records(world)) == 32
    assert world.sync().exit_code == 3
    assert len(records(world)) == 32
    world.write("m.jsonl", without(*range(10)))
    stopped_run(world)
    assert len(records(world)) == 22


@pytest.mark.parametrize("text", ["", '{"_id": "2", "text": "Two."}\n{"_id": "1"'])
def test_what_a_file_that_was_not_read_whole_may_hold_is_not_hidden(
    world: World, text: str
) -> None:
    world.write("d.jsonl", text)
    stopped_run(world)
    assert records(world) == {"d.jsonl#1", "d.jsonl#2"}
