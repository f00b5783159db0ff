"""What goes into a store as JSON comes out equal."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime

from quarry.records import Chunk, DocState, Document, Generation, SourceEntry, Status
from quarry.stores import codec


def through_json(row: dict[str, object]) -> dict[str, object]:
    return json.loads(json.dumps(row))  # type: ignore[no-any-return]


def test_a_full_document_comes_back_equal() -> None:
    document = Document(
        doc_id="d1",
        source="handbook",
        address="a/ü.md",
        uri="file:///a/%C3%BC.md",
        title="Leave",
        revision="00000001-abc",
        serial=2,
        state=DocState.PARTIAL,
        error="page 3 cannot be read",
        series="HR-014",
        version="4",
        status=Status.DRAFT,
        effective=date(2026, 7, 1),
        acl=("public", "user:ana"),
        metadata={"region": "CA", "pages": 3, "score": 0.5, "signed": True},
        chunk_count=7,
        indexed_at=datetime(2026, 11, 30, 9, 0, tzinfo=UTC),
        committed_at=datetime(2026, 11, 30, 9, 1, tzinfo=UTC),
    )
    row = through_json(codec.document_to_json(document))
    assert codec.document_from_json(row) == document


def test_an_empty_document_comes_back_equal() -> None:
    document = Document(doc_id="d", source="s", address="a", uri="u")
    row = through_json(codec.document_to_json(document))
    assert codec.document_from_json(row) == document


def test_a_document_that_an_earlier_version_wrote_is_read() -> None:
    document = Document(doc_id="d", source="s", address="a", uri="u", state=DocState.DELETED)
    row = through_json(codec.document_to_json(document))
    del row["deleted_by_hand"]
    assert codec.document_from_json(row) == document


def test_a_chunk_comes_back_equal_with_and_without_pages() -> None:
    for pages in ((2, 3), None):
        chunk = Chunk(
            row_id="c.t",
            chunk_id="c",
            doc_id="d",
            revision="t",
            ordinal=4,
            text="Twenty weeks.",
            header="Leave",
            section=("Leave", "Length"),
            pages=pages,
            span=(10, 23),
            identifiers=("HR-014",),
        )
        assert codec.chunk_from_json(through_json(codec.chunk_to_json(chunk))) == chunk


def test_entries_and_generations_come_back_equal() -> None:
    entry = SourceEntry(
        source="s", address="a", tag="1", recipe="r", state=DocState.CORRUPT, documents=0
    )
    assert codec.entry_from_json(through_json(codec.entry_to_json(entry))) == entry
    generation = Generation(
        name="g1", fingerprint={"embedder": {"dimension": 4}}, created_at=datetime.now(UTC)
    )
    row = through_json(codec.generation_to_json(generation))
    assert codec.generation_from_json(row) == generation
