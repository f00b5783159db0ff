"""`quarry init` writes a file that holds every key, loads as the defaults, and cannot drift."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from quarry.cli.main import run
from quarry.cli.templates import Profile, config_text
from quarry.settings import Settings, SourceSettings, load_settings
from quarry.settings_file import key_paths

PROFILES: list[Profile] = ["embedded", "cluster"]


@pytest.fixture(autouse=True)
def in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("QUARRY_CONFIG", raising=False)


def uncommented(text: str) -> str:
    return re.sub(r"^( *)# (\w+: )", r"\1\2", text, flags=re.MULTILINE)


@pytest.mark.parametrize("profile", PROFILES)
def test_the_file_as_written_means_the_defaults_of_its_profile(
    profile: Profile, tmp_path: Path
) -> None:
    path = tmp_path / "quarry.yaml"
    path.write_text(config_text(profile))
    loaded = load_settings(path, {})
    source = SourceSettings(default_acl=("public",) if profile == "embedded" else None)
    expected = Settings(profile=profile, sources={"default": source})
    assert loaded == expected.model_copy(update={"data_dir": tmp_path / ".quarry"})


@pytest.mark.parametrize("profile", PROFILES)
def test_taking_every_comment_away_changes_nothing(profile: Profile, tmp_path: Path) -> None:
    path = tmp_path / "quarry.yaml"
    path.write_text(config_text(profile))
    as_written = load_settings(path, {})
    path.write_text(uncommented(config_text(profile)))
    assert load_settings(path, {}) == as_written


@pytest.mark.parametrize("profile", PROFILES)
def test_every_key_is_in_the_file_with_its_description(profile: Profile) -> None:
    text = config_text(profile)
    raw = yaml.safe_load(uncommented(text))
    for key, info in key_paths(Settings):
        found = raw
        for part in key.replace("NAME", "default").split("."):
            assert part in found, key
            found = found[part]
        assert info.description, f"{key} has no description"
        assert info.description in text


def test_init_writes_once_and_only_force_writes_over(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["init"]) == 0
    path = tmp_path / "quarry.yaml"
    path.write_text("serve: {port: 1}\n")
    assert run(["init"]) == 2
    assert "--force" in capsys.readouterr().err
    assert path.read_text() == "serve: {port: 1}\n"
    assert run(["init", "--force", "--profile", "cluster"]) == 0
    assert load_settings(path, {}).profile == "cluster"


@pytest.mark.parametrize(
    "arguments", [["init", "--config", "c.yaml"], ["--config", "c.yaml", "init"]]
)
def test_init_writes_where_config_says(arguments: list[str], tmp_path: Path) -> None:
    assert run(arguments) == 0
    assert (tmp_path / "c.yaml").is_file()
    assert not (tmp_path / "quarry.yaml").exists()


def test_init_into_a_folder_that_is_not_there_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["init", "--config", "no/such/quarry.yaml"]) == 2
    assert "There is no folder" in capsys.readouterr().err
