"""Which processes leave the cores that an engine's threads are bound to."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from serve.serving.cores import LESS

CORES = list(range(len(os.sched_getaffinity(0)))) if sys.platform == "linux" else []
pytestmark = pytest.mark.skipif(
    len(CORES) < 2,
    reason="processes are bound to cores on Linux, with two cores or more",
)

FAMILY = """
import json, os, subprocess, sys, threading
from serve.serving.cores import leave_bound_cores

cores = sorted(os.sched_getaffinity(0))
waits = "import sys; sys.stdin.read()"
bound = [set(given) for given in json.loads(sys.argv[1])]
children = [
    subprocess.Popen([sys.executable, "-c", waits], stdin=subprocess.PIPE) for _ in [*bound, None]
]
for child, places in zip(children, bound):
    os.sched_setaffinity(child.pid, {cores[place] for place in places})
gate, seen = threading.Event(), []
thread = threading.Thread(target=lambda: (gate.wait(), seen.append(os.sched_getaffinity(0))))
thread.start()
leave_bound_cores()
gate.set()
thread.join()
nice = [os.getpriority(os.PRIO_PROCESS, pid) for pid in (0, *(child.pid for child in children))]
affinities = [os.sched_getaffinity(0), *seen, *(os.sched_getaffinity(c.pid) for c in children)]
places = [sorted(map(cores.index, each)) for each in affinities]
print(json.dumps([places, [each - nice[0] for each in nice]]))
for child in children:
    child.communicate()
"""


def family(*bound: list[int]) -> tuple[list[list[int]], list[int]]:
    """The cores, by place, of a process, its second thread, children bound to cores and one more
    child, after the process has left the bound cores; and how much nicer than the process it and
    its children are."""
    done = subprocess.run(
        [sys.executable, "-c", FAMILY, json.dumps(bound)],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        timeout=60,
    )
    places, nicer = json.loads(done.stdout)
    return places, nicer


def test_threads_and_unbound_children_leave_the_core_of_a_bound_child() -> None:
    (own, thread, bound, other), _ = family([0])
    assert bound == [0]
    assert own == thread == other == CORES[1:]


def test_a_child_that_moves_gives_way_to_all_others() -> None:
    assert family([0])[1] == [0, 0, LESS]


def test_nobody_moves_where_nothing_is_bound() -> None:
    (own, thread, other), nicer = family()
    assert own == thread == other == CORES
    assert nicer == [0, 0]


def test_nobody_moves_where_no_core_would_be_left() -> None:
    each = [[place] for place in CORES]
    (own, thread, *children), nicer = family(*each)
    assert own == thread == children[-1] == CORES
    assert children[:-1] == each
    assert not any(nicer)
