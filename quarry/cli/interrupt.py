"""Ctrl-C that cannot get lost in a library."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def interruptible() -> Iterator[Callable[[], None]]:
    """Gives a check that raises KeyboardInterrupt once SIGINT has come.

    Python raises it wherever the main thread is. If that is a callback or a finalizer of a library,
    it is printed or dropped there and the command would go on; so long work calls the check.
    """
    asked = threading.Event()

    def note(_number: int, _frame: FrameType | None) -> None:
        asked.set()
        raise KeyboardInterrupt

    def check() -> None:
        if asked.is_set():
            raise KeyboardInterrupt

    before = signal.signal(signal.SIGINT, note)
    try:
        yield check
    finally:
        signal.signal(signal.SIGINT, before)
