"""A generation is created once and opened only by who would build it in the same way."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from quarry import generations
from quarry.errors import FingerprintMismatch, UsageError
from quarry.generations import check_fingerprint, fingerprint_of, open_live
from quarry.models.fakes import FakeEmbedder
from quarry.records import Generation
from quarry.settings import ChunkingSettings, Settings
from quarry.stores.factory import open_registry
from quarry.stores.sqlite_registry import SqliteRegistry
from tests.contract.rows import at, document, text_row


@pytest.fixture
def settings(tmp_path: Path) -> Iterator[Settings]:
    base = Settings()
    stores = base.stores.model_copy(update={"vectors": "memory"})
    yield base.model_copy(update={"data_dir": tmp_path / "data", "stores": stores})


def with_chunks_of(settings: Settings, tokens: int) -> Settings:
    return settings.model_copy(update={"chunking": ChunkingSettings(max_tokens=tokens)})


def test_the_first_use_creates_g1_and_the_next_one_opens_it(settings: Settings) -> None:
    first, stores = open_live(settings, FakeEmbedder())
    stored = stores.catalog.commit(document())
    stores.text.upsert([text_row("a tent")])
    stores.close()
    second, stores = open_live(settings, FakeEmbedder())
    assert first.name == "g1"
    assert second == first
    assert stores.catalog.get(["d1"]) == {"d1": stored}
    assert stores.text.count() == 1
    stores.close()


def test_without_an_embedder_nothing_is_created(settings: Settings) -> None:
    with pytest.raises(UsageError, match="quarry ingest"):
        open_live(settings, None)
    open_live(settings, FakeEmbedder())[1].close()
    generation, stores = open_live(settings, None)
    assert generation.name == "g1"
    stores.close()


@pytest.mark.parametrize(
    ("other", "named"),
    [
        ({"dimension": 32}, "embedder.dimension (64 → 32)"),
        ({"max_tokens": 128}, "embedder.max_tokens (256 → 128)"),
    ],
)
def test_another_embedder_is_refused_by_what_differs(
    settings: Settings, other: dict[str, int], named: str
) -> None:
    open_live(settings, FakeEmbedder())[1].close()
    with pytest.raises(FingerprintMismatch) as caught:
        open_live(settings, FakeEmbedder(**other))
    message = str(caught.value)
    assert named in message
    assert str(settings.data_dir) in message
    assert "\n" not in message


def test_another_chunking_is_refused(settings: Settings) -> None:
    open_live(settings, FakeEmbedder())[1].close()
    with pytest.raises(FingerprintMismatch, match=r"chunking\.max_tokens \(250 → 300\)"):
        open_live(with_chunks_of(settings, 300), FakeEmbedder())


@pytest.mark.parametrize("rule", ["CLEANER_VERSION", "ANALYZER_VERSION", "SCHEMA_VERSION"])
def test_other_text_rules_and_schemas_are_refused(
    settings: Settings, rule: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    open_live(settings, FakeEmbedder())[1].close()
    monkeypatch.setattr(generations, rule, "99")
    with pytest.raises(FingerprintMismatch, match=rule.partition("_")[0].lower()):
        open_live(settings, FakeEmbedder())


def test_a_key_that_only_one_side_has_is_a_difference(settings: Settings) -> None:
    wanted = fingerprint_of(FakeEmbedder().fingerprint, settings)
    held = {**wanted, "tokenizer": "old"}
    with pytest.raises(FingerprintMismatch, match=r"tokenizer \(old → unset\)"):
        check_fingerprint(
            Generation(name="g1", fingerprint=held, created_at=at(0)), wanted, settings
        )


def test_a_creation_that_was_cut_off_is_finished_by_the_next_use(settings: Settings) -> None:
    wanted = fingerprint_of(FakeEmbedder().fingerprint, settings)
    registry = open_registry(settings)
    registry.create(Generation(name="g1", fingerprint=wanted, created_at=at(0)))
    registry.close()
    generation, stores = open_live(settings, FakeEmbedder())
    assert generation.name == "g1"
    assert stores.text.count() == 0
    stores.close()


def test_what_was_cut_off_under_other_settings_is_passed_over(settings: Settings) -> None:
    wanted = fingerprint_of(FakeEmbedder().fingerprint, with_chunks_of(settings, 300))
    registry = open_registry(settings)
    registry.create(Generation(name="g1", fingerprint=wanted, created_at=at(0)))
    registry.close()
    generation, stores = open_live(settings, FakeEmbedder())
    assert generation.name == "g2"
    stores.close()


def test_a_first_user_who_was_overtaken_makes_no_second_generation(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process creates `g1` just after this one has looked."""
    wanted = fingerprint_of(FakeEmbedder().fingerprint, settings)
    looked = SqliteRegistry.generations

    def overtaken(registry: SqliteRegistry) -> list[Generation]:
        found = looked(registry)
        if not found:
            registry.create(Generation(name="g1", fingerprint=wanted, created_at=at(0)))
        return found

    monkeypatch.setattr(SqliteRegistry, "generations", overtaken)
    generation, stores = open_live(settings, FakeEmbedder())
    stores.close()
    assert generation.name == "g1"
    registry = open_registry(settings)
    assert [each.name for each in registry.generations()] == ["g1"]
    registry.close()


def test_several_first_users_agree_on_one_generation(settings: Settings) -> None:
    def use(_: int) -> str:
        generation, stores = open_live(settings, FakeEmbedder())
        stores.close()
        return generation.name

    with ThreadPoolExecutor(4) as pool:
        assert set(pool.map(use, range(4))) == {"g1"}
    registry = open_registry(settings)
    assert [each.name for each in registry.generations()] == ["g1"]
    registry.close()
