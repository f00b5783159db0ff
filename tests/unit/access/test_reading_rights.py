"""Who reads what is served when its next reading fails: never more than who may read it now."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from ingest.parsers import parse_item
from quarry.errors import ParseError
from quarry.records import DocState, ParsedDocument, SourceItem
from quarry.settings import IngestSettings, Settings, SourceSettings
from tests.unit.ingest.reading_world import Bench, FakeParser, FakeSource

OPEN = ("public",)
CLOSED: tuple[str, ...] = ()
TEXT = "---\nacl: [public, hr]\n---\n# Leave\n\nTwenty weeks.\n"
NO_TEXT = b"\x00\x01\x02\xff\xfe\x00" * 50
AWAY = ParseError(DocState.FAILED, "It cannot be read: Input/output error.")


class Parsers:
    """The real parsers; content that is `hang` takes too long."""

    def parse(self, content: bytes, item: SourceItem) -> Iterator[ParsedDocument]:
        if content.endswith(b"hang"):
            raise ParseError(DocState.TIMED_OUT, "It took too long.")
        yield from parse_item(content, item, IngestSettings())


def served(files: dict[str, str | bytes | ParseError], acl: object = None) -> Bench:
    """A bench that serves these files; `acl` is that of the folder file."""
    beside: dict[str, object] = {} if acl is None else {"acl": acl}
    bench = Bench(FakeSource(files, beside=beside), parser=Parsers())
    bench.sync()
    return bench


def after(bench: Bench, content: str | bytes | ParseError, address: str = "a.md") -> Bench:
    """What was served before is served still; the rights are for the test to say."""
    before = bench.row(address)
    bench.source.files[address] = content
    bench.sync()
    now = bench.row(address)
    assert before.revision
    assert (now.revision, now.chunk_count) == (before.revision, before.chunk_count)
    assert now.state not in (DocState.INDEXED, DocState.PARTIAL)
    return bench


# --------------------------------------------------------------- an edit that narrows and is wrong


@pytest.mark.parametrize("wrong", ["status: retired", "effective: soon", "version: [1]"])
@pytest.mark.parametrize(
    ("acl", "kept"),
    [("[hr]", ("hr",)), ("[staff]", CLOSED), ("", CLOSED), ("7", CLOSED), ("[public]", OPEN)],
)
def test_an_edit_that_narrows_does_so_though_another_field_is_wrong(
    wrong: str, acl: str, kept: tuple[str, ...]
) -> None:
    bench = served({"a.md": TEXT})
    after(bench, f"---\nacl: {acl}\n{wrong}\n---\n# Leave\n\nTen weeks.\n")
    row = bench.row("a.md")
    assert row.state == DocState.FAILED
    assert set(row.acl) == (set(kept) | {"hr"} if kept == OPEN else set(kept))
    bench.source.files["a.md"] = TEXT
    bench.sync()
    assert (bench.row("a.md").acl, bench.row("a.md").state) == (("public", "hr"), DocState.INDEXED)


def test_a_sidecar_that_narrows_and_is_wrong_otherwise_narrows() -> None:
    bench = served({"a.txt": "Twenty weeks."}, acl=["public", "hr"])
    bench.source.beside = {"acl": ["hr"], "status": "retired"}
    after(bench, "Ten weeks.", "a.txt")
    assert bench.row("a.txt").acl == ("hr",)


def test_a_folder_that_narrows_holds_for_content_that_is_broken() -> None:
    bench = served({"a.txt": "Twenty weeks."}, acl=["public", "hr"])
    bench.source.beside = {"acl": ["hr"]}
    after(bench, NO_TEXT, "a.txt")
    assert bench.row("a.txt").acl == ("hr",)


def test_a_folder_that_narrows_holds_for_content_that_is_too_large() -> None:
    bench = served({"a.txt": "Twenty weeks."}, acl=["public", "hr"])
    bench.source.beside = {"acl": ["hr"]}
    bench.settings = Settings.model_validate({"ingest": {"max_bytes": 5}})
    after(bench, "Ten weeks.", "a.txt")
    assert (bench.row("a.txt").acl, bench.row("a.txt").state) == (("hr",), DocState.TOO_LARGE)


def test_a_source_that_is_closed_holds_for_content_that_is_broken() -> None:
    bench = served({"a.txt": "Twenty weeks."})
    bench.settings = Settings(sources={"s": SourceSettings(default_acl=("staff",))})
    after(bench, NO_TEXT, "a.txt")
    assert bench.row("a.txt").acl == CLOSED


def test_what_is_wrong_with_an_acl_is_told_beside_what_is_missing_of_the_text() -> None:
    class Half(FakeParser):
        def parse(self, content: bytes, item: SourceItem) -> Iterator[ParsedDocument]:
            (found,) = super().parse(content, item)
            yield replace(found, state=DocState.PARTIAL, reason="Page 2 is a scan.")

    bench = Bench(FakeSource({"a.pdf": "Text."}, beside={"acl": 7}), parser=Half())
    (done,) = bench.sync()
    assert done.state == DocState.PARTIAL
    assert done.reason.startswith("Page 2 is a scan. Nobody may read it")


# ----------------------------------------------------------------------- rights nobody can know


def test_metadata_beside_it_that_cannot_be_read_closes_what_is_served() -> None:
    bench = served({"a.md": TEXT, "b.txt": "Text."})
    bench.source.beside = {"broken": True}
    for address in ("a.md", "b.txt"):
        after(bench, "Other.", address)
        assert (bench.row(address).acl, bench.row(address).state) == (CLOSED, DocState.FAILED)
    bench.source.beside = {}
    bench.sync()
    assert bench.row("b.txt").acl == OPEN


@pytest.mark.parametrize(
    "front",
    [
        "---\nacl: [hr\n---\n",
        "---\nacl: [hr]\nacl: [staff]\n---\n",
        "---\ntitle: Leave\nacl: [hr]\n\n",
        "---\n{acl: [hr}\n---\n",
    ],
)
def test_front_matter_that_cannot_be_read_closes_what_is_served(front: str) -> None:
    bench = after(served({"a.md": TEXT}), front + "# Leave\n\nTen weeks.\n")
    assert (bench.row("a.md").acl, bench.row("a.md").state) == (CLOSED, DocState.FAILED)


@pytest.mark.parametrize(
    "content",
    [
        AWAY,
        "---\nacl: [hr\n---\nhang",
        "---\nacl: [hr]\n---\n".encode("utf-16") + b"\x00\xd8" * 99 + b"hang",
    ],
)
def test_markdown_whose_front_matter_is_not_known_is_closed(
    content: str | bytes | ParseError,
) -> None:
    bench = after(served({"a.md": TEXT}), content)
    assert bench.row("a.md").acl == CLOSED


@pytest.mark.parametrize(
    "content",
    [
        b"---\nacl: [hr]\n---\n# Leave\n" + NO_TEXT,
        b"\xef\xbb\xbf---\r\nACL: hr\r\n---\r\n" + NO_TEXT,
        "---\nacl: [hr]\n---\nhang",
        "---\nacl: [hr]\n---\n",
    ],
)
def test_front_matter_that_can_be_read_holds_though_the_rest_cannot(content: str | bytes) -> None:
    bench = after(served({"a.md": TEXT}), content)
    assert bench.row("a.md").acl == ("hr",)


def test_a_large_head_without_an_end_is_not_taken_for_text_that_says_nothing() -> None:
    bench = after(served({"a.md": TEXT}), b"---\ntitle: x\n" + b"#" * 300_000 + NO_TEXT + b"hang")
    assert bench.row("a.md").acl == CLOSED


@pytest.mark.parametrize("content", [NO_TEXT, "hang", " "])
def test_content_that_says_nothing_of_itself_takes_nothing_away(content: str | bytes) -> None:
    bench = after(served({"a.md": "Twenty weeks."}), content)
    assert bench.row("a.md").acl == OPEN


def test_a_text_that_cannot_be_opened_keeps_the_rights_that_its_folder_gives() -> None:
    bench = after(served({"a.txt": "Twenty weeks."}), AWAY, "a.txt")
    assert bench.row("a.txt").acl == OPEN


# ----------------------------------------------------------------------------- files of records

RECORDS = "".join(f'{{"_id": "{n}", "text": "Record {n}.", "acl": ["public"]}}\n' for n in "123")


class Breaking(FakeParser):
    """Reads one record and no further."""

    def parse(self, content: bytes, item: SourceItem) -> Iterator[ParsedDocument]:
        yield next(parse_item(content, item, IngestSettings()))
        raise ParseError(DocState.TIMED_OUT, "It took too long.")


def test_records_that_were_not_reached_are_closed_until_they_are() -> None:
    bench = served({"c.jsonl": RECORDS})
    revisions = {n: bench.row("c.jsonl", n).revision for n in "123"}
    bench.source.files["c.jsonl"] = RECORDS.replace("public", "hr")
    bench.parser = Breaking()
    done = bench.sync(several=True)
    assert sorted(row.state for row in done) == ["indexed", *["timed_out"] * 3]
    assert {n: bench.row("c.jsonl", n).acl for n in "123"} == {"1": ("hr",), "2": (), "3": ()}
    assert [bench.row("c.jsonl", n).revision for n in "23"] == [revisions[n] for n in "23"]
    bench.parser = Parsers()
    bench.source.files["c.jsonl"] = RECORDS
    assert {row.embedded for row in bench.sync(several=True)} == {0}
    assert {bench.row("c.jsonl", n).acl for n in "123"} == {OPEN}


@pytest.mark.parametrize("content", [AWAY, "hang", b"PK\x03\x04broken"])
def test_a_file_of_records_that_cannot_be_read_closes_all_of_them(
    content: str | bytes | ParseError,
) -> None:
    bench = served({"c.jsonl": RECORDS})
    bench.source.files["c.jsonl"] = content
    bench.sync(several=True)
    assert {bench.row("c.jsonl", n).acl for n in "123"} == {CLOSED}


def test_metadata_beside_records_that_cannot_be_read_closes_all_of_them() -> None:
    bench = served({"c.jsonl": RECORDS})
    bench.source.beside = {"broken": True}
    bench.sync(several=True)
    assert {bench.row("c.jsonl", n).acl for n in "123"} == {CLOSED}


def test_an_emptied_file_of_records_leaves_them_as_open_as_the_folder_now_is() -> None:
    bench = served({"c.jsonl": RECORDS})
    bench.source.files["c.jsonl"] = ""
    bench.source.beside = {"acl": ["public"]}
    bench.sync(several=True)
    assert {bench.row("c.jsonl", n).acl for n in "123"} == {OPEN}
    bench.source.beside = {"acl": ["hr"]}
    bench.sync(several=True)
    assert {bench.row("c.jsonl", n).acl for n in "123"} == {CLOSED}


def test_the_only_record_of_a_file_is_closed_though_its_name_tells_of_none() -> None:
    bench = Bench(FakeSource({"x.l": "1|Record."}))
    bench.sync(several=True)
    bench.source.files["x.l"] = "1|!corrupt"
    bench.sync(several=False)
    assert bench.row("x.l", "1").acl == CLOSED


def test_failing_again_in_the_same_way_commits_nothing() -> None:
    bench = served({"c.jsonl": RECORDS})
    bench.source.files["c.jsonl"] = "hang"
    bench.sync(several=True)
    once = [bench.row("c.jsonl", n) for n in ("", "1", "2", "3")]
    bench.sync(several=True)
    assert [bench.row("c.jsonl", n) for n in ("", "1", "2", "3")] == once
