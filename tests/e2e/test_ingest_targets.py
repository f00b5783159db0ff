"""Targets of one run of which one is a part of another."""

from __future__ import annotations

import re

import pytest

from quarry.errors import UsageError
from tests.e2e.ingest_world import World


@pytest.fixture(autouse=True)
def filled(world: World) -> None:
    world.write("hr/a.md", "# A\n\nThe word is zebra.\n")
    world.write("b.md", "# B\n\nThe word is okapi.\n")


@pytest.mark.parametrize("part", ["hr", "hr/a.md"])
@pytest.mark.parametrize("options", [{}, {"source": "both"}])
@pytest.mark.parametrize("order", [1, -1])
@pytest.mark.parametrize("is_new", [True, False])
def test_a_folder_and_a_part_of_it_are_refused(
    world: World, part: str, options: dict[str, str], order: int, is_new: bool
) -> None:
    if not is_new:
        other = world.root / "other"
        other.mkdir()
        world.sync(other)
    targets = [world.folder, world.folder / part][::order]
    said = f"{world.folder / part} is in {world.folder} and would be there twice; leave it out"
    with pytest.raises(UsageError, match=re.escape(said)):
        world.sync(*targets, **options)


def test_a_part_is_refused_beside_its_folder_as_after_it(world: World) -> None:
    world.sync()
    for targets in ([world.folder / "hr"], [world.folder, world.folder / "hr"]):
        with pytest.raises(UsageError, match=f"{world.folder / 'hr'} is in {world.folder}"):
            world.sync(*targets)
    assert len(world.rows()) == 2


def test_a_part_that_was_named_a_source_of_its_own_is_kept_up_with_its_folder(
    world: World,
) -> None:
    world.sync()
    world.sync(world.folder / "hr", source="hr")
    world.write("hr/a.md", "# A\n\nThe word is gnu.\n")
    assert world.sync(world.folder, world.folder / "hr").indexed == 2
