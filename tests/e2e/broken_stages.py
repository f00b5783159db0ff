"""Stages that fail, in a module that workers can import."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ingest.stages import Stage, StageSettings, make_writer
from ingest.work import Row
from quarry.errors import ModelError, StoreUnavailable


class Raising:
    def __call__(self, rows: Sequence[Row]) -> Iterable[Row]:
        raise StoreUnavailable("The store is away.")


class Losing:
    def __init__(self, config: StageSettings) -> None:
        self._writer = make_writer(config)

    def __call__(self, rows: Sequence[Row]) -> Iterable[Row]:
        return list(self._writer(rows))[1:]


def raising(config: StageSettings) -> Stage:
    return Raising()


def unbuildable(config: StageSettings) -> Stage:
    raise ModelError("The model cannot be loaded.")


def losing(config: StageSettings) -> Stage:
    return Losing(config)


class Buggy:
    def __call__(self, rows: Sequence[Row]) -> Iterable[Row]:
        raise KeyError("words of a document")


def buggy(config: StageSettings) -> Stage:
    return Buggy()
