"""Reading, embedding and writing, stage by stage, in one process and in memory."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence

import pytest

from ingest.work import Done, pack, unpack
from quarry import ids, revisions
from quarry.errors import ModelError, RowsRejected, StoreUnavailable
from quarry.models.fakes import FakeEmbedder
from quarry.records import Document, ParsedDocument, SourceItem, TextRow, Vectors
from quarry.settings import Settings, SourceSettings
from quarry.stores.factory import Stores
from quarry.stores.memory import MemoryCatalog, MemoryTextStore, MemoryVectorStore
from tests.unit.ingest.reading_world import Bench, FakeParser, FakeSource, ends, works

# ------------------------------------------------------------------------------------- reading


def test_each_address_gives_its_documents_and_one_end() -> None:
    bench = Bench(FakeSource({"a.md": "Alpha.", "b.md": "Beta."}))
    rows = bench.read()
    assert [work.document.address for work in works(rows)] == ["a.md", "b.md"]
    assert [(end.task, end.documents) for end in ends(rows)] == [(0, 1), (1, 1)]
    assert all(work.chunks and work.document.acl == ("public",) for work in works(rows))


def test_a_file_of_records_gives_many_documents_with_uris_of_their_own() -> None:
    bench = Bench(FakeSource({"c.jsonl": "one|First.\n2 % #ä|Second."}))
    rows = bench.read(several=True)
    assert [work.document.uri for work in works(rows)] == ["c.jsonl#one", "c.jsonl#2 % #ä"]
    assert ends(rows)[0].documents == 2


def test_a_file_that_turns_out_to_hold_records_is_read_once_more_and_sent_once() -> None:
    source = FakeSource({"c.jsonl": "one|First.\ntwo|Second."})
    rows = Bench(source).read(several=False)
    assert source.reads == ["c.jsonl", "c.jsonl"]
    assert len(works(rows)) == 2
    assert [end.documents for end in ends(rows)] == [2]


def test_a_file_is_read_once_more_only_after_its_first_reading_has_let_its_parser_go() -> None:
    class OneAtATime(FakeParser):
        """A pool of one process that is held until the documents have all been taken."""

        def parse(self, content: bytes, item: SourceItem) -> Iterator[ParsedDocument]:
            assert process.acquire(blocking=False), "it would wait for ever"
            try:
                yield from super().parse(content, item)
            finally:
                process.release()

    process = threading.Semaphore(1)
    bench = Bench(FakeSource({"c.jsonl": "one|First.\ntwo|Second."}), parser=OneAtATime())
    assert [work.document.state for work in works(bench.read())] == ["indexed", "indexed"]


def test_a_failure_is_one_document_with_a_state_and_the_others_go_on() -> None:
    bench = Bench(FakeSource({"a.pdf": "!encrypted", "b.md": "Beta."}))
    rows = bench.read()
    failed, good = works(rows)
    assert (failed.document.state, failed.document.error) == ("encrypted", "It cannot be read.")
    assert (failed.chunks, good.document.state) == ((), "indexed")
    assert [end.state for end in ends(rows)] == ["encrypted", "indexed"]


def test_a_fault_of_a_parser_is_a_failed_document_and_not_the_end_of_the_run() -> None:
    rows = Bench(FakeSource({"a.md": "!bug", "b.md": "Beta."})).read()
    assert [work.document.state for work in works(rows)] == ["failed", "indexed"]
    assert "ZeroDivisionError" in works(rows)[0].document.error


def test_a_file_that_breaks_in_the_middle_keeps_what_was_read_and_deletes_nothing() -> None:
    bench = Bench(FakeSource({"c.jsonl": "one|First.\ntwo|Second.\nthree|Third."}))
    bench.sync(several=True)
    bench.source.files["c.jsonl"] = "one|Changed.\ntwo|!corrupt"
    rows = bench.read(several=True)
    assert [work.document.state for work in works(rows)] == ["indexed", *["corrupt"] * 3]
    (end,) = ends(rows)
    assert (end.documents, end.gone, end.state) == (4, (), "corrupt")


def test_records_that_are_gone_are_told_by_the_end() -> None:
    bench = Bench(FakeSource({"c.jsonl": "one|First.\ntwo|Second."}))
    bench.sync(several=True)
    bench.source.files["c.jsonl"] = "two|Second."
    (end,) = ends(bench.read(several=True))
    assert end.gone == (ids.doc_id("s", "c.jsonl", "one"),)
    assert end.before == 2


def test_a_document_without_text_ends_as_empty() -> None:
    (work,) = works(Bench(FakeSource({"a.md": " \n"})).read())
    assert (work.document.state, work.document.error) == ("empty", "No text was found in it.")


def test_a_file_that_is_too_large_is_not_read() -> None:
    source = FakeSource({"a.md": "Alpha."})
    settings = Settings.model_validate({"ingest": {"max_bytes": 5}})
    (work,) = works(Bench(source, settings=settings).read())
    assert work.document.state == "too_large"
    assert source.reads == []


def test_metadata_that_cannot_be_read_closes_the_document() -> None:
    source = FakeSource({"a.md": "Alpha."}, beside={"broken": True})
    (work,) = works(Bench(source).read())
    assert (work.document.state, work.document.acl) == ("failed", ())
    assert source.reads == []


def test_an_acl_that_is_no_list_closes_the_document_and_is_named() -> None:
    source = FakeSource({"a.md": "Alpha."}, beside={"acl": 7})
    (work,) = works(Bench(source).read())
    assert (work.document.state, work.document.acl) == ("partial", ())
    assert "acl" in work.document.error


def test_a_bad_url_is_named_and_does_not_lose_the_document() -> None:
    source = FakeSource({"a.md": "Alpha."}, beside={"url": "javascript:alert(1)"})
    bench = Bench(source)
    (done,) = bench.sync()
    assert (done.state, "url" in done.reason) == ("partial", True)
    assert (bench.row("a.md").url, bool(bench.row("a.md").revision)) == ("", True)
    assert bench.sync()[0].unchanged


def test_version_and_region_stand_on_top_of_each_chunk() -> None:
    source = FakeSource({"a.md": "Alpha."}, beside={"version": "2.1", "region": "EU"})
    (work,) = works(Bench(source).read())
    assert work.chunks[0].header == "T, version 2.1, EU"


# --------------------------------------------------------------------------- unchanged, changed


def test_an_equal_document_is_not_written_again() -> None:
    bench = Bench(FakeSource({"a.md": "Alpha."}))
    bench.sync()
    first = bench.row("a.md")
    (again,) = bench.sync()
    assert again.unchanged
    assert bench.row("a.md") == first


def test_a_change_replaces_chunks_and_embeds_only_new_text() -> None:
    long = " ".join(f"Sentence number {n} says something of its own." for n in range(200))
    bench = Bench(FakeSource({"a.md": long}))
    (first,) = bench.sync()
    bench.source.files["a.md"] = long + " One more."
    (second,) = bench.sync()
    assert first.embedded > 2
    assert 0 < second.embedded < first.embedded
    assert second.reused + second.embedded == bench.row("a.md").chunk_count


def test_a_change_of_labels_alone_embeds_nothing() -> None:
    bench = Bench(FakeSource({"a.md": "Alpha."}))
    bench.sync()
    bench.source.beside = {"acl": ["hr"], "owner": "legal"}
    (done,) = bench.sync()
    assert (done.embedded, done.reused) == (0, 1)
    assert bench.row("a.md").acl == ("hr",)


@pytest.mark.parametrize(
    ("closed", "acl", "tenant"),
    [
        (SourceSettings(default_acl=("staff",)), ("staff",), "default"),
        (SourceSettings(), (), "default"),
        (SourceSettings(default_acl=("public",), tenant="acme"), ("public",), "acme"),
    ],
)
def test_a_source_that_is_closed_closes_what_has_no_acl_of_its_own_and_embeds_nothing(
    closed: SourceSettings, acl: tuple[str, ...], tenant: str
) -> None:
    bench = Bench(FakeSource({"a.md": "Alpha."}))
    bench.sync()
    bench.settings = Settings(sources={"s": closed})
    (done,) = bench.sync()
    assert (done.unchanged, done.embedded, done.reused) == (False, 0, 1)
    row = bench.row("a.md")
    assert (row.acl, row.tenant) == (acl, tenant)
    assert bench.sync()[0].unchanged


def test_a_source_that_is_closed_leaves_documents_with_an_acl_of_their_own_as_they_are() -> None:
    bench = Bench(FakeSource({"a.md": "Alpha."}, beside={"acl": ["hr"]}))
    bench.sync()
    bench.settings = Settings()
    assert bench.sync()[0].unchanged


def test_another_recipe_writes_a_new_revision_of_the_same_vectors() -> None:
    bench = Bench(FakeSource({"a.md": "Alpha."}))
    bench.sync()
    bench.recipe = "r2"
    (done,) = bench.sync()
    assert (done.unchanged, done.embedded, done.reused) == (False, 0, 1)
    assert bench.row("a.md").recipe == "r2"


def test_a_failed_update_keeps_the_last_good_revision() -> None:
    bench = Bench(FakeSource({"a.md": "Alpha."}))
    bench.sync()
    good = bench.row("a.md")
    bench.source.files["a.md"] = "!corrupt"
    (done,) = bench.sync()
    now = bench.row("a.md")
    assert (done.state, now.state, now.revision) == ("corrupt", "corrupt", good.revision)
    bench.source.files["a.md"] = "Alpha."
    (mended,) = bench.sync()
    assert (mended.unchanged, mended.embedded) == (False, 0)
    assert bench.row("a.md").state == "indexed"


def test_a_deleted_document_lives_again_when_it_is_listed_again() -> None:
    bench = Bench(FakeSource({"a.md": "Alpha."}))
    bench.sync()
    revisions.delete(bench.stores, bench.row("a.md"))
    (done,) = bench.sync()
    assert not done.unchanged
    assert bench.row("a.md").revision


def test_texts_of_other_documents_are_not_embedded_again() -> None:
    bench = Bench(FakeSource({"a.md": "Alpha."}))
    bench.sync()
    bench.source.files["moved.md"] = "Alpha."
    (done,) = bench.sync("moved.md")
    assert (done.embedded, done.reused) == (0, 1)


# ------------------------------------------------------------------------------ other writers


def test_content_that_was_read_before_another_commit_loses() -> None:
    bench = Bench(FakeSource({"a.md": "Alpha."}))
    bench.sync()
    bench.source.files["a.md"] = "Old news."
    rows = bench.encode(bench.read())
    bench.source.files["a.md"] = "Fresh news."
    bench.sync()
    fresh = bench.row("a.md")
    (lost,) = [row for row in bench.write(rows) if isinstance(row, Done)]
    assert lost.conflict
    assert bench.row("a.md") == fresh


def test_a_commit_between_the_catalog_and_the_content_is_noticed() -> None:
    bench = Bench(FakeSource({"a.md": "Alpha."}))
    bench.sync()

    class Slow(FakeSource):
        def read(self, item: SourceItem) -> bytes:
            rival.sync()
            return super().read(item)

    rival = Bench(FakeSource({"a.md": "Rival."}), stores=bench.stores)
    bench.source = Slow({"a.md": "Old."})
    (done,) = bench.sync()
    assert done.conflict
    assert bench.row("a.md").content_hash == ids.digest("Rival.")


# --------------------------------------------------------------------------- stores and models


def test_rows_that_a_store_rejects_fail_their_document_alone() -> None:
    class Picky(MemoryTextStore):
        def upsert(self, rows: Sequence[TextRow]) -> None:
            bad = {r.chunk.row_id: "it is bad" for r in rows if "bad" in r.chunk.text}
            super().upsert([row for row in rows if row.chunk.row_id not in bad])
            if bad:
                raise RowsRejected("sqlite", bad)

    stores = Stores(MemoryCatalog(), Picky(), MemoryVectorStore())
    bench = Bench(FakeSource({"a.md": "A bad one.", "b.md": "A good one."}), stores=stores)
    good, bad = sorted(bench.sync(), key=lambda done: done.uri, reverse=True)
    assert (good.state, bad.state) == ("indexed", "failed")
    assert "rejected" in bad.reason
    assert bench.row("a.md").revision == ""


class PickyCatalog(MemoryCatalog):
    """Refuses rows with this title, or every row of this address."""

    def __init__(self, *, title: str = "", address: str = "") -> None:
        super().__init__()
        self._title, self._address = title, address

    def commit(self, document: Document) -> Document:
        if document.title == self._title or document.address == self._address:
            raise RowsRejected("Elasticsearch", {document.doc_id: "illegal_argument_exception"})
        return super().commit(document)


def test_a_catalog_row_that_is_rejected_fails_its_document_alone() -> None:
    stores = Stores(PickyCatalog(title="T"), MemoryTextStore(), MemoryVectorStore())
    bench = Bench(FakeSource({"a.md": "Alpha.", "b.md": "!corrupt"}), stores=stores)
    a, b = sorted(bench.sync(), key=lambda done: done.uri)
    assert (a.state, b.state) == ("failed", "corrupt")
    assert a.reason == "Elasticsearch rejected its catalog row: illegal_argument_exception."
    row = bench.row("a.md")
    assert (row.state, row.error, row.revision, row.acl) == ("failed", a.reason, "", ("public",))
    assert stores.text.count() == 0


def test_a_document_of_which_no_row_can_be_committed_is_named_and_the_others_go_on() -> None:
    stores = Stores(PickyCatalog(address="a.md"), MemoryTextStore(), MemoryVectorStore())
    bench = Bench(FakeSource({"a.md": "Alpha.", "b.md": "Beta."}), stores=stores)
    a, b = sorted(bench.sync(), key=lambda done: done.uri)
    assert (a.state, b.state) == ("failed", "indexed")


def test_a_store_that_cannot_be_reached_stops_the_run() -> None:
    class Gone(MemoryTextStore):
        def upsert(self, rows: Sequence[TextRow]) -> None:
            raise StoreUnavailable("The store is away.")

    stores = Stores(MemoryCatalog(), Gone(), MemoryVectorStore())
    with pytest.raises(StoreUnavailable):
        Bench(FakeSource({"a.md": "Alpha."}), stores=stores).sync()


def test_an_embedder_that_loses_a_text_is_caught() -> None:
    class Lossy(FakeEmbedder):
        def embed_documents(self, texts: Sequence[str]) -> Vectors:
            return super().embed_documents(texts[1:])

    bench = Bench(FakeSource({"a.md": "Alpha.", "b.md": "Beta."}), embedder=Lossy())
    with pytest.raises(ModelError, match="shape"):
        bench.sync()


def test_equal_texts_of_a_batch_are_embedded_once() -> None:
    asked: list[str] = []

    class Counting(FakeEmbedder):
        def embed_documents(self, texts: Sequence[str]) -> Vectors:
            asked.extend(texts)
            return super().embed_documents(texts)

    bench = Bench(FakeSource({"a.md": "Alpha.", "b.md": "Alpha."}), embedder=Counting())
    assert len(bench.sync()) == 2
    assert len(asked) == 1


def test_rows_survive_the_way_between_workers() -> None:
    (work,) = works(bench_rows := Bench(FakeSource({"a.md": "Alpha."})).read())
    assert [unpack(pack(row)) for row in bench_rows] == bench_rows
    assert unpack(pack(work)).chunks == work.chunks


def test_files_are_read_side_by_side() -> None:
    class Slow(FakeSource):
        def read(self, item: SourceItem) -> bytes:
            meeting.append(item.address)
            deadline = time.monotonic() + 5
            while len(meeting) < 2 and time.monotonic() < deadline:
                time.sleep(0.001)
            assert len(meeting) == 2
            return super().read(item)

    meeting: list[str] = []
    rows = Bench(Slow({"a.md": "Alpha.", "b.md": "Beta."})).read()
    assert [work.document.state for work in works(rows)] == ["indexed", "indexed"]
