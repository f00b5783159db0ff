"""A writer killed by kill -9 at any store call, or in the middle of one, on real servers.

Readers see all old or all new, one more sync converges, and verify finds nothing left over.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from quarry import attempts, revisions
from tests.servers.crash_world import BATCH_ROWS, STEPS, Bench, bench_settings, crash_everywhere


@pytest.fixture(scope="module")
def bench(addresses: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    made = Bench(bench_settings(tmp_path_factory.mktemp("crash"), addresses))
    yield made
    made.close()


@pytest.mark.parametrize("label", STEPS)
def test_every_crash_is_all_old_or_all_new_and_the_next_sync_repairs(
    label: str, bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attempts, "BATCH_ROWS", BATCH_ROWS)
    monkeypatch.setattr(revisions, "BATCH_ROWS", BATCH_ROWS)
    steps = crash_everywhere(bench, label, STEPS[label])
    assert len(steps) > 5
    bench.check(steps)
    bench.repair(steps)
