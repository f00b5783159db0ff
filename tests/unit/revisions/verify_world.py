"""Stores with documents in them, and damage, for the tests of verify."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

from quarry import revisions
from quarry.access.compile import labels_of
from quarry.ids import digest, row_id
from quarry.records import Chunk, DocState, Document, SourceEntry, TextRow, VectorRow
from quarry.stores.factory import Stores
from quarry.stores.memory import MemoryCatalog, MemoryTextStore, MemoryVectorStore
from quarry.stores.sqlite import open_database
from quarry.stores.sqlite_catalog import SqliteCatalog
from quarry.stores.sqlite_text import SqliteTextStore
from quarry.verify import verify
from quarry.verify_report import VerifyReport
from tests.contract.rows import DIMENSION, at, document, vector


def memory(retention: timedelta = timedelta(0)) -> Stores:
    catalog = MemoryCatalog(retention=retention)
    made = Stores(catalog, MemoryTextStore(), MemoryVectorStore(), retention, clock=lambda: at(5))
    made.ensure(DIMENSION)
    return made


def sqlite(folder: Path) -> Stores:
    database = open_database(folder)
    made = Stores(
        SqliteCatalog(database, "g1", retention=timedelta(0)),
        SqliteTextStore(database, "g1"),
        MemoryVectorStore(),
        clock=lambda: at(5),
    )
    made.ensure(DIMENSION)
    return made


def chunks(doc: str, texts: list[str]) -> list[Chunk]:
    return [
        Chunk(
            row_id="",
            chunk_id=digest(doc, text),
            doc_id=doc,
            revision="",
            ordinal=number,
            text=text,
            header="",
            text_hash=digest(text),
        )
        for number, text in enumerate(texts)
    ]


def ingest(stores: Stores, doc: str, texts: list[str], **fields: object) -> Document:
    made = chunks(doc, texts)
    base = stores.catalog.get([doc]).get(doc)
    wanted = document(doc, **{"revision": "", "serial": 0, "chunk_count": 0, **fields})
    outcome = revisions.commit_revision(
        stores,
        base=base,
        document=wanted,
        chunks=made,
        vectors={chunk.text_hash: vector(1.0) for chunk in made},
    )
    assert outcome.document is not None
    stores.catalog.put_entry(
        SourceEntry(
            source=wanted.source,
            address=wanted.address,
            tag="t",
            recipe="r0",
            state=DocState.INDEXED,
            documents=1,
        )
    )
    return outcome.document


def plant(
    stores: Stores, row: Document, token: str, *, where: str = "both", count: int = 1
) -> None:
    """Rows of that token that nobody committed."""
    for chunk in chunks(row.doc_id, [f"planted {number}" for number in range(count)]):
        stamped = replace(chunk, row_id=row_id(chunk.chunk_id, token), revision=token)
        if where in ("both", "text"):
            stores.text.upsert([TextRow(chunk=stamped, labels=labels_of(row))])
        if where in ("both", "vectors"):
            stores.vectors.upsert(
                [
                    VectorRow(
                        row_id=stamped.row_id,
                        chunk_id=stamped.chunk_id,
                        doc_id=row.doc_id,
                        revision=token,
                        labels=labels_of(row),
                        vector=vector(1.0),
                    )
                ]
            )


def served(stores: Stores, doc: str) -> list[str]:
    row = stores.catalog.get([doc])[doc]
    held = stores.text.chunks(doc, row.revision, range(row.chunk_count))
    return [chunk.text for chunk in held]


def rows_of(stores: Stores, doc: str) -> set[str]:
    refs = [*stores.text.row_refs([doc]), *stores.vectors.row_refs([doc])]
    return {ref.revision for ref in refs}


def kinds(report: VerifyReport) -> dict[str, int]:
    return dict(report.found)


def assert_mended(stores: Stores, content: dict[str, list[str]]) -> None:
    assert verify(stores, repair=False).clean
    for doc, texts in content.items():
        assert served(stores, doc) == texts
        assert rows_of(stores, doc) == {stores.catalog.get([doc])[doc].revision}
