"""What is done to a document in the suites that break things, and what its readers may see then."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from loadtests.chaos.journal import Row
from loadtests.chaos.pages import Author, Page, allows
from loadtests.chaos.sync import Embed
from quarry.errors import ModelError
from quarry.models.fakes import FakeEmbedder
from quarry.records import Principal, Vectors


def failing_embedder(_: Sequence[str]) -> Vectors:
    raise ModelError("The embedder ran out of memory; set embedder.batch_tokens lower.")


@dataclass(frozen=True, slots=True)
class Step:
    """What a document was and what it shall be; None: it is not there."""

    before: Page | None
    after: Page | None
    rivals: tuple[Page | None, ...] = ()
    """What others make of it at the same time."""
    embed: Embed | None = None
    """The embedder of who writes; None: one that works."""

    @property
    def ends(self) -> tuple[Page | None, ...]:
        """What readers may see while it is done, and however it is broken off."""
        if self.embed is failing_embedder:
            return (self.before,)
        return (self.before, self.after, *self.rivals)


def still(page: Page | None) -> Step:
    """Of a document that stays as it is."""
    return Step(page, page)


def _edited(author: Author, page: Page, kept: int, size: int) -> Page:
    new = author.page(size, page.acl)
    return replace(new, passages=page.passages[:kept] + new.passages[kept:])


def _steps() -> tuple[dict[str, Step], dict[str, Step]]:
    author = Author("p", random.Random(7))
    public, hr = ("public",), ("hr",)
    long, short = author.page(30, public), author.page(4, public)
    alone = {
        "create": Step(None, author.page(4, public)),
        "update": Step(short, _edited(author, short, 2, 4)),
        "shrink": Step(long, _edited(author, long, 3, 5)),
        "delete": Step(short, None),
        "narrow": Step(replace(short, acl=("public", "hr")), replace(short, acl=hr)),
        "widen": Step(replace(short, acl=hr), replace(short, acl=("hr", "eng"))),
    }
    edit, other = (_edited(author, short, 1, 6) for _ in range(2))
    at_once = {
        "two-syncs": Step(short, edit, rivals=(other,)),
        "delete-during-upload": Step(short, edit, rivals=(None,)),
        "no-embedder": Step(short, edit, embed=failing_embedder),
    }
    return alone, at_once


ALONE, AT_ONCE = _steps()
STEPS = {**ALONE, **AT_ONCE}
"""By label; the same page before, so that the calls of two of them can be compared."""


def embedder_of(step: Step) -> Embed:
    return step.embed or FakeEmbedder().embed_documents


def fault(step: Step, person: Principal, seen: Sequence[tuple[Row, list[str]]]) -> str:
    """What this person sees wrongly of one document; empty: all is well."""
    mine = [page for page in step.ends if page and allows(page.acl, person)]
    if not seen:
        return "lost sight of it" if len(mine) == len(step.ends) else ""
    if len(seen) > 1:
        return "sees two revisions of it"
    ((row, texts),) = seen
    if not allows(row.acl, person):
        return "sees what is forbidden"
    if not any(_is(page, row, texts) for page in mine):
        return f"sees a mixed, partial, replaced or forbidden page: {texts}"
    return ""


def _is(page: Page, row: Row, texts: Sequence[str]) -> bool:
    return row.version == page.version and sorted(texts) == sorted(page.passages)


def repaired(steps: Mapping[str, Step]) -> dict[str, Step]:
    """What readers see when each document was synced once more."""
    return {name: still(step.after) for name, step in steps.items()}
