"""Standard error stays clean, and loses nothing that matters."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from ingest.stderr import without_lines


def test_only_the_lines_that_are_named_are_dropped(capfd: pytest.CaptureFixture[str]) -> None:
    with without_lines(b"a notice"):
        os.write(2, b"[1] here is a notice to 3\nan error\n")
        os.write(2, b"without an end")
    os.write(2, b"\na notice later\n")
    assert capfd.readouterr().err == "an error\nwithout an end\na notice later\n"


def test_what_stops_the_block_is_not_lost(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ZeroDivisionError), without_lines(b"a notice"):
        os.write(2, b"before\n")
        raise ZeroDivisionError
    os.write(2, b"after\n")
    assert capfd.readouterr().err == "before\nafter\n"


def test_a_long_text_does_not_fill_the_way(capfd: pytest.CaptureFixture[str]) -> None:
    with without_lines(b"a notice"):
        for _ in range(200):
            os.write(2, b"x" * 4_095 + b"\n")
    assert len(capfd.readouterr().err) == 200 * 4_096


def test_a_process_without_standard_error_goes_on() -> None:
    program = "import os; os.close(2)\nfrom ingest.stderr import without_lines\n"
    program += "with without_lines(b'x'):\n    print('done')\n"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert done.stdout == b"done\n"
