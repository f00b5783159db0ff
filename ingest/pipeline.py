"""The stages joined by Ray Data: read and chunk → embed → write and commit.

Rows carry pickled work from stage to stage on the workers; the driver gets only how each document
ended. Nothing else in `ingest` imports Ray.
"""

from __future__ import annotations

import logging
import math
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import ray
import ray.data
from ray.data import ActorPoolStrategy, DataContext

from ingest.stages import Stage, StageSettings, make_encoder, make_reader, make_writer
from ingest.stderr import without_lines
from ingest.work import Done, End, Row, Task, pack, unpack_all
from quarry.errors import QuarryError
from quarry.settings import Settings
from quarry.starting import start_ray
from quarry.telemetry.logs import configure_logging

COLUMN = "row"
READ_TOGETHER = 32
"""Addresses of one reading task at most."""
EMBED_TOGETHER = 128
"""Documents whose texts are embedded in one call: enough to sort by length, few enough to wait."""
WRITE_TOGETHER = 128
BLOCK_BYTES = 256 * 1024
"""Rows leave a stage in blocks of about this size, so that the next one starts early."""

_QUIET: dict[str, Any] = {
    "log_to_driver": False,
    "logging_level": logging.ERROR,
    "configure_logging": False,
}

Factory = Callable[[StageSettings], Stage]


@dataclass(frozen=True, slots=True, kw_only=True)
class Stages:
    """How each stage is built on its worker; tests put others in."""

    read: Factory = make_reader
    embed: Factory = make_encoder
    write: Factory = make_writer


class RayPipeline:
    """Runs tasks through the stages. `session` comes before `run`, and before any gRPC server of
    this process is started: Ray forks, and a fork next to gRPC's threads can hang."""

    def __init__(self, stages: Stages | None = None) -> None:
        self._stages = stages or Stages()

    def session(self) -> AbstractContextManager[None]:
        return ray_session()

    def run(self, config: StageSettings, tasks: Sequence[Task]) -> Iterator[list[Done | End]]:
        """How documents and addresses ended, in batches, as they end.

        Raises the error that stopped a stage, or QuarryError if a worker was lost.
        """
        made = self._stages
        sizes = _Sizes.of(config.settings)
        config = replace(config, read_threads=sizes.read_threads, embed_threads=sizes.embed_threads)
        with _quiet(), _data_context(), _our_errors():
            items = [{COLUMN: pack(task)} for task in tasks]
            rows = ray.data.from_items(items, override_num_blocks=_blocks(tasks, sizes.readers))
            rows = _stage(rows, made.read, config, **sizes.read)
            rows = _stage(rows, made.embed, config, batch_size=EMBED_TOGETHER, **sizes.embed)
            rows = _stage(rows, made.write, config, batch_size=WRITE_TOGETHER, **sizes.write)
            for table in rows.iter_batches(
                batch_size=None, batch_format="pyarrow", prefetch_batches=0
            ):
                yield _rows(table)


def _stage(rows: Any, factory: Factory, config: StageSettings, **options: Any) -> Any:
    return rows.map_batches(
        StageActor, fn_constructor_args=(factory, config), batch_format="pyarrow", **options
    )


class StageActor:
    """One stage on its worker: rows out of a table, through the stage, into tables again."""

    def __init__(self, factory: Factory, config: StageSettings) -> None:
        configure_logging(config.settings.telemetry)
        self._stage: Stage | None = None
        self._broken: QuarryError | None = None
        try:
            self._stage = factory(config)
        except QuarryError as error:  # raised by the first batch, where Ray hands it on as it is
            self._broken = error

    def __call__(self, table: pa.Table) -> Iterator[pa.Table]:
        if self._stage is None:
            raise self._broken or QuarryError("A stage could not be built.")
        rows = _rows(table)
        tally = _Tally(rows)
        for batch in _sliced(self._stage(rows)):
            tally.count(batch)
            yield pa.table({COLUMN: pa.array([pack(row) for row in batch], pa.large_binary())})
        tally.check()


class _Tally:
    """Raises if rows vanish or repeat: a task must end once, other rows come out as they came in.

    Documents that a reader finds are counted by the `End` of their address.
    """

    def __init__(self, rows: Iterable[Row]) -> None:
        self._due: Counter[tuple[str, int]] = Counter()
        for row in rows:
            kind = "end" if isinstance(row, (Task, End)) else "document"
            self._due[kind, row.number if isinstance(row, Task) else row.task] += 1
        self._reads = any(isinstance(row, Task) for row in rows)

    def count(self, rows: Iterable[Row]) -> None:
        for row in rows:
            assert not isinstance(row, Task)
            if isinstance(row, End):
                self._due["end", row.task] -= 1
                self._due["document", row.task] += row.documents if self._reads else 0
            else:
                self._due["document", row.task] -= 1

    def check(self) -> None:
        wrong = sum(abs(count) for count in self._due.values())
        if wrong:
            raise QuarryError(f"A stage lost or repeated {wrong} rows; report this as a fault.")


def _rows(table: pa.Table) -> list[Any]:
    return unpack_all(value.as_py() for value in table.column(COLUMN))


def _sliced(rows: Iterable[Row], size: int = EMBED_TOGETHER) -> Iterator[list[Row]]:
    part: list[Row] = []
    for row in rows:
        part.append(row)
        if len(part) == size:
            yield part
            part = []
    if part:
        yield part


def _blocks(tasks: Sequence[Task], readers: int) -> int:
    """Reading tasks of READ_TOGETHER addresses, or fewer so that every reader has some."""
    return min(len(tasks), max(2 * readers, math.ceil(len(tasks) / READ_TOGETHER)))


# ---------------------------------------------------------------------------------- resources


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sizes:
    """How many workers of each stage, and what each asks of Ray.

    One reading worker a node, with a thread and a parser process for each of its cores. Shares of
    a core are small, so that the whole pipeline fits on the smallest machine.
    """

    readers: int
    read_threads: int
    embed_threads: int
    read: dict[str, Any]
    embed: dict[str, Any]
    write: dict[str, Any]

    @classmethod
    def of(cls, settings: Settings) -> _Sizes:
        ingest = settings.ingest
        readers = max(1, sum(bool(node["Alive"]) for node in ray.nodes()))
        totals = ray.cluster_resources()
        cores = os.cpu_count() or 1
        share = min(1.0, totals.get("CPU", 1.0) / (8 * readers))
        on_gpu = settings.embedder.device in ("auto", "cuda") and totals.get("GPU", 0) >= 1
        return cls(
            readers=readers,
            read_threads=math.ceil((ingest.parse_workers or cores * readers) / readers),
            embed_threads=max(1, cores * readers // ingest.embed_workers),
            read=_pool(readers, num_cpus=share),
            embed=_pool(ingest.embed_workers, num_cpus=share, num_gpus=1 if on_gpu else None),
            write=_pool(ingest.write_workers, num_cpus=share / 2),
        )


def _pool(size: int, **resources: float | None) -> dict[str, Any]:
    return {"compute": ActorPoolStrategy(size=size), **resources}


# ----------------------------------------------------------------------------------- sessions


@contextmanager
def ray_session() -> Iterator[None]:
    """Ray as it runs already, or where RAY_ADDRESS points; else a local one for this run."""
    if ray.is_initialized():
        yield
        return
    if os.environ.get("RAY_ADDRESS"):
        _init()
    else:
        start_local_ray()
    try:
        yield
    finally:
        ray.shutdown()


def start_local_ray(**options: Any) -> None:
    """Ray on this machine, quiet and without dashboard; only this machine can reach it, and only
    while the caller lives, so it needs no tokens. Raises QuarryError if it does not come up."""
    os.environ.setdefault("RAY_AUTH_MODE", "disabled")
    start_ray(lambda: _init(address="local", include_dashboard=False, **options), ray.shutdown)


def _init(**options: Any) -> None:
    """Ray would warn on standard error about each of its own actors that can be restarted; below
    that level it still tells that it was given one. What fails is raised."""
    os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")
    with without_lines(b"Set ray log level from environment variable"):
        ray.init(**_QUIET, **options)


@contextmanager
def _data_context() -> Iterator[None]:
    context = DataContext.get_current().copy()
    context.target_max_block_size = BLOCK_BYTES
    context.enable_progress_bars = False
    context.print_on_execution_start = False
    context.raise_original_map_exception = True
    with DataContext.current(context):
        yield


@contextmanager
def _quiet() -> Iterator[None]:
    """Ray Data tells of every step and error in lines of its own; ours are in the summary."""
    logger = logging.getLogger("ray.data")
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(level)


@contextmanager
def _our_errors() -> Iterator[None]:
    """Raises the error that a stage raised, without what Ray wraps round it."""
    try:
        yield
    except ray.exceptions.RayError as error:
        raise _cause(error) from error


def _cause(error: BaseException) -> QuarryError:
    """Only the kind of a foreign error is told: its text may hold words of a document."""
    innermost = error
    while following := getattr(innermost, "cause", None) or innermost.__cause__:
        innermost = following
    if isinstance(innermost, QuarryError):
        return innermost
    return QuarryError(
        f"A worker of the run stopped ({type(innermost).__name__}); run it again to go on."
    )
