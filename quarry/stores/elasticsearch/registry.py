"""The registry of generations as one Elasticsearch document."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from typing import Any

import elasticsearch as es

from quarry.errors import Conflict
from quarry.records import Generation
from quarry.settings_stores import ElasticsearchSettings
from quarry.stores import codec
from quarry.stores.elasticsearch import mappings
from quarry.stores.elasticsearch.client import Cluster
from quarry.stores.elasticsearch.failures import is_missing

KEY = "registry"


@dataclass(frozen=True)
class _State:
    live: str
    generations: dict[str, dict[str, Any]]
    mark: str
    """Whose write this was."""
    guard: dict[str, int | str]
    """Arguments that make the next write a compare-and-set against what was read."""


class ElasticsearchRegistry:
    """Registry: every change is a compare-and-set of the one document."""

    def __init__(self, settings: ElasticsearchSettings) -> None:
        self._cluster = Cluster(settings)
        self._index = f"{settings.index_prefix}-registry"

    def generations(self) -> list[Generation]:
        rows = self._read().generations
        return [codec.generation_from_json(rows[name]) for name in sorted(rows)]

    def live(self) -> Generation | None:
        state = self._read()
        return codec.generation_from_json(state.generations[state.live]) if state.live else None

    def create(self, generation: Generation) -> None:
        state = self._read()
        if generation.name in state.generations:
            raise Conflict(f"There is a generation {generation.name} already.")
        rows = {**state.generations, generation.name: codec.generation_to_json(generation)}
        self._write(state, live=state.live, generations=rows)

    def switch(self, name: str, *, expected: str) -> None:
        state = self._read()
        if state.live != expected or name not in state.generations:
            raise Conflict(f"Generation {state.live or 'none'} is live, not {expected or 'none'}.")
        self._write(state, live=name, generations=state.generations)

    def remove(self, name: str) -> None:
        state = self._read()
        if state.live == name:
            raise Conflict(f"Generation {name} is live; switch to another one first.")
        if name not in state.generations:
            return
        rows = {key: row for key, row in state.generations.items() if key != name}
        self._write(state, live=state.live, generations=rows)

    def close(self) -> None:
        self._cluster.close()

    def _read(self) -> _State:
        def get(client: es.Elasticsearch) -> Any:
            try:
                return client.get(index=self._index, id=KEY)
            except es.NotFoundError as error:
                if not is_missing(error):
                    raise
                return None

        found = self._cluster.call(get)
        if found is None:
            return _State(live="", generations={}, mark="", guard={"op_type": "create"})
        guard = {"if_seq_no": found["_seq_no"], "if_primary_term": found["_primary_term"]}
        source = found["_source"]
        return _State(**source, guard=guard)

    def _write(self, state: _State, *, live: str, generations: dict[str, Any]) -> None:
        if not state.mark:  # nothing was ever written: looking creates no index
            self._cluster.ensure(
                self._index, mappings.body(mappings.REGISTRY, self._cluster.settings)
            )
        mark = secrets.token_hex(8)
        document = {"live": live, "generations": generations, "mark": mark}
        try:
            self._cluster.call(
                lambda c: c.index(index=self._index, id=KEY, document=document, **state.guard)
            )
        except Conflict:
            # A write that timed out may have arrived: the retry then meets its own work.
            if self._read().mark != mark:
                raise Conflict("The registry was changed by somebody else; try again.") from None
