"""Whatever goes wrong, a command ends with one sentence and the right exit code."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
import typer

from quarry import errors
from quarry.cli.failures import guarded
from quarry.cli.main import run


def failing(error: BaseException) -> Callable[[], Any]:
    def call() -> None:
        raise error

    return call


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (errors.SourceNotFound("There is nothing at x."), 2, "There is nothing at x."),
        (errors.StoreUnavailable("The store is away."), 1, "The store is away."),
        (errors.MissingExtra("vllm", "vllm"), 2, "pip install -e '.[vllm]'"),
        (errors.ParseError("corrupt", "It is broken."), 3, "It is broken."),
        (ZeroDivisionError("secret text"), 1, "ZeroDivisionError"),
        (KeyboardInterrupt(), 130, ""),
        (typer.Abort(), 130, ""),
        (typer.Exit(3), 3, ""),
    ],
)
def test_an_error_is_one_sentence_and_its_exit_code(
    error: BaseException, code: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert guarded(failing(error), debug=False) == code
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.count("\n") == (1 if said else 0)
    assert said in printed.err
    assert "secret" not in printed.err


def test_debug_shows_where_an_error_came_from(capsys: pytest.CaptureFixture[str]) -> None:
    assert guarded(failing(ZeroDivisionError("x")), debug=True) == 1
    assert "Traceback" in capsys.readouterr().err


def test_a_message_of_several_lines_is_printed_as_one(capsys: pytest.CaptureFixture[str]) -> None:
    guarded(failing(errors.ConfigError("bad\nvalue\x1b[2J")), debug=False)
    assert capsys.readouterr().err == "bad value␛[2J\n"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nonsense"], "No such command 'nonsense'"),
        (["init", "--nonsense"], "No such option"),
        (["init", "--profile", "laptop"], "laptop"),
    ],
)
def test_a_wrong_command_line_is_one_sentence_that_names_the_help(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(arguments) == 2
    printed = capsys.readouterr().err
    assert said in printed
    assert "--help'." in printed
    assert printed.count("\n") == 1


def test_no_arguments_print_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert run([]) == 0
    assert "Commands:" in capsys.readouterr().out


def test_a_reader_that_goes_away_ends_the_command_quietly() -> None:
    program = (
        "import sys\n"
        "from quarry.cli.failures import guarded\n"
        "from quarry.cli.output import print_line\n"
        "def call():\n  for _ in range(100000): print_line('x' * 80)\n"
        "sys.exit(guarded(call, debug=False))"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None and process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(30) == 141


def test_the_help_imports_nothing_heavy() -> None:
    program = (
        "import sys; from quarry.cli.main import run; run(['--help'])\n"
        "heavy = {'torch', 'ray', 'transformers', 'pymilvus', 'pymupdf', 'pandas', 'httpx'}\n"
        "assert not heavy & set(sys.modules), heavy & set(sys.modules)"
    )
    subprocess.run(
        [sys.executable, "-c", program], check=True, stdout=subprocess.DEVNULL, env=os.environ
    )
