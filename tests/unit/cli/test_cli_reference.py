"""The reference pages say what the code does; run `make docs` when one of these fails."""

from __future__ import annotations

import re
from pathlib import Path

from quarry.cli.reference import DOCS, cli_page, command_names, configuration_page
from quarry.settings import load_settings


def test_every_setting_is_documented_as_it_is() -> None:
    assert (DOCS / "configuration.md").read_text(encoding="utf-8") == configuration_page()


def test_the_example_of_settings_can_be_loaded(tmp_path: Path) -> None:
    (example,) = re.findall(r"```yaml\n(.*?)```", configuration_page(), re.DOTALL)
    (tmp_path / "quarry.yaml").write_text(example)
    settings = load_settings(tmp_path / "quarry.yaml", {})
    assert settings.data_dir == Path("/srv/quarry")
    assert settings.access.users_file == tmp_path / "users.yaml"


def test_the_secrets_are_named() -> None:
    assert "They are\n  `stores.elasticsearch.api_key`," in configuration_page()


def test_every_command_has_its_block_and_no_block_is_stale() -> None:
    page = (DOCS / "cli.md").read_text(encoding="utf-8")
    for name in command_names():
        assert f"<!-- begin {name} -->" in page, f"docs/cli.md says nothing about quarry {name}"
    assert page == cli_page(page)


def test_every_option_is_explained() -> None:
    page = (DOCS / "cli.md").read_text(encoding="utf-8")
    unexplained = [line for line in page.splitlines() if line.startswith("| `") and "|  |" in line]
    assert unexplained == []
