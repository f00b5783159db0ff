"""How a long run shows where it stands: a bar on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol

from quarry.cli.output import print_note

_EVERY_S = 5.0
"""Seconds between two plain lines, so that a log of a long run stays readable."""


class Standing(Protocol):
    """What a run tells about itself (`ingest.summary.Progress`)."""

    @property
    def phase(self) -> str: ...
    @property
    def addresses(self) -> int: ...
    @property
    def done(self) -> int: ...
    @property
    def documents(self) -> int: ...
    @property
    def failed(self) -> int: ...
    @property
    def documents_per_s(self) -> float: ...
    @property
    def eta_s(self) -> float | None: ...


Show = Callable[[Standing], None]


@contextmanager
def progress_display() -> Iterator[Show]:
    """A function that shows the standing on standard error; standard output stays data."""
    if sys.stderr.isatty():
        with _bar() as show:
            yield show
    else:
        yield _Lines().show


def standing_text(standing: Standing) -> str:
    """`indexing: 120 of 1400 read, 35.2 documents/s, 0:40 left, 2 failed`."""
    if not standing.addresses:
        return (
            f"{standing.phase}: {standing.documents} documents"
            if standing.documents
            else (standing.phase)
        )
    parts = [f"{standing.phase}: {standing.done} of {standing.addresses} read"]
    if standing.documents != standing.done:
        parts.append(f"{standing.documents} documents")
    if standing.documents_per_s:
        parts.append(f"{standing.documents_per_s:.1f} documents/s")
    if standing.eta_s is not None:
        parts.append(f"{duration(standing.eta_s)} left")
    if standing.failed:
        parts.append(f"{standing.failed} failed")
    return ", ".join(parts)


def duration(seconds: float) -> str:
    """`0:07`, `12:30` or `1:02:03`."""
    whole = max(0, round(seconds))
    hours, minutes, rest = whole // 3600, whole // 60 % 60, whole % 60
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def _now() -> float:
    return time.monotonic()


class _Lines:
    """A line at each change of phase and then every few seconds."""

    def __init__(self) -> None:
        self._phase = ""
        self._next = 0.0

    def show(self, standing: Standing) -> None:
        now = _now()
        if standing.phase == self._phase and now < self._next:
            return
        self._phase, self._next = standing.phase, now + _EVERY_S
        print_note(standing_text(standing))


@contextmanager
def _bar() -> Iterator[Show]:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn

    columns: tuple[Any, ...] = (BarColumn(bar_width=30), TextColumn("{task.fields[text]}"))
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("", total=None, text="")

        def show(standing: Standing) -> None:
            total = standing.addresses or None
            bar.update(task, total=total, completed=standing.done, text=standing_text(standing))

        yield show
