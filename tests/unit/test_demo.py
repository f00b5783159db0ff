"""What the demo prints can be copied into a shell as it is."""

from __future__ import annotations

import re
import runpy
import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from quarry.cli.main import run
from tests.conftest import REPO

CALLED = re.compile(r"^\$ (.+)$", re.MULTILINE)


@pytest.fixture
def demo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The program, in an environment at `.venv` of a checkout that is empty but for that."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("QUARRY_CONFIG", raising=False)
    monkeypatch.setattr(sys, "executable", str(tmp_path / ".venv" / "bin" / "python"))
    module = runpy.run_path(str(REPO / "examples" / "demo.py"))
    as_typed: Callable[..., str] = module["as_typed"]
    as_typed.__globals__["CONFIG"] = tmp_path / ".demo" / "quarry.yaml"
    return module


class Server:
    """Answers everything, and remembers nothing."""

    url = "http://127.0.0.1:1"

    def post(self, _path: str, body: dict[str, Any], **_options: Any) -> dict[str, Any]:
        empty: list[Any] = []
        said = {"status": "answered", "answer": body["question"], "cut": False, "timings_ms": {}}
        return said | {"citations": empty, "doubts": empty, "degraded": empty}


def printed(demo: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> list[str]:
    demo["stay_up"].__globals__["signal"] = type("Signal", (), {"pause": staticmethod(bool)})
    for question in demo["QUESTIONS"]:
        demo["ask"](Server(), question)
    demo["stay_up"](Server())
    return CALLED.findall(capsys.readouterr().out)


def test_each_command_runs_with_the_settings_of_the_demo(
    demo: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = printed(demo, capsys)
    assert len(lines) == len(demo["QUESTIONS"]) + 1
    (tmp_path / ".demo").mkdir()
    settings = demo["SETTINGS"].replace("../examples", str(REPO / "examples"))
    (tmp_path / ".demo" / "quarry.yaml").write_text(settings)
    for line in lines:
        program, *arguments = shlex.split(line)
        assert program == ".venv/bin/quarry"
        assert run(arguments) == 2
        assert "Nothing has been ingested yet" in capsys.readouterr().err, line


def test_the_readme_shows_the_commands_that_are_printed(
    demo: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    readme = (REPO / "README.md").read_text(encoding="utf-8")
    assert CALLED.findall(readme) == printed(demo, capsys)[:-1]


def test_the_name_alone_is_enough_where_the_shell_finds_it(
    demo: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / ".venv" / "bin"
    folder.mkdir(parents=True)
    (folder / "quarry").touch(mode=0o755)
    monkeypatch.setenv("PATH", str(folder))
    assert demo["as_typed"]("status") == "quarry --config .demo/quarry.yaml status"
    monkeypatch.setenv("PATH", str(tmp_path))
    assert demo["as_typed"]("status") == ".venv/bin/quarry --config .demo/quarry.yaml status"
