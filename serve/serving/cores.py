"""Cores that an engine's processes have bound themselves to are left to them.

On a CPU vLLM binds the threads that compute to cores of their own and leaves the rest, one or more,
to whatever feeds them. The rest does not know: each moment that it runs on a core of theirs is one
in which all of them wait, since they compute in step. And the process that waits for them spins, so
that all cores look busy to the scheduler and others come to stand beside those that compute.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress

import psutil

LESS = 10
"""Steps of niceness: a core whose process weighs so little is where the scheduler sends others."""


def leave_bound_cores() -> None:
    """Moves this process, and those below it that are bound to nothing, off the cores that others
    below it are bound to; those below it give way to all others there.

    Does nothing where no core would be left, and but on Linux.
    """
    if sys.platform != "linux":
        return
    ours = os.sched_getaffinity(0)
    me = psutil.Process()
    moving, bound = [me], set[int]()
    for process in me.children(recursive=True):
        with suppress(psutil.Error):
            cores = set(process.cpu_affinity())
            if cores == ours:
                moving.append(process)
            else:
                bound |= cores
    left = ours - bound
    if not left or left == ours:
        return
    for process in moving:
        with suppress(psutil.Error):  # what has ended meanwhile, or may not be moved, stays
            if process != me:
                process.nice(min(19, process.nice() + LESS))
            for thread in process.threads():
                with suppress(OSError):
                    os.sched_setaffinity(thread.id, left)
