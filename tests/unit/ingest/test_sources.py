"""Files and folders as sources: what is listed, how change is seen, and what is never read."""

from __future__ import annotations

import os
import pickle
import unicodedata
from pathlib import Path

import pytest

from ingest.sources import LeftOut, open_source
from quarry.errors import ParseError, SourceNotFound, UsageError
from quarry.records import DocState, SourceItem


def write(path: Path, text: str = "text") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def addresses(folder: Path) -> list[str]:
    return [item.address for item in open_source(str(folder)).list()]


def only(folder: Path) -> SourceItem:
    (item,) = open_source(str(folder)).list()
    return item


def test_a_folder_is_listed_with_all_that_is_below_it_in_order(tmp_path: Path) -> None:
    for name in ("b.md", "a/z.txt", "a/b/c.md", "c.pdf"):
        write(tmp_path / name)
    assert addresses(tmp_path) == ["a/b/c.md", "a/z.txt", "b.md", "c.pdf"]


def test_hidden_files_and_metadata_files_are_no_documents(tmp_path: Path) -> None:
    for name in (
        "a.md",
        ".hidden.md",
        ".git/config",
        "_meta.yaml",
        "a.md.meta.yaml",
        "d/_meta.yaml",
    ):
        write(tmp_path / name)
    assert addresses(tmp_path) == ["a.md"]


def test_a_single_file_is_a_source_of_one_document_with_what_is_beside_it(tmp_path: Path) -> None:
    write(tmp_path / "other.md")
    write(tmp_path / "_meta.yaml", "acl: [staff]")
    source = open_source(str(write(tmp_path / "Leave Policy.md", "content")))
    (item,) = source.list()
    assert (source.name, item.source, item.address) == ("leave-policy",) * 2 + ("Leave Policy.md",)
    assert source.read(item) == b"content"
    assert source.metadata(item) == {"acl": ["staff"]}


def test_a_source_is_called_as_asked_or_by_its_last_part(tmp_path: Path) -> None:
    folder = tmp_path / "Robotics Handbook (2026)"
    write(folder / "a.md")
    assert open_source(str(folder)).name == "robotics-handbook-2026"
    assert open_source(str(folder), name="Handbook").name == "handbook"
    with pytest.raises(UsageError, match="needs a name"):
        open_source(str(folder), name="!!")


def test_file_addresses_are_read_and_other_schemes_named_as_not_supported(tmp_path: Path) -> None:
    write(tmp_path / "with space" / "a.md")
    assert addresses(tmp_path / "with space") == ["a.md"]
    source = open_source((tmp_path / "with space").as_uri())
    assert [item.address for item in source.list()] == ["a.md"]
    with pytest.raises(UsageError, match=r"s3://.*file://"):
        open_source("s3://bucket/key")


def test_what_is_not_there_is_told_in_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(SourceNotFound, match=r"^There is nothing at .*missing; check the path\.$"):
        open_source(str(tmp_path / "missing"))


def test_the_uri_is_what_the_file_is_called_whatever_signs_are_in_it(tmp_path: Path) -> None:
    names = ["50% off?.md", "Straße 1/Müller & Söhne.md", "empty#hash.pdf", "한국어.md"]
    for name in names:
        write(tmp_path / name)
    found = list(open_source(str(tmp_path)).list())
    assert sorted(item.uri for item in found) == names
    assert all(item.uri == item.address and (tmp_path / item.uri).exists() for item in found)


def test_a_name_spelled_in_parts_has_a_composed_address_and_is_still_read(tmp_path: Path) -> None:
    name = unicodedata.normalize("NFD", "Größe é.md")
    write(tmp_path / name, "gelesen")
    source = open_source(str(tmp_path))
    (item,) = source.list()
    assert item.address == unicodedata.normalize("NFC", name)
    assert source.read(item) == b"gelesen"


def test_a_name_that_is_no_utf8_is_listed_and_read(tmp_path: Path) -> None:
    raw = os.fsencode(tmp_path) + b"/caf\xe9.txt"
    try:
        with open(raw, "wb") as file:  # noqa: PTH123 – the name is bytes
            file.write(b"x")
    except OSError:
        pytest.skip("this file system takes only UTF-8 names")
    source = open_source(str(tmp_path))
    (item,) = source.list()
    item.address.encode("utf-8")
    assert source.read(item) == b"x"


def test_a_link_out_of_the_folder_is_listed_but_never_read(tmp_path: Path) -> None:
    secret = write(tmp_path / "outside" / "secret.txt", "secret")
    folder = tmp_path / "source"
    write(folder / "a.md")
    (folder / "link.txt").symlink_to(secret)
    (folder / "way-out").symlink_to(secret.parent)
    (folder / "nowhere.txt").symlink_to(folder / "gone")
    source = open_source(str(folder))
    items = {item.address: item for item in source.list()}
    assert sorted(items) == ["a.md", "link.txt", "nowhere.txt", "way-out"]
    for address in ("link.txt", "way-out", "nowhere.txt"):
        with pytest.raises(ParseError, match="leads out of the source") as caught:
            source.read(items[address])
        assert caught.value.state == DocState.FAILED


def test_a_link_inside_the_folder_is_read_and_a_linked_folder_listed_once(tmp_path: Path) -> None:
    write(tmp_path / "a" / "real.md", "real")
    (tmp_path / "alias.md").symlink_to(tmp_path / "a" / "real.md")
    (tmp_path / "a" / "loop").symlink_to(tmp_path)
    source = open_source(str(tmp_path))
    items = list(source.list())
    assert [item.address for item in items] == ["a/real.md", "alias.md"]
    assert source.read(items[1]) == b"real"


@pytest.mark.parametrize(
    "address", ["../secret.txt", "a/../../secret.txt", "/etc/hostname", "a//b", ""]
)
def test_an_address_that_climbs_out_is_refused(tmp_path: Path, address: str) -> None:
    write(tmp_path / "secret.txt")
    write(tmp_path / "source" / "a.md")
    source = open_source(str(tmp_path / "source"))
    item = SourceItem(source="s", address=address, uri=address, tag="", size=0)
    with pytest.raises(ParseError, match="leads out"):
        source.read(item)


def test_a_file_that_has_gone_since_it_was_listed_fails_alone(tmp_path: Path) -> None:
    file = write(tmp_path / "a.md")
    source = open_source(str(tmp_path))
    (item,) = source.list()
    file.unlink()
    with pytest.raises(ParseError, match="not there any more"):
        source.read(item)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may list every folder; run as another user")
def test_a_folder_that_cannot_be_listed_stops_the_listing(tmp_path: Path) -> None:
    closed = write(tmp_path / "closed" / "a.md").parent
    closed.chmod(0)
    try:
        with pytest.raises(SourceNotFound, match="cannot be listed"):
            addresses(tmp_path)
    finally:
        closed.chmod(0o755)


def test_of_a_beir_folder_the_questions_are_told_as_left_out_and_all_else_is_listed(
    tmp_path: Path,
) -> None:
    for name in ("corpus.jsonl", "queries.jsonl", "qrels/test.tsv", "README.md"):
        write(tmp_path / "beir" / name)
    write(tmp_path / "notes" / "queries.jsonl")
    items = list(open_source(str(tmp_path)).list())
    assert {item.address: isinstance(item, LeftOut) for item in items} == {
        "beir/README.md": False,
        "beir/corpus.jsonl": False,
        "beir/qrels": True,
        "beir/queries.jsonl": True,
        "notes/queries.jsonl": False,
    }


def both_spellings(folder: Path, name: str) -> tuple[Path, Path]:
    """A file of this name in composed and one in decomposed spelling."""
    composed, decomposed = (
        write(folder / unicodedata.normalize(form, name), form) for form in ("NFC", "NFD")
    )
    if len(list(folder.iterdir())) < 2:
        pytest.skip("this file system takes both spellings for one name")
    return composed, decomposed


def test_of_two_spellings_of_a_name_one_is_read_and_the_other_told(tmp_path: Path) -> None:
    both_spellings(tmp_path, "café.md")
    source = open_source(str(tmp_path))
    items = {item.address: item for item in source.list()}
    assert sorted(items) == ["cafe\\u0301.md", "caf\u00e9.md"]
    assert source.read(items["caf\u00e9.md"]) == b"NFC"
    for act in (source.read, source.metadata):
        with pytest.raises(ParseError, match="same name in another spelling") as caught:
            act(items["cafe\\u0301.md"])
        assert caught.value.state == DocState.FAILED


def test_a_folder_whose_name_is_that_of_another_in_another_spelling_is_told(tmp_path: Path) -> None:
    for form in ("NFC", "NFD"):
        write(tmp_path / unicodedata.normalize(form, "é") / "a.md", form)
    if len(list(tmp_path.iterdir())) < 2:
        pytest.skip("this file system takes both spellings for one name")
    assert addresses(tmp_path) == ["é/a.md", "e\\u0301"]


def test_a_sidecar_is_found_however_its_name_is_spelled(tmp_path: Path) -> None:
    write(tmp_path / unicodedata.normalize("NFD", "café.md"))
    plain = only(tmp_path).tag
    write(tmp_path / unicodedata.normalize("NFC", "café.md.meta.yaml"), "acl: [hr]")
    assert open_source(str(tmp_path)).metadata(only(tmp_path)) == {"acl": ["hr"]}
    assert only(tmp_path).tag != plain


def test_what_is_neither_file_nor_folder_is_told_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.md")
    write(tmp_path / ".hidden" / "a.md")
    (tmp_path / "shown").symlink_to(tmp_path / ".hidden")
    source = open_source(str(tmp_path))
    items = list(source.list())
    assert [item.address for item in items] == ["pipe.md", "shown"]
    for item in items:
        with pytest.raises(ParseError) as caught:
            source.read(item)
        assert caught.value.state == DocState.UNSUPPORTED


def test_the_tag_changes_with_content_sidecar_and_folder_files_and_with_nothing_else(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "source"
    document = write(folder / "a" / "b" / "doc.md")
    seen = [only(folder).tag]
    assert only(folder).tag == seen[0]

    def changed() -> None:
        seen.append(only(folder).tag)
        assert len(set(seen)) == len(seen)

    document.write_text("longer text", encoding="utf-8")
    changed()
    os.utime(document, ns=(1, 1))
    changed()
    sidecar = write(folder / "a" / "b" / "doc.md.meta.yaml", "title: A")
    changed()
    outer = write(folder / "_meta.yaml", "acl: [staff]")
    changed()
    outer.rename(folder / "a" / "_meta.yaml")
    changed()
    os.utime(sidecar, ns=(2, 2))
    changed()
    write(folder / "a" / "other" / "_meta.yaml", "acl: [public]")
    write(folder / "a" / ".other.md.meta.yaml", "title: B")
    assert only(folder).tag == seen[-1]


def test_removing_a_sidecar_changes_the_tag(tmp_path: Path) -> None:
    write(tmp_path / "doc.md")
    plain = only(tmp_path).tag
    sidecar = write(tmp_path / "doc.md.meta.yaml", "acl: [staff]")
    assert only(tmp_path).tag != plain
    sidecar.unlink()
    assert only(tmp_path).tag == plain


def test_metadata_comes_from_the_folders_inwards_and_last_from_the_sidecar(tmp_path: Path) -> None:
    write(tmp_path / "_meta.yaml", "acl: [staff]\nowner: outer\nregion: NO")
    write(tmp_path / "hr" / "_meta.yaml", "owner: hr")
    write(tmp_path / "hr" / "a.pdf.meta.yaml", "version: 3.10\nACL: [hr]")
    write(tmp_path / "hr" / "a.pdf")
    source = open_source(str(tmp_path))
    (item,) = source.list()
    assert source.metadata(item) == {
        "acl": ["hr"],
        "owner": "hr",
        "region": "NO",
        "version": "3.10",
    }


@pytest.mark.parametrize("above", ["acl: [staff]", "ACL:", "acl: [", "owner: hr\nacl: []"])
@pytest.mark.parametrize("target", ["documents/people", "documents/people/a.md", "documents/p/q/r"])
def test_what_a_folder_above_closes_is_not_opened_by_ingesting_a_part_of_it(
    tmp_path: Path, above: str, target: str
) -> None:
    write(tmp_path / "documents" / "_meta.yaml", above)
    write(tmp_path / "documents" / "people" / "a.md")
    write(tmp_path / "documents" / "p" / "q" / "r" / "a.md")
    with pytest.raises(UsageError) as caught:
        open_source(str(tmp_path / target))
    sentence = str(caught.value)
    assert f"{tmp_path}/documents/_meta.yaml says who may read" in sentence
    assert f"ingest {tmp_path}/documents, or put an acl into" in sentence
    assert open_source(str(tmp_path / "documents")).name == "documents"


def test_a_link_from_a_folder_that_is_closed_is_no_way_round_it(tmp_path: Path) -> None:
    write(tmp_path / "documents" / "_meta.yaml", "acl: [staff]")
    write(tmp_path / "elsewhere" / "a.md")
    (tmp_path / "documents" / "people").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "documents" / "b.md").symlink_to(tmp_path / "elsewhere" / "a.md")
    for target in ("documents/people", "documents/b.md", "elsewhere/../documents/people"):
        with pytest.raises(UsageError, match="says who may read"):
            open_source(str(tmp_path / target))
    assert open_source(str(tmp_path / "elsewhere")).name == "elsewhere"


def test_a_part_of_a_closed_folder_that_has_an_acl_of_its_own_is_ingested(tmp_path: Path) -> None:
    write(tmp_path / "documents" / "_meta.yaml", "acl: [staff]")
    write(tmp_path / "documents" / "hr" / "_meta.yaml", "acl: [hr]")
    write(tmp_path / "documents" / "hr" / "a.md")
    write(tmp_path / "documents" / "people" / "b.md.meta.yaml", "acl: [people]")
    write(tmp_path / "documents" / "people" / "b.md")
    for target in ("documents/hr", "documents/hr/a.md", "documents/people/b.md"):
        assert open_source(str(tmp_path / target))


def test_a_folder_above_that_says_nothing_of_readers_is_no_hindrance(tmp_path: Path) -> None:
    write(tmp_path / "documents" / "_meta.yaml", "owner: hr")
    write(tmp_path / "documents" / "people" / "a.md")
    source = open_source(str(tmp_path / "documents" / "people"))
    assert source.metadata(only(tmp_path / "documents" / "people")) == {}
    assert source.name == "people"


@pytest.mark.parametrize("content", ["a: [", "just words", "a: &x 1\nb: *x", "acl: [a]\nACL: [b]"])
def test_a_metadata_file_that_cannot_be_used_fails_its_documents(
    tmp_path: Path, content: str
) -> None:
    write(tmp_path / "_meta.yaml", content)
    write(tmp_path / "a.md")
    source = open_source(str(tmp_path))
    (item,) = source.list()
    with pytest.raises(ParseError, match=r"_meta\.yaml beside it") as caught:
        source.metadata(item)
    assert caught.value.state == DocState.FAILED


@pytest.mark.parametrize("name", ["_meta.yaml", "a.md.meta.yaml"])
def test_a_metadata_file_that_is_a_link_out_of_the_source_fails_its_documents(
    tmp_path: Path, name: str
) -> None:
    outside = write(tmp_path / "outside.yaml", "acl: [public]")
    folder = tmp_path / "source"
    write(folder / "a.md")
    plain = only(folder).tag
    for target in (outside, folder / "nowhere"):
        (folder / name).symlink_to(target)
        assert only(folder).tag != plain
        with pytest.raises(ParseError, match="leads out of the source or nowhere") as caught:
            open_source(str(folder)).metadata(only(folder))
        assert caught.value.state == DocState.FAILED
        (folder / name).unlink()


def test_a_metadata_file_may_be_a_link_inside_the_source(tmp_path: Path) -> None:
    write(tmp_path / "hr" / "_meta.yaml", "acl: [hr]")
    write(tmp_path / "legal" / "a.md")
    (tmp_path / "legal" / "_meta.yaml").symlink_to(tmp_path / "hr" / "_meta.yaml")
    assert open_source(str(tmp_path)).metadata(only(tmp_path)) == {"acl": ["hr"]}


@pytest.mark.parametrize("name", ["_meta.yaml", "a.md.meta.yaml"])
def test_a_metadata_file_that_is_no_file_fails_its_documents_and_is_not_waited_for(
    tmp_path: Path, name: str
) -> None:
    write(tmp_path / "a.md")
    for make in (os.mkfifo, os.mkdir):
        make(tmp_path / name)
        with pytest.raises(ParseError, match="is not a file"):
            open_source(str(tmp_path)).metadata(only(tmp_path))
        (tmp_path / name).unlink() if make is os.mkfifo else (tmp_path / name).rmdir()


def test_a_link_to_a_listed_file_has_the_metadata_of_that_file(tmp_path: Path) -> None:
    write(tmp_path / "_meta.yaml", "acl: [public]")
    write(tmp_path / "hr" / "secret.md")
    write(tmp_path / "hr" / "_meta.yaml", "acl: [hr]")
    write(tmp_path / "open" / "alias.md.meta.yaml", "acl: [public]")
    (tmp_path / "open" / "alias.md").symlink_to(tmp_path / "hr" / "secret.md")
    source = open_source(str(tmp_path))
    real, alias = source.list()
    assert (real.address, alias.address) == ("hr/secret.md", "open/alias.md")
    assert source.metadata(alias) == source.metadata(real) == {"acl": ["hr"]}
    write(tmp_path / "hr" / "_meta.yaml", "acl: [hr-legal]")
    assert list(source.list())[1].tag != alias.tag


def test_a_link_to_a_file_that_is_only_stored_elsewhere_has_metadata_of_its_own(
    tmp_path: Path,
) -> None:
    write(tmp_path / "_meta.yaml", "acl: [public]")
    write(tmp_path / ".store" / "k1", "text")
    write(tmp_path / "hr" / "_meta.yaml", "acl: [hr]")
    (tmp_path / "hr" / "a.md").symlink_to(tmp_path / ".store" / "k1")
    source = open_source(str(tmp_path))
    item = only(tmp_path)
    assert (item.address, source.read(item)) == ("hr/a.md", b"text")
    assert source.metadata(item) == {"acl": ["hr"]}


def test_a_source_can_be_sent_to_a_worker(tmp_path: Path) -> None:
    write(tmp_path / "a.md", "sent")
    source = pickle.loads(pickle.dumps(open_source(str(tmp_path))))
    (item,) = source.list()
    assert source.read(item) == b"sent"
