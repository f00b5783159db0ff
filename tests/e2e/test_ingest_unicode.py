"""One document whose metadata are no Unicode never stops a run."""

from __future__ import annotations

import pytest

from tests.e2e.ingest_world import World

BAD = r"x\uD800y"


@pytest.mark.parametrize(
    ("address", "text", "uri"),
    [
        ("m.md", f'---\nseries: "{BAD}"\ntitle: "{BAD}"\n---\n# M\n\nMiddle.\n', "m.md"),
        ("m.md", f'---\n"{BAD}": "{BAD}"\nurl: "{BAD}"\n---\n# M\n\nMiddle.\n', "m.md"),
        ("m.jsonl", f'{{"id": "1", "text": "{BAD} Middle.", "series": "{BAD}"}}\n', "m.jsonl#1"),
        ("m.jsonl", f'{{"id": "1", "text": "Middle.", "{BAD}": "{BAD}"}}\n', "m.jsonl#1"),
    ],
)
def test_it_is_indexed_and_so_are_those_after_it(
    world: World, address: str, text: str, uri: str
) -> None:
    world.write("a.md", "# A\n\nFirst.\n")
    world.write(address, text)
    world.write("z.md", "# Z\n\nLast.\n")
    assert world.sync().indexed == 3
    assert set(world.rows()) == {"a.md", uri, "z.md"}
    assert "\ud800" not in repr(world.row(uri))
    assert world.found("middle") == {uri}
    assert world.is_clean()


def test_the_name_of_a_record_may_be_anything(world: World) -> None:
    world.write("m.jsonl", f'{{"id": "{BAD}", "text": "Middle."}}\n{{"id": "2", "text": "Two."}}\n')
    assert world.sync().indexed == 2
    assert world.is_clean()


def test_whatever_its_name_a_document_is_shown_and_found_as_its_file_is_called(
    world: World,
) -> None:
    name, records = "Straße 1/50% off? C# (neu).md", "Größen & Maße #2.jsonl"
    world.write(name, "# Plan\n\nMiddle.\n")
    world.write(records, '{"id": "a b#%20", "text": "Middle."}\n')
    world.sync()
    assert world.found("middle") == {name, f"{records}#a b#%20"}
    assert set(world.delete(name).deleted_uris) == {name}
    assert world.found("middle") == {f"{records}#a b#%20"}
