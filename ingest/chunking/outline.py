"""Sections: the pieces of a document under the path of headings that they stand below."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from ingest.chunking.atoms import Atom, atoms, heading_atom, titled
from quarry.records import Block, BlockKind
from quarry.text import clean

STEP = " > "
"""Between the titles of a section path."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    path: tuple[str, ...] = ()
    anchor: str = ""
    heading: Atom | None = None
    """The heading line itself, said in the text where the header of a chunk does not say it."""
    atoms: tuple[Atom, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Sections that share chunks, under the path that they have in common."""

    sections: tuple[Section, ...]

    @property
    def path(self) -> tuple[str, ...]:
        shared: list[str] = []
        for steps in zip(*(section.path for section in self.sections), strict=False):
            if len(set(steps)) > 1:
                break
            shared.append(steps[0])
        return tuple(shared)

    @property
    def anchor(self) -> str:
        return self.sections[0].anchor

    @property
    def atoms(self) -> tuple[Atom, ...]:
        """All pieces; titles that the shared path lacks stand above the pieces below them."""
        depth = len(self.path)
        found: list[Atom] = []
        for section in self.sections:
            unsaid = (
                section.path[depth:] if section.atoms else section.path[depth:] or section.path[-1:]
            )
            if unsaid and section.heading:
                found.append(replace(section.heading, text=STEP.join(unsaid)))
            found.extend(section.atoms)
        return tuple(found)

    def under(self, titles: Sequence[str]) -> tuple[Atom, ...]:
        """The pieces below these titles of the path, which nothing else says."""
        below = self.atoms
        first = self.sections[0].heading
        if first is None:
            return below
        texts = {atom.text for atom in below}
        above = (titled(first, title) for title in titles if title not in texts)
        return (*above, *below)


def outline(blocks: Sequence[Block]) -> list[Section]:
    """Sections in reading order; one without text stays only if no section below it says it."""
    sections = list(_sections(blocks))
    following = [*sections[1:], Section()]
    return [
        section
        for section, after in zip(sections, following, strict=True)
        if section.atoms or (section.path and after.path[: len(section.path)] != section.path)
    ]


def _sections(blocks: Sequence[Block]) -> Iterator[Section]:
    open_headings: list[tuple[int, str]] = []
    current, pieces = Section(), list[Atom]()
    in_list = False
    for block in blocks:
        if block.kind is not BlockKind.HEADING:
            pieces.extend(atoms(block, continues_list=in_list))
            in_list = block.kind is BlockKind.LIST_ITEM
            continue
        title = " ".join(clean(block.text).split())
        if not title:
            continue
        yield replace(current, atoms=tuple(pieces))
        pieces, in_list = [], False
        open_headings = [entry for entry in open_headings if entry[0] < block.level]
        open_headings.append((block.level, title))
        path = tuple(step for _, step in open_headings)
        heading = heading_atom(block, title)
        current = Section(path=path, anchor=block.anchor, heading=heading)
    yield replace(current, atoms=tuple(pieces))
