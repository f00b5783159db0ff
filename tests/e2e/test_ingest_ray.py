"""The pipeline on Ray Data: real workers, real parsers in their sandbox, once the real embedder."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import psutil
import pytest

from ingest.pipeline import RayPipeline, Stages
from quarry.errors import ModelError, QuarryError, StoreUnavailable
from tests.conftest import REPO
from tests.e2e.broken_stages import buggy, losing, raising, unbuildable
from tests.e2e.ingest_world import InlinePipeline, World

pytestmark = [pytest.mark.ray, pytest.mark.slow]


def ray_world(tmp_path: Path, **overrides: object) -> World:
    return World(tmp_path, overrides=dict(overrides), pipeline=RayPipeline())


def test_a_folder_goes_through_ray_with_the_real_embedder(tmp_path: Path) -> None:
    world = ray_world(tmp_path, embedder={"model": "packaged:all-MiniLM-L6-v2"})
    for number in range(5):
        world.write(f"page{number}.md", f"# Page {number}\n\nTents and stoves, part {number}.\n")
    world.write("c.jsonl", '{"_id": "1", "text": "First."}\n{"_id": "2", "text": "Second."}\n')
    world.write("bad.pdf", "no pdf at all")
    told = []
    summary = world.sync(progress=told.append)
    assert (summary.listed, summary.indexed, summary.failed) == (8, 7, 1)
    assert summary.embedded == 7
    assert {progress.phase for progress in told} == {"listing", "starting", "indexing", "finishing"}
    assert (told[-1].done, told[-1].addresses, told[-1].documents) == (7, 7, 8)
    assert world.is_clean()

    again = run_elsewhere(
        world, then="print(sorted({'ray', 'torch', 'pymilvus'} & set(sys.modules)))"
    )
    *_, summary_line, loaded = again.splitlines()
    assert json.loads(summary_line)["documents"]["unchanged"] == 8
    assert loaded == "[]"


def run_elsewhere(world: World, *, then: str = "", progress: str = "None", code: int = 0) -> str:
    """A sync of the world in a process of its own, with a Ray of its own if it needs one."""
    program = (
        "import json, os, signal, sys, psutil\n"
        "from ingest.sync import run_sync\n"
        "from quarry.settings import Settings\n"
        f"settings = Settings.model_validate_json({world.settings.model_dump_json()!r})\n"
        f"summary = run_sync(settings, [{str(world.folder)!r}], progress={progress})\n"
        "print(json.dumps(summary.to_json()))\n"
        f"{then}\n"
    )
    environment = os.environ | {"PYTHONPATH": str(REPO)}
    environment.pop("RAY_ADDRESS", None)
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=environment,
        cwd=world.root,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == code, done.stderr
    assert "RAY_BACKEND_LOG_LEVEL" not in done.stderr
    return done.stdout


def test_a_killed_run_leaves_no_process_and_the_next_one_goes_on(tmp_path: Path) -> None:
    world = ray_world(tmp_path)
    for number in range(400):
        world.write(f"page{number}.md", f"# Page {number}\n\nWord{number} is said here.\n")
    children = tmp_path / "children"
    kill = (
        "lambda p: p.documents and ("
        f"open({str(children)!r}, 'w').write(json.dumps([c.pid for c in "
        "psutil.Process().children(recursive=True)])), os.kill(os.getpid(), signal.SIGKILL))"
    )
    run_elsewhere(world, progress=kill, code=-signal.SIGKILL)
    assert_gone(json.loads(children.read_text()))

    summary = world.sync()
    assert (summary.listed, summary.failed) == (400, 0)
    assert summary.unchanged > 0
    assert summary.indexed == 400 - summary.unchanged
    assert len(world.rows()) == 400
    assert world.is_clean()


def assert_gone(pids: Sequence[int]) -> None:
    """Workers, parsers and Ray itself; Ray's two agents notice the end of their node later."""
    processes = [psutil.Process(pid) for pid in pids if psutil.pid_exists(pid)]
    workers = [process for process in processes if not is_agent(process)]
    _, left = psutil.wait_procs(workers, timeout=60)
    names = [process.name() for process in left]
    for process in [*left, *processes]:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()
    assert names == []


def is_agent(process: psutil.Process) -> bool:
    with contextlib.suppress(psutil.NoSuchProcess):
        return any("agent" in word.lower() for word in process.cmdline()[:4])
    return False


@pytest.mark.parametrize(
    ("stages", "error", "words"),
    [
        (Stages(write=raising), StoreUnavailable, "The store is away."),
        (Stages(embed=unbuildable), ModelError, "The model cannot be loaded."),
        (Stages(read=buggy), QuarryError, "A worker of the run stopped (KeyError); run it again"),
        (Stages(write=losing), QuarryError, "A stage lost or repeated 1 rows;"),
    ],
)
def test_what_stops_a_stage_arrives_as_the_error_that_it_is(
    tmp_path: Path, stages: Stages, error: type[QuarryError], words: str
) -> None:
    world = ray_world(tmp_path)
    world.write("a.md", "# A\n\nText.\n")
    with pytest.raises(QuarryError) as raised:
        world.sync(pipeline=RayPipeline(stages))
    assert type(raised.value) is error
    assert str(raised.value).startswith(words)
    assert world.sync(pipeline=InlinePipeline()).listed == 1
    assert world.rows()["a.md"].revision
