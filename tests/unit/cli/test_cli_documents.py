"""`quarry documents`, `status` and `history` say what the catalog says, and change nothing."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from quarry.cli.main import run
from quarry.ids import doc_id
from quarry.records import DocState, Document, Generation, Kept
from quarry.settings import Settings, load_settings
from quarry.stores.factory import open_catalog, open_registry

SETTINGS = "stores: {vectors: memory, retention_days: 30}\nserve: {port: 0}\n"
NOW = datetime(2026, 5, 1, 12, 0, tzinfo=UTC)


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("QUARRY_CONFIG", raising=False)
    path = tmp_path / "quarry.yaml"
    path.write_text(SETTINGS)
    return load_settings(path, {})


def row(address: str, **changes: Any) -> Document:
    source = changes.get("source", "shop")
    return Document(
        doc_id=doc_id(source, address),
        address=address,
        uri=address,
        **{"committed_at": NOW, "source": source, "acl": ("public",), **changes},
    )


def committed(settings: Settings, *documents: Document) -> None:
    registry = open_registry(settings)
    if registry.live() is None:
        registry.create(Generation(name="g1", fingerprint={"dimension": 8}, created_at=NOW))
        registry.switch("g1", expected="")
    catalog = open_catalog(settings, "g1")
    catalog.ensure()
    for document in documents:
        catalog.commit(document)
    catalog.close()
    registry.close()


@pytest.fixture
def say(capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    def call(*arguments: str, code: int = 0) -> str:
        assert run(list(arguments)) == code
        return capsys.readouterr().out

    return call


def test_documents_have_the_stable_shape(settings: Settings, say: Callable[..., str]) -> None:
    page = row("returns.md", title="Returns", revision="00000000-a", chunk_count=3)
    committed(settings, page)
    printed = json.loads(say("documents", "--json"))
    assert printed == {
        "documents": [
            {
                "doc_id": page.doc_id,
                "source": "shop",
                "uri": "returns.md",
                "title": "Returns",
                "state": "indexed",
                "revision": "00000000-a",
                "chunk_count": 3,
                "acl": ["public"],
                "reason": "",
            }
        ]
    }


def test_documents_are_chosen_by_state_and_source(
    settings: Settings, say: Callable[..., str]
) -> None:
    committed(
        settings,
        row("a.md"),
        row("b.pdf", state=DocState.CORRUPT, error="It is broken."),
        row("c.md", source="wiki"),
        row("d.md", state=DocState.DELETED),
    )

    def uris(*arguments: str) -> list[str]:
        return [d["uri"] for d in json.loads(say("documents", "--json", *arguments))["documents"]]

    assert uris() == ["a.md", "b.pdf", "c.md"]
    assert uris("--state", "corrupt") == ["b.pdf"]
    assert uris("--state", "deleted") == ["d.md"]
    assert uris("--source", "wiki") == ["c.md"]
    assert uris("--source", "wiki", "--state", "corrupt") == []


def test_a_person_reads_the_reason_beside_the_state(
    settings: Settings, say: Callable[..., str]
) -> None:
    committed(settings, row("b\x1b.pdf", state=DocState.CORRUPT, error="It is broken.", acl=()))
    header, line = (each.split("\t") for each in say("documents").splitlines())
    assert header == ["state", "source", "uri", "title", "chunks", "readable by", "reason"]
    assert line == ["corrupt", "shop", "b␛.pdf", "", "0", "nobody", "It is broken."]


def test_before_the_first_ingest_there_is_nothing_and_nothing_is_made(
    settings: Settings, say: Callable[..., str]
) -> None:
    assert json.loads(say("documents", "--json")) == {"documents": []}
    assert json.loads(say("status", "--json"))["generation"] is None
    assert "quarry ingest" in say("status")
    say("history", "x", code=2)
    assert not settings.data_dir.exists()


def test_status_counts_every_state(settings: Settings, say: Callable[..., str]) -> None:
    committed(settings, row("a.md"), row("b.md"), row("c.md", state=DocState.DELETED))
    report = json.loads(say("status", "--json"))
    assert report["documents"] == {"deleted": 1, "indexed": 2}
    assert report["generation"] == "g1"
    assert report["server"] is None
    assert "documents   2 (2 indexed); 1 deleted" in say("status")


def test_history_shows_each_commit_of_a_document_by_id_or_address(
    settings: Settings, say: Callable[..., str]
) -> None:
    first = row("a.md", revision="00000000-a", version="1")
    committed(settings, first)
    committed(settings, replace(first, serial=1, revision="00000001-b", version="2"))
    by_address = json.loads(say("history", "a.md", "--json"))
    assert [r["revision"] for r in by_address["revisions"]] == ["00000000-a", "00000001-b"]
    assert json.loads(say("history", first.doc_id, "--json")) == by_address
    assert "00000001-b" in say("history", "a.md")


def test_history_tells_which_revisions_a_search_of_the_past_reaches(
    settings: Settings, say: Callable[..., str]
) -> None:
    """Three revisions, the second one with a failed update, 40, 35, 20 and 10 days ago."""

    def ago(days: float) -> datetime:
        return datetime.now(UTC) - timedelta(days=days)

    facts = [(40, "r0", ""), (35, "r1", ""), (20, "r1", "It is broken."), (10, "r2", "")]
    for serial, (days, revision, error) in enumerate(facts):
        when = {"serial": serial, "committed_at": ago(days)}
        committed(settings, row("a.md", revision=revision, error=error, **when))

    def reached() -> list[bool]:
        return [each["as_of"] for each in json.loads(say("history", "a.md", "--json"))["revisions"]]

    assert reached() == [False] * 4, "no run has begun to keep them"
    keep(settings, Kept(since=ago(60)))
    assert reached() == [False, True, True, True]
    keep(settings, Kept(since=ago(15)))
    assert reached() == [False, False, True, True]
    header, *lines = [line.split("\t") for line in say("history", "a.md").splitlines()]
    assert (header[1], header[6]) == ("until", "--as-of")
    told = [line[6] for line in lines]
    assert told == ["no", "no", f"from {ago(15):%Y-%m-%d}{told[2][15:]}", "yes"]
    assert [line[1] for line in lines] == [*(line[0] for line in lines[1:]), "now"]

    gone = row("a.md", serial=4, state=DocState.DELETED, committed_at=ago(5))
    committed(settings, gone)
    assert reached() == [False] * 5
    keep(settings, Kept(since=ago(15), deleted_since=ago(9)))
    assert reached() == [False, False, True, True, False]


def test_history_names_the_setting_if_nothing_is_kept(
    settings: Settings, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    committed(settings, row("a.md", revision="r0"))
    (tmp_path / "quarry.yaml").write_text("stores: {vectors: memory}\n")
    assert run(["history", "a.md"]) == 0
    assert "stores.retention_days" in capsys.readouterr().err


def keep(settings: Settings, kept: Kept) -> None:
    catalog = open_catalog(settings, "g1")
    catalog.keep(kept)
    catalog.close()


def test_a_name_that_none_or_several_documents_have_is_an_error(
    settings: Settings, capsys: pytest.CaptureFixture[str]
) -> None:
    committed(settings, row("a.md"), row("a.md", source="wiki"))
    assert run(["history", "z.md"]) == 2
    assert "There is no document z.md" in capsys.readouterr().err
    assert run(["history", "a.md"]) == 2
    assert "2 documents have the address a.md" in capsys.readouterr().err
