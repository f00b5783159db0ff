"""Standard error of this process without lines that a library prints there and nobody needs."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Thread

_STDERR = 2
_PATIENCE_S = 5.0


@contextmanager
def without_lines(holding: bytes) -> Iterator[None]:
    """Drops the lines that hold these bytes while the block runs; all others pass as they come.

    It works below Python, so that it catches what is written by code in C.
    """
    try:
        real = os.dup(_STDERR)
    except OSError:  # there is no standard error to keep clean
        yield
        return
    source, sink = os.pipe()
    os.dup2(sink, _STDERR)
    os.close(sink)
    passing = Thread(target=_pass_on, args=(source, real, holding), daemon=True)
    passing.start()
    try:
        yield
    finally:
        os.dup2(real, _STDERR)  # closes the pipe's only writing end: the thread comes to its end
        passing.join(_PATIENCE_S)


def _pass_on(source: int, real: int, dropped: bytes) -> None:
    with os.fdopen(source, "rb") as lines, os.fdopen(real, "wb", buffering=0) as stderr:
        for line in lines:
            if dropped not in line:
                stderr.write(line)
