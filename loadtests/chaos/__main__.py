"""python -m loadtests.chaos --minutes 20 --seed 7 [--folder F]"""

from __future__ import annotations

import json
import shutil
import signal
import sys
import tempfile
from pathlib import Path
from typing import Annotated

import typer

from loadtests.chaos.run import Plan, run
from quarry.errors import QuarryError


def main(
    minutes: Annotated[float, typer.Option(min=0.1, help="How long things break.")] = 20.0,
    seed: Annotated[int, typer.Option(help="The same seed breaks the same in the same order.")] = 7,
    folder: Annotated[
        Path | None,
        typer.Option(help="Kept with data, logs and journals; else a temporary one, gone after."),
    ] = None,
    writers: Annotated[int, typer.Option(min=1, help="Processes that change them.")] = 2,
    readers: Annotated[int, typer.Option(min=1, help="Threads that search.")] = 4,
    timeout: Annotated[
        float, typer.Option(min=0.1, help="Seconds of one store request; more if it is busy here.")
    ] = 2.0,
) -> None:
    """Break real servers at random while documents change and people read; exit 1 if it shows."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the servers are stopped
    home = folder or Path(tempfile.mkdtemp(prefix="quarry-chaos-"))
    plan = Plan(
        folder=home.resolve(),
        seconds=60 * minutes,
        seed=seed,
        writers=writers,
        readers=readers,
        timeout_s=timeout,
    )
    try:
        report = run(plan, _say)
    except QuarryError as error:
        _say(str(error))
        raise typer.Exit(error.exit_code) from error
    sys.stdout.write(json.dumps(report.as_json(), indent=2) + "\n")
    _say(report.line)
    if folder is None and report.passed:
        shutil.rmtree(home, ignore_errors=True)
    elif not report.passed:
        _say(f"the journals and logs are in {home}")
    raise typer.Exit(0 if report.passed else 1)


def _say(line: str) -> None:
    sys.stderr.write(line + "\n")
    sys.stderr.flush()


if __name__ == "__main__":
    typer.run(main)
