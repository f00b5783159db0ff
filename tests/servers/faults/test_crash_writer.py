"""A writer killed by kill -9 at any store call, or in the middle of one, on real servers.

Readers see all old or all new, one more sync converges, and verify finds nothing left over.
"""

from __future__ import annotations

import pytest

from tests.servers.faults.bench import Bench
from tests.servers.faults.crash_world import crash_everywhere
from tests.servers.faults.scenarios import ALONE

pytestmark = pytest.mark.usefixtures("small_batches")


@pytest.mark.parametrize("label", ALONE)
def test_every_crash_is_all_old_or_all_new_and_the_next_sync_repairs(
    label: str, bench: Bench
) -> None:
    steps = crash_everywhere(bench, label, ALONE[label])
    assert len(steps) > 5
    bench.check(steps)
    bench.repair(steps)
