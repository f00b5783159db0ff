"""A process that changes documents all the time, and may be killed at any moment.

Each step reads a document, decides, and brings it in line through the commit protocol. A writer
that was outrun reads again and decides anew; one whose stores are down goes on with another
document.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

from loadtests.chaos.journal import Journal, RecordedCatalog, Row
from loadtests.chaos.pages import ACLS, LONG, SHORT, Author, Page, passage_of
from loadtests.chaos.sync import read_base, sync_batch, sync_from
from loadtests.chaos.world import World
from quarry.errors import Conflict, StoreError
from quarry.records import Document
from quarry.stores.factory import Stores

STOP = "stop-writers"
MOST_TRIES = 3
"""Times that a step is decided when other writers are faster."""


KINDS = {"edit": 45, "resize": 12, "delete": 10, "acl": 25, "settle": 8}
"""What is done to a document that is there, by weight."""


class Decision(NamedTuple):
    kind: str
    page: Page | None


def write(world: World, number: int, life: int) -> None:
    """Runs until told to stop; `life` counts how often this writer was started."""
    journal = Journal(world.journals / f"writer-{number}-{life}.jsonl")
    opened = world.stores()
    stores = replace(opened, catalog=RecordedCatalog.over(opened.catalog, journal))
    chance = random.Random(f"{world.seed}-writer-{number}-{life}")  # noqa: S311
    writer = Writer(stores, journal, chance, Author(f"w{number}x{life}", chance))
    while not world.told(STOP):
        writer.step(world.names)
        time.sleep(chance.choice((0.0, 0.0, 0.05)))
    opened.close()
    journal.close()


class Writer:
    def __init__(
        self, stores: Stores, journal: Journal, chance: random.Random, author: Author
    ) -> None:
        self._stores = stores
        self._journal = journal
        self._chance = chance
        self._author = author

    def step(self, names: list[str]) -> None:
        if self._chance.random() < 0.1:
            some = self._chance.sample(names, k=self._chance.randint(2, 4))
            self._attempt("batch", lambda: self._write_together(some))
            return
        name = self._chance.choice(names)
        for _ in range(MOST_TRIES):
            if self._attempt("step", lambda: self.write_one(name)):
                return

    def _attempt(self, kind: str, act: Callable[[], None]) -> bool:
        """False if another writer was faster; any other error is noted and ends the step."""
        try:
            act()
        except Conflict:
            self._journal.note("conflict", kind=kind)
            return False
        except Exception as error:  # noted whatever it is: the judge says what may happen
            self._journal.note("failed", kind=kind, error=type(error).__name__, message=str(error))
            if isinstance(error, StoreError):
                time.sleep(self._chance.uniform(0.1, 0.5))
        return True

    def write_one(self, name: str, wish: str = "") -> None:
        """One change of one document, of the kind wished for or drawn. Raises StoreError."""
        base = read_base(self._stores, name)
        kind, page = self._decide(base, wish)
        if page:
            self._journal.note_page(page)
        row = sync_from(self._stores, name, page, base)
        if row is not None:
            self.note_done(kind, row, page)

    def _write_together(self, names: list[str]) -> None:
        pages = {name: self._author.page(self._size(), self._acl()) for name in names}
        for page in pages.values():
            self._journal.note_page(page)
        outrun = None
        for name, outcome in sync_batch(self._stores, pages).items():
            if outcome.document:
                self.note_done("edit", outcome.document, pages[name])
            elif isinstance(outcome.error, Conflict):
                outrun = outcome.error
            elif outcome.error:
                raise outcome.error
        if outrun:
            raise outrun

    def note_done(self, kind: str, row: Document, page: Page | None) -> None:
        wanted = None if page is None else (page.version, page.acl)
        self._journal.note("done", kind=kind, row=Row.of(row), wanted=wanted)

    # ------------------------------------------------------------------------------- decisions

    def _decide(self, base: Document | None, wish: str) -> Decision:
        (drawn,) = self._chance.choices(list(KINDS), weights=list(KINDS.values()))
        kind = wish or drawn
        if base is None or not base.revision:
            if wish and base:
                return Decision("settle", None)
            return Decision("create", self._author.page(self._size(), self._acl()))
        if kind == "delete":
            return Decision(kind, None)
        held = self._page_of(base)
        if kind == "acl":
            others = [acl for acl in ACLS if acl != base.acl]
            return Decision(kind, replace(held, acl=self._chance.choice(others)))
        if kind == "settle":
            return Decision(kind, held)
        size = len(held.passages)
        if kind == "resize":
            size = SHORT if size > SHORT else LONG
        return Decision("edit", self._author.edit(held, size))

    def _page_of(self, base: Document) -> Page:
        """The page that the document was made from, as far as its rows tell."""
        chunks = self._stores.text.chunks(base.doc_id, base.revision, range(base.chunk_count))
        passages = tuple(passage_of(chunk.text) for chunk in chunks)
        if len(passages) < base.chunk_count:
            # Swept meanwhile, by a writer that was faster; the catalog would tell at the commit.
            raise Conflict("The document was changed since it was read; read it again.")
        return Page(version=base.content_hash, passages=passages, acl=base.acl)

    def _size(self) -> int:
        return self._chance.choice((SHORT, LONG, self._chance.randint(1, LONG)))

    def _acl(self) -> tuple[str, ...]:
        return self._chance.choice(ACLS)
