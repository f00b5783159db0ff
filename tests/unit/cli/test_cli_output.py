"""Text of documents is shown and never obeyed by the terminal; JSON stays JSON."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.table import Table
from rich.text import Text

from quarry.cli.output import one_line, print_json, print_report, print_table, printable


@pytest.mark.parametrize(
    ("hostile", "shown"),
    [
        ("\x1b[2Jgone", "␛[2Jgone"),
        ("\x1b]0;title\x07", "␛]0;title␇"),
        ("\x9b31m", "\\u009b31m"),
        ("over\rwritten", "over␍written"),
        ("a\x00b\x08c", "a␀b␈c"),
        ("\u202egpj.exe", "\\u202egpj.exe"),
        ("\u2066x\u2069", "\\u2066x\\u2069"),
        ("plain – ‘text’ 日本語 العربية 🪁\n\tmore", "plain – ‘text’ 日本語 العربية 🪁\n\tmore"),
    ],
)
def test_control_characters_are_shown_and_not_obeyed(hostile: str, shown: str) -> None:
    assert printable(hostile) == shown


@given(st.text())
def test_no_text_leaves_a_character_that_a_terminal_acts_on(text: str) -> None:
    for character in printable(text):
        code = ord(character)
        assert character in "\n\t" or not (code < 0x20 or 0x7F <= code < 0xA0)


def test_one_line_is_one_line() -> None:
    assert one_line("a\n\n b\tc\u2028d") == "a b c d"


@given(st.text())
def test_json_gives_the_same_text_back_and_holds_no_raw_control_character(text: str) -> None:
    printed: list[str] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("quarry.cli.output.print_line", printed.append)
        print_json({"text": text})
    assert json.loads(printed[0]) == {"text": text}
    assert not any(0x7F <= ord(character) < 0xA0 for character in printed[0])


def test_a_table_that_no_terminal_shows_is_tab_separated_with_its_header(
    capsys: pytest.CaptureFixture[str],
) -> None:
    print_table(("uri", "state"), [("a\tb\x1b.md", "indexed"), ("c.md", 3)])
    assert capsys.readouterr().out == "uri\tstate\na b␛.md\tindexed\nc.md\t3\n"
    print_table(("uri", "state"), [])
    assert capsys.readouterr().out == "uri\tstate\n"


def test_a_table_on_a_terminal_has_the_same_header(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", "dumb")
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    print_table(("uri", "state"), [("a.md", "indexed")])
    header, line = capsys.readouterr().out.splitlines()
    assert header.split() == ["uri", "state"]
    assert line.split() == ["a.md", "indexed"]


def test_the_tables_of_a_report_are_tab_separated_too(capsys: pytest.CaptureFixture[str]) -> None:
    table = Table("case", "why", title=Text("what failed"))
    table.add_row(Text("a\x1b"), "a long reason " * 30)
    print_report([table, Text("gained: none")])
    assert capsys.readouterr().out.split("\n") == [
        "what failed",
        "case\twhy",
        "a␛\t" + " ".join(["a long reason"] * 30),
        "",
        "gained: none",
        "",
        "",
    ]
