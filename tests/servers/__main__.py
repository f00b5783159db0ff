"""Runs all files of these suites beside each other, since each waits for servers most of the time.

python -m tests.servers     what `make test-servers` runs

Prints what each said when it has ended, and at last the counts of all.
"""

from __future__ import annotations

import json
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
FIRST = ("test_kill_servers.py", "test_milvus.py", "test_cut_stores.py", "test_leaks_http.py")
"""Those that take longest."""
AT_ONCE = 5


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
    return max(each.status for each in ended)


def _run(file: Path, folder: Path, printing: threading.Lock) -> Ended:
    noted = folder / f"{file.stem}.json"
    command = [sys.executable, "-m", "pytest", str(file), "--counts", str(noted)]
    started = time.monotonic()
    done = subprocess.run(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    took = time.monotonic() - started
    with printing:
        _say(f"=== {file.relative_to(HERE)}: {took:.0f} s\n{done.stdout.rstrip()}")
        said = json.loads(noted.read_text()) if noted.exists() else {"tests": {}, "counts": {}}
        counts.add(said["counts"])
    return Ended(Counter(said["tests"]), done.returncode)


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
