from __future__ import annotations

import pytest

from tests.leaks.judge import tally_line


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if line := tally_line():
        terminalreporter.write_line(line)
