"""Runs all files of these suites beside each other, since each waits for servers most of the time.

python -m tests.servers     what `make test-servers` runs

Prints what each said when it has ended, and at last the counts of all.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from tests.servers import counts

HERE = Path(__file__).parent
FIRST = ("test_kill_servers.py", "test_cut_milvus.py", "test_cut_elasticsearch.py")
"""Those that take longest."""
AT_ONCE = 5
STARTED: list[subprocess.Popen[str]] = []


@dataclass(frozen=True, slots=True)
class Ended:
    tests: Counter[str]
    status: int


def main() -> int:
    files = sorted(HERE.glob("*/test_*.py"), key=lambda file: (file.name not in FIRST, file.name))
    printing = threading.Lock()
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(AT_ONCE) as pool:
        ended = list(pool.map(lambda file: _run(file, Path(folder), printing), files))
    tests = sum((each.tests for each in ended), Counter[str]())
    for line in counts.lines():
        _say(line)
    failed = tests["failed"] + tests["error"]
    _say(f"{tests['passed']} passed, {failed} failed, {tests['skipped']} skipped")
    return int(any(each.status for each in ended))  # a killed one has a negative status


def _run(file: Path, folder: Path, printing: threading.Lock) -> Ended:
    noted = folder / f"{file.stem}.json"
    options = ["--show-capture=no", "--counts", str(noted)]  # clients log each broken request
    started = time.monotonic()
    process = subprocess.Popen(
        [sys.executable, "-m", "pytest", str(file), *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    STARTED.append(process)
    text, _ = process.communicate()
    took = time.monotonic() - started
    with printing:
        _say(f"=== {file.relative_to(HERE)}: {took:.0f} s\n{text.rstrip()}")
        said = json.loads(noted.read_text()) if noted.exists() else {"tests": {}, "counts": {}}
        counts.add(said["counts"])
    return Ended(Counter(said["tests"]), process.returncode)


def _stop(*_: object) -> None:
    """Ends with what it has started; a pair of servers that is left is one for `servers-down`."""
    for process in STARTED:
        process.terminate()
    os._exit(143)


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, _stop)
    sys.exit(main())
