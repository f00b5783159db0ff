"""While a line of a file of records cannot be read, what it may hold is kept, for nobody."""

from __future__ import annotations

import pytest

from quarry.errors import ModelError
from quarry.records import DocState
from tests.e2e.ingest_world import InlinePipeline, World

WHOLE = '{{"id": "r{0}", "text": "word{0}", "acl": ["public"]}}\n'
BROKEN = {
    "acl twice": '{{"id": "r{0}", "text": "word{0}", "acl": ["public"], "acl": ["staff"]}}\n',
    "no end": '{{"id": "r{0}", "acl": ["staff"], "text": "word{0}\n',
}


def lines(world: World, count: int, broken: str = "", first: int = 0) -> None:
    """Records from 0 to `count`, those from `first` on in the form `broken`."""
    forms = [broken if broken and number >= first else WHOLE for number in range(count)]
    world.write("c.jsonl", "".join(form.format(n) for n, form in enumerate(forms)))


def dying(address: str) -> None:
    raise ModelError("The embedder failed.")


def acls(world: World) -> dict[str, tuple[str, ...]]:
    return {uri: row.acl for uri, row in world.rows().items() if row.revision}


@pytest.mark.parametrize("broken", BROKEN.values(), ids=list(BROKEN))
@pytest.mark.parametrize("count", [3, 20])
def test_a_record_in_a_broken_line_is_closed_before_anything_else_however_many_there_are(
    world: World, broken: str, count: int
) -> None:
    lines(world, count)
    world.sync()
    lines(world, count, broken, first=1)
    with pytest.raises(ModelError):
        world.sync(pipeline=InlinePipeline(dying))
    closed = {f"c.jsonl#r{n}": () if n else ("public",) for n in range(count)}
    assert acls(world) == closed
    assert (world.sync().deleted, acls(world)) == (0, closed)


@pytest.mark.parametrize("broken", BROKEN.values(), ids=list(BROKEN))
def test_it_is_told_kept_and_served_again_when_the_line_is_mended(
    world: World, broken: str
) -> None:
    lines(world, 3)
    world.sync()
    lines(world, 3, broken, first=2)
    summary = world.sync()
    assert (summary.deleted, summary.exit_code) == (0, 3)
    told = {failure.uri: failure for failure in summary.failures}
    assert set(told) == {"c.jsonl#line-3", "c.jsonl#r2"}
    assert "Line 3" in told["c.jsonl#r2"].reason
    assert world.row("c.jsonl#r2").state is DocState.CORRUPT
    assert world.sync().listed == 4
    lines(world, 3)
    assert world.sync().embedded == 0
    assert acls(world) == {f"c.jsonl#r{n}": ("public",) for n in range(3)}
    assert world.is_clean()


def test_it_is_deleted_when_the_file_reads_whole_without_it(world: World) -> None:
    lines(world, 3)
    world.sync()
    lines(world, 3, BROKEN["no end"], first=2)
    world.sync()
    lines(world, 2)
    assert set(world.sync().deleted_uris) == {"c.jsonl#line-3", "c.jsonl#r2"}
    assert set(world.rows()) == {"c.jsonl#r0", "c.jsonl#r1"}


def test_a_record_without_an_id_is_closed_while_its_line_is_broken(world: World) -> None:
    world.write("c.jsonl", '{"text": "one"}\n{"text": "two"}\n')
    world.sync()
    world.write("c.jsonl", '{"text": "one"}\n{"text": "two"\n')
    world.sync()
    assert acls(world) == {"c.jsonl#line-1": ("public",), "c.jsonl#line-2": ()}


def test_a_line_that_repeats_an_id_was_read_so_what_is_missing_is_gone(world: World) -> None:
    lines(world, 2)
    world.sync()
    world.write("c.jsonl", WHOLE.format(0) + WHOLE.format(0))
    assert world.sync().deleted_uris == ("c.jsonl#r1",)


def test_a_row_of_csv_that_leaves_a_quote_open_is_kept_for_nobody_and_the_rows_below_stay(
    world: World,
) -> None:
    row = "r{0},word{0},public\n"
    whole = "id,text,acl\n" + "".join(row.format(n) for n in range(4))
    world.write("c.csv", whole)
    world.sync()
    world.write("c.csv", whole.replace("word1", '"word1').replace("word3", "word4"))
    summary = world.sync()
    assert (summary.deleted, summary.exit_code) == (0, 3)
    assert {failure.uri for failure in summary.failures} == {"c.csv#line-3", "c.csv#r1"}
    assert acls(world) == {f"c.csv#r{n}": () if n == 1 else ("public",) for n in range(4)}
    world.write("c.csv", whole)
    world.sync()
    assert acls(world) == {f"c.csv#r{n}": ("public",) for n in range(4)}


def test_the_records_of_a_file_whose_header_is_no_more_the_first_line_are_closed_at_once(
    world: World,
) -> None:
    rows = "id,acl,text\nr0,public,word0\nr1,public,word1\n"
    world.write("c.csv", rows)
    world.sync()
    world.write("c.csv", f"Exported today\n{rows}")
    with pytest.raises(ModelError):
        world.write("d.md", "# Another\n\nword2\n")
        world.sync(pipeline=InlinePipeline(dying))
    assert acls(world) == {"c.csv#r0": (), "c.csv#r1": ()}
    assert world.sync().exit_code == 3
    assert acls(world)["c.csv#r0"] == ()
    world.write("c.csv", f"sep=,\n{rows}")
    world.sync()
    assert acls(world)["c.csv#r0"] == acls(world)["c.csv#r1"] == ("public",)
