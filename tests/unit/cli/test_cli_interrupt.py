"""An interrupt ends a command even if a library swallowed the exception."""

from __future__ import annotations

import contextlib
import signal

import pytest

from quarry.cli.interrupt import interruptible


def test_an_interrupt_that_a_library_swallowed_is_raised_by_the_next_check() -> None:
    with interruptible() as check:
        check()
        with contextlib.suppress(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
        with pytest.raises(KeyboardInterrupt):
            check()


def test_the_handler_from_before_is_back_afterwards() -> None:
    before = signal.getsignal(signal.SIGINT)
    with interruptible():
        assert signal.getsignal(signal.SIGINT) is not before
    assert signal.getsignal(signal.SIGINT) is before
