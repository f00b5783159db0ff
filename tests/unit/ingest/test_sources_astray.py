"""Metadata files that are those of no file: told, and closing what they may be meant for."""

from __future__ import annotations

import pickle
import unicodedata
from collections.abc import Iterator
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


@pytest.mark.parametrize(
    ("stray", "files", "meant"),
    [
        ("pay.meta.yaml", ["pay.md", "pay/photo.txt"], {"pay.md", "pay/photo.txt"}),
        ("pay.meta.yml", ["pay", "pay-2026.md", "PAY.bak"], {"pay", "pay-2026.md", "PAY.bak"}),
        ("pay.md.meta.yaml", ["pay-2026.md", "pay.md.bak"], {"pay-2026.md", "pay.md.bak"}),
        ("pay.md.meta.yaml", ["pay.pdf", "pay (1).md"], {"pay.pdf", "pay (1).md"}),
        ("pay.md.meta.yaml", ["pay-2026.md", "pay.md/a.txt"], {"pay-2026.md", "pay.md/a.txt"}),
        ("pay.md.meta.yml", ["pay.md", "pay.pdf", "pay-2026.md"], {"pay.md"}),
        ("v1.2.meta.yaml", ["v1.2.md", "v1.3.md", "v1.md"], {"v1.2.md"}),
        ("STRASSE.md.meta.yaml", ["straße.md"], {"straße.md"}),
        ("straße.meta.yaml", ["STRASSE-2026.md"], {"STRASSE-2026.md"}),
        ("ᾳ.md.meta.yaml", ["\u0391\u0399.md"], {"\u0391\u0399.md"}),
    ],
)
def test_what_was_left_behind_or_is_a_folder_keeps_no_other_open(
    tmp_path: Path, stray: str, files: list[str], meant: set[str]
) -> None:
    for name in files:
        put(tmp_path / name)
    put(tmp_path / stray, ACL)
    assert {name for name, shut in closed(tmp_path).items() if shut} == meant
    assert strays(tmp_path) == [stray]


def test_a_link_that_leads_nowhere_has_no_metadata_and_keeps_no_other_open(tmp_path: Path) -> None:
    put(tmp_path / "pay-2026.md")
    put(tmp_path / "pay.md.meta.yaml", ACL)
    (tmp_path / "pay.md").symlink_to("gone.md")
    assert strays(tmp_path) == ["pay.md.meta.yaml"]
    source = open_source(str(tmp_path))
    (item,) = (item for item in source.list() if item.address == "pay-2026.md")
    assert not document_fields(ParsedDocument(), source.metadata(item), OPEN).acl


@pytest.mark.parametrize("name", ["data.meta.yml", "a.md.meta.yml", "b.meta.yaml", "_meta.yml"])
def test_a_folder_that_is_called_as_a_metadata_file_is_a_folder(tmp_path: Path, name: str) -> None:
    found = {"a.md", "data.md", f"{name}/c.md", f"{name}/d/e.md"}
    for each in found:
        put(tmp_path / each)
    assert closed(tmp_path) == dict.fromkeys(found, False)
    assert strays(tmp_path) == []
    assert closed(tmp_path / name / "d") == {"e.md": False}
    assert closed(tmp_path / "a.md") == {"a.md": False}


@pytest.mark.parametrize("name", ["_meta.yaml", "a.md.meta.yaml"])
def test_a_folder_in_the_place_of_a_metadata_file_closes_and_what_is_in_it_is_listed(
    tmp_path: Path, name: str
) -> None:
    put(tmp_path / "a.md")
    put(tmp_path / name / "c.md")
    source = open_source(str(tmp_path))
    items = {item.address: item for item in source.list()}
    assert items.keys() == {"a.md", f"{name}/c.md"}
    with pytest.raises(ParseError, match=f"{name} beside it is not a file"):
        source.metadata(items["a.md"])


def test_a_link_to_a_folder_is_no_metadata_file_either(tmp_path: Path) -> None:
    put(tmp_path / "a.md")
    put(tmp_path / "real" / "c.md")
    (tmp_path / "a.meta.yml").symlink_to("real")
    assert closed(tmp_path) == {"a.md": False, "real/c.md": False}
    assert strays(tmp_path) == []


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


@pytest.mark.parametrize(
    ("stray", "target"),
    [
        ("docs/hr.meta.yaml", "docs/hr"),
        ("docs/hr.meta.yaml", "docs/hr/pay.md"),
        ("docs/hr.meta.yaml", "docs/hr/sub/deep"),
        ("docs/HR.meta.yml", "docs/hr"),
        ("docs/hr/sub.meta.yaml", "docs/hr/sub/deep"),
        ("docs/h.meta.yaml", "docs/h-2026"),
        ("docs/link.meta.yaml", "docs/link/deep"),
    ],
)
def test_one_above_that_may_be_meant_for_a_folder_on_the_way_is_not_lost(
    tmp_path: Path, stray: str, target: str
) -> None:
    for name in ("hr/pay.md", "hr/sub/deep/x.md", "h-2026/y.md"):
        put(tmp_path / "docs" / name)
    (tmp_path / "docs" / "link").symlink_to("hr/sub")
    file = put(tmp_path / stray, ACL)
    with pytest.raises(UsageError) as caught:
        open_source(str(tmp_path / target))
    sentence = f"{file} says who may read what is below it; ingest {file.parent}, or put an acl"
    assert sentence in str(caught.value)
    is_file = (tmp_path / target).is_file()
    put(tmp_path / (f"{target}.meta.yaml" if is_file else f"{target}/_meta.yaml"), ACL)
    assert open_source(str(tmp_path / target))


@pytest.mark.parametrize(
    ("stray", "text"),
    [
        ("hr.meta.yaml", "owner: hr"),
        ("it.meta.yaml", ACL),
        ("hr.md.meta.yml", ACL),
        (".hr.meta.yaml", ACL),
        ("hr.meta.yml/a.md", ACL),
        ("_meta.yml/a.md", ACL),
    ],
)
def test_one_above_that_says_nothing_of_the_target_is_no_hindrance(
    tmp_path: Path, stray: str, text: str
) -> None:
    put(tmp_path / "docs" / "hr" / "pay.md")
    put(tmp_path / "docs" / "hr.md")
    put(tmp_path / "docs" / stray, text)
    assert closed(tmp_path / "docs" / "hr") == {"pay.md": False}


def test_a_link_above_changes_nothing_for_a_file_that_is_the_target(tmp_path: Path) -> None:
    put(tmp_path / "hr" / "pay.md")
    put(tmp_path / "hr" / "pay.meta.yaml", ACL)
    (tmp_path / "link").symlink_to("hr")
    assert closed(tmp_path / "link" / "pay.md") == {"pay.md": True}


def test_a_folder_above_that_cannot_be_listed_is_asked_for_the_plain_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def shut(folder: Path) -> Iterator[Path]:
        raise PermissionError(13, "Permission denied", str(folder))

    put(tmp_path / "docs" / "hr" / "pay.md")
    put(tmp_path / "docs" / "hr.meta.yaml", ACL)
    monkeypatch.setattr(Path, "iterdir", shut)
    with pytest.raises(UsageError, match=r"hr\.meta\.yaml says who may read"):
        open_source(str(tmp_path / "docs" / "hr"))
    (tmp_path / "docs" / "hr.meta.yaml").unlink()
    assert open_source(str(tmp_path / "docs" / "hr"))


def test_a_file_in_doubt_can_be_sent_to_a_worker_and_parsed(tmp_path: Path) -> None:
    put(tmp_path / "a.md")
    put(tmp_path / "a.meta.yaml", ACL)
    source = pickle.loads(pickle.dumps(open_source(str(tmp_path))))
    item = pickle.loads(pickle.dumps(next(iter(source.list()))))
    assert "acl" in source.metadata(item)
    pool = ParserPool(Settings.model_validate({"ingest": {"parse_workers": 1}}))
    (parsed,) = pool.parse(source.read(item), item)
    assert parsed.blocks[0].text == "text"
