"""Metadata files that are those of no file: told, and closing what they may be meant for."""

from __future__ import annotations

import pickle
import unicodedata
from pathlib import Path

import pytest

from ingest.metadata import document_fields
from ingest.parsers.sandbox import ParserPool
from ingest.sources import open_source
from quarry.errors import ParseError, UsageError
from quarry.records import DocState, ParsedDocument
from quarry.settings import Settings, SourceSettings

OPEN = SourceSettings(default_acl=("public",))
ACL = "acl: [hr]"


def put(path: Path, text: str = "text") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def closed(target: Path) -> dict[str, bool]:
    """Whether nobody may read it, by address; strays that are told are left out."""
    source = open_source(str(target))
    found = {}
    for item in source.list():
        if item.tag != "astray":
            beside = source.metadata(item)
            found[item.address] = not document_fields(ParsedDocument(), beside, OPEN).acl
    return found


def strays(target: Path) -> list[str]:
    return [item.address for item in open_source(str(target)).list() if item.tag == "astray"]


@pytest.mark.parametrize(
    ("stray", "meant"),
    [
        ("a.meta.yaml", {"a.md", "a.pdf"}),
        ("a.txt.meta.yaml", {"a.md", "a.pdf"}),
        ("a.md.meta.yml", {"a.md"}),
        ("a.md.META.yaml", {"a.md"}),
        ("A.md.meta.yaml", {"a.md"}),
        ("a.md.meta.yaml.txt", {"a.md"}),
        ("a.md.meta.yaml ", {"a.md"}),
        ("b.md.meta.yaml", {"b-2026.md", "b (1).md"}),
        ("c.meta.yaml", {"c/d.md", "c/e/f.md"}),
        ("c/d.meta.yaml", {"c/d.md"}),
        ("c/_meta.yml", {"c/d.md", "c/e/f.md"}),
        ("c/_META.yaml", {"c/d.md", "c/e/f.md"}),
        ("nothing.meta.yaml", set()),
    ],
)
def test_a_metadata_file_of_no_file_is_told_and_closes_what_it_may_be_meant_for(
    tmp_path: Path, stray: str, meant: set[str]
) -> None:
    names = ("a.md", "a.pdf", "ab.md", "b-2026.md", "b (1).md", "bc.md", "c/d.md", "c/e/f.md")
    for name in names:
        put(tmp_path / name)
    put(tmp_path / stray, ACL)
    assert closed(tmp_path) == {name: name in meant for name in names}
    assert strays(tmp_path) == [stray]
    source = open_source(str(tmp_path))
    (item,) = (item for item in source.list() if item.tag == "astray")
    for act in (source.read, source.metadata):
        with pytest.raises(ParseError, match="It is the metadata of no file; call it") as caught:
            act(item)
        assert caught.value.state == DocState.FAILED


def test_the_sentence_of_the_document_names_it(tmp_path: Path) -> None:
    put(tmp_path / "a.md")
    put(tmp_path / "a.meta.yaml", ACL)
    source = open_source(str(tmp_path))
    item = next(iter(source.list()))
    assert document_fields(ParsedDocument(), source.metadata(item), OPEN).problem == (
        "Nobody may read it: a.meta.yaml may be meant for it and is the metadata of no file; "
        "rename or remove that."
    )


@pytest.mark.parametrize("text", ["acls: [hr]", "a: [", "meta: {acl: x}"])
def test_one_that_may_say_who_reads_closes_and_one_that_does_not_is_only_told(
    tmp_path: Path, text: str
) -> None:
    put(tmp_path / "a.md")
    stray = put(tmp_path / "a.meta.yaml", text)
    assert closed(tmp_path) == {"a.md": True}
    stray.write_text("owner: hr", encoding="utf-8")
    assert closed(tmp_path) == {"a.md": False}
    assert strays(tmp_path) == ["a.meta.yaml"]


def test_one_that_is_a_link_out_of_the_source_is_not_read_and_closes(tmp_path: Path) -> None:
    outside = put(tmp_path / "outside.yaml", "owner: hr")
    put(tmp_path / "source" / "a.md")
    (tmp_path / "source" / "a.meta.yaml").symlink_to(outside)
    assert closed(tmp_path / "source") == {"a.md": True}


def test_what_stands_nearer_to_the_text_wins_over_it(tmp_path: Path) -> None:
    for name in ("a.md", "a.pdf", "c/d.md", "c/e/f.md"):
        put(tmp_path / name)
    for name in ("_meta.yml", "a.meta.yaml", "c/_meta.yml"):
        put(tmp_path / name, ACL)
    for name in ("a.pdf.meta.yaml", "c/e/_meta.yaml"):
        put(tmp_path / name, "acl: [public]")
    assert closed(tmp_path) == {"a.md": True, "a.pdf": False, "c/d.md": True, "c/e/f.md": False}


def test_of_its_folder_and_of_a_listed_file_none_is_astray(tmp_path: Path) -> None:
    for name in ("a.md", "b.meta.md", "meta.yaml.md"):
        put(tmp_path / name)
        put(tmp_path / f"{name}.meta.yaml", "owner: hr")
    for name in (".c.md.meta.yaml", "_meta.yaml"):
        put(tmp_path / name, "owner: hr")
    put(tmp_path / unicodedata.normalize("NFD", "é.md"))
    put(tmp_path / unicodedata.normalize("NFC", "é.md.meta.yaml"), "owner: hr")
    assert strays(tmp_path) == []
    assert len(closed(tmp_path)) == 4


def test_the_change_mark_tells_when_one_comes_changes_or_goes_and_that_of_others_stays(
    tmp_path: Path,
) -> None:
    def marks() -> tuple[str, str]:
        found = {item.address: item.tag for item in open_source(str(tmp_path)).list()}
        return found["a.md"], found["other.md"]

    for name in ("a.md", "other.md"):
        put(tmp_path / name)
    seen = [marks()]
    stray = put(tmp_path / "a.meta.yaml", "owner: x")
    seen.append(marks())
    stray.write_text("acl: [hr, legal]", encoding="utf-8")
    seen.append(marks())
    assert len({mark for mark, _ in seen}) == 3
    stray.unlink()
    assert marks() == seen[0]
    assert len({other for _, other in seen}) == 1


def test_a_single_file_and_a_link_to_a_listed_one_are_closed_alike(tmp_path: Path) -> None:
    put(tmp_path / "hr" / "a.md")
    put(tmp_path / "hr" / "a.meta.yaml", ACL)
    (tmp_path / "alias.md").symlink_to(tmp_path / "hr" / "a.md")
    assert closed(tmp_path) == {"alias.md": True, "hr/a.md": True}
    assert closed(tmp_path / "hr" / "a.md") == {"a.md": True}


def test_one_above_the_target_is_not_lost(tmp_path: Path) -> None:
    put(tmp_path / "_meta.yml", ACL)
    put(tmp_path / "part" / "a.md")
    with pytest.raises(UsageError, match=r"_meta\.yml says who may read what is below it"):
        open_source(str(tmp_path / "part"))


def test_a_file_in_doubt_can_be_sent_to_a_worker_and_parsed(tmp_path: Path) -> None:
    put(tmp_path / "a.md")
    put(tmp_path / "a.meta.yaml", ACL)
    source = pickle.loads(pickle.dumps(open_source(str(tmp_path))))
    item = pickle.loads(pickle.dumps(next(iter(source.list()))))
    assert "acl" in source.metadata(item)
    pool = ParserPool(Settings.model_validate({"ingest": {"parse_workers": 1}}))
    (parsed,) = pool.parse(source.read(item), item)
    assert parsed.blocks[0].text == "text"
