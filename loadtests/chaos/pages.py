"""The documents of a chaos run, made so that a text tells where it is from.

A page has a version, which is its content's name, and passages with names of their own. An edit
keeps some passages and writes others, so that old and new revisions share texts, as real ones do.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import count

from quarry import ids
from quarry.records import Chunk, Document, Principal
from quarry.text import embedded_text

SOURCE = "chaos"
WORD = "harbour"
"""In every passage, so that a question for it finds all rows."""
LONG, SHORT = 30, 5
"""Passages of a long and of a short page."""

GROUPS = ("hr", "eng", "ops")
ACLS = (("public",), ("hr",), ("eng",), ("hr", "eng"), ("ops", "hr"), ("user:ana",))
PEOPLE = (
    Principal(),
    Principal(user="ana"),
    Principal(user="bo", groups=("hr",)),
    Principal(user="cy", groups=("eng",)),
    Principal(user="di", groups=("ops",)),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """What the source says of one document at some time."""

    version: str
    """Of the content: two pages with the same version have the same passages."""
    passages: tuple[str, ...]
    acl: tuple[str, ...] = ("public",)


def allows(acl: Sequence[str], person: Principal) -> bool:
    """The rule of access in the run's own words, so that the product is not judged by itself."""
    mine = {"public", *person.groups}
    if person.user:
        mine.add(f"user:{person.user}")
    return not mine.isdisjoint(acl)


# ----------------------------------------------------------------------------- as the index has it


def doc_id(name: str) -> str:
    return ids.doc_id(SOURCE, name)


def document_of(name: str, page: Page) -> Document:
    return Document(
        doc_id=doc_id(name),
        source=SOURCE,
        address=name,
        uri=name,
        title=name,
        content_hash=page.version,
        meta_hash=ids.digest(*page.acl),
        acl=page.acl,
        metadata={"page": name},
    )


def chunks_of(name: str, page: Page) -> list[Chunk]:
    return [_chunk(name, passage, ordinal) for ordinal, passage in enumerate(page.passages)]


def _chunk(name: str, passage: str, ordinal: int) -> Chunk:
    text = f"{WORD} {name} {passage}"
    whole = embedded_text(name, text)
    return Chunk(
        row_id="",
        chunk_id=ids.chunk_id(doc_id(name), whole, 0),
        doc_id=doc_id(name),
        revision="",
        ordinal=ordinal,
        text=text,
        header=name,
        tokens=len(whole.split()) + 2,
        text_hash=ids.digest(whole),
    )


def passage_of(text: str) -> str:
    """The name of the passage that a chunk's text is."""
    return text.rpartition(" ")[2]


# --------------------------------------------------------------------------------------- authors


class Author:
    """Writes pages; `name` and its random numbers are its own, so that no two texts are equal."""

    def __init__(self, name: str, chance: random.Random) -> None:
        self._name = name
        self._chance = chance
        self._numbers: Iterator[int] = count()

    def page(self, passages: int, acl: Sequence[str]) -> Page:
        version = f"{self._name}v{next(self._numbers)}"
        names = tuple(f"{version}p{n}" for n in range(passages))
        return Page(version=version, passages=names, acl=tuple(acl))

    def edit(self, page: Page, passages: int) -> Page:
        """Keeps about two thirds of what fits and writes the rest, in the places of the others."""
        new = self.page(passages, page.acl)
        mixed = tuple(
            old if self._chance.random() < 2 / 3 else written
            for old, written in zip(page.passages, new.passages, strict=False)
        )
        return replace(new, passages=mixed + new.passages[len(mixed) :])
