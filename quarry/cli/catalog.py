"""The live catalog for commands that list: no models, no vectors, and nothing is created."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass

from quarry.entries import names_of
from quarry.errors import UsageError
from quarry.ports import Catalog, TextStore
from quarry.records import DocState, Document, Generation
from quarry.settings import Settings

NOTHING_YET = "Nothing has been ingested yet; run: quarry ingest FOLDER"
_PAGE = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Live:
    """The generation that readers see, its catalog and its text rows."""

    generation: Generation
    catalog: Catalog
    texts: TextStore


@contextmanager
def live_catalog(settings: Settings) -> Iterator[Live | None]:
    """The live generation; None if nothing was ever ingested. Raises StoreError."""
    generation = live_generation(settings)
    if generation is None:
        yield None
        return
    from quarry.stores.factory import open_texts

    catalog, texts = open_texts(settings, generation.name)
    with closing(catalog), closing(texts):
        yield Live(generation=generation, catalog=catalog, texts=texts)


def live_generation(settings: Settings) -> Generation | None:
    """What readers see, or None; nothing is created by looking. Raises StoreError."""
    from quarry.stores.factory import open_registry
    from quarry.stores.sqlite import FILE_NAME

    if settings.stores.text == "sqlite" and not (settings.data_dir / FILE_NAME).exists():
        return None
    with closing(open_registry(settings)) as registry:
        return registry.live()


def need_index(settings: Settings) -> None:
    """Raises UsageError before anything was ingested: to load models for that would be in vain."""
    if live_generation(settings) is None:
        raise UsageError(NOTHING_YET)


def rows(
    catalog: Catalog, *, source: str = "", state: DocState | None = None
) -> Iterator[Document]:
    """Catalog rows in pages, in the order of doc_id; tombstones only if asked for by state."""
    after = ""
    while page := catalog.scan(source=source, state=state, after=after, limit=_PAGE):
        for row in page:
            if state is not None or row.state is not DocState.DELETED:
                yield row
        after = page[-1].doc_id


def find(catalog: Catalog, name: str, *, kind: str = "document") -> Document:
    """The document of an id, or of an address; to look at one, its public address does too.

    `kind` is what the caller may have meant by the name. Raises UsageError if none or several have
    it.
    """
    by_id = catalog.get([name])
    if by_id:
        return by_id[name]
    found = [row for row in rows(catalog) if name in (*names_of(row), row.url)]
    if not found:
        found = [row for row in rows(catalog, state=DocState.DELETED) if name in names_of(row)]
    if not found:
        raise UsageError(f"There is no {kind} {name}; quarry documents lists all documents.")
    if len(found) > 1:
        raise UsageError(
            f"{len(found)} documents have the address {name}; name one by its doc_id "
            f"(quarry documents --json shows it)."
        )
    return found[0]
