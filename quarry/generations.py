"""Generations: what an index was built with, and opening the live one or refusing to."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import asdict, replace
from datetime import UTC, datetime
from typing import Any, Protocol

from quarry.errors import Conflict, FingerprintMismatch, UsageError
from quarry.models.unloaded import certain_fingerprint
from quarry.ports import Registry
from quarry.records import EmbedderFingerprint, Generation
from quarry.settings import Settings
from quarry.stores.factory import Stores, open_registry, open_stores
from quarry.text import ANALYZER_VERSION, CLEANER_VERSION

SCHEMA_VERSION = 1
"""Raise it when rows of older generations can no longer be read."""

CHUNKER_VERSION = "2"
"""Raise it when `ingest.chunking` cuts or heads the same document otherwise."""

ATTEMPTS = 3
_SETTINGS = {"embedder.model_id": "embedder.model"}
"""Keys of a fingerprint that people set by another name."""


class Fingerprinted(Protocol):
    """An embedder, or whoever knows its fingerprint without its weights."""

    @property
    def fingerprint(self) -> EmbedderFingerprint: ...


def fingerprint_of(embedder: EmbedderFingerprint, settings: Settings) -> dict[str, Any]:
    """All that decides what the rows of a generation look like, as plain JSON values."""
    return _shaped(asdict(embedder), settings)


def _shaped(embedder: Mapping[str, Any], settings: Settings) -> dict[str, Any]:
    return {
        "embedder": dict(embedder),
        "chunking": settings.chunking.model_dump(mode="json"),
        "chunker": CHUNKER_VERSION,
        "cleaner": CLEANER_VERSION,
        "analyzer": ANALYZER_VERSION,
        "schema": SCHEMA_VERSION,
    }


def open_live(settings: Settings, embedder: Fingerprinted | None) -> tuple[Generation, Stores]:
    """The live generation and its stores; with an embedder, the first use creates `g1`.

    Commands that embed nothing pass None. Raises FingerprintMismatch if the generation was built
    with another embedder, chunker, cleaner or schema (invariant 4), UsageError if there is none and
    no embedder to create it with, StoreError.
    """
    with closing(open_registry(settings)) as registry:
        if embedder is None:
            live = registry.live()
            if live is None:
                raise UsageError("Nothing has been ingested yet; run: quarry ingest FOLDER")
            return live, _open(settings, live)
        return _open_or_create(registry, settings, embedder.fingerprint)


def _open_or_create(
    registry: Registry, settings: Settings, embedder: EmbedderFingerprint
) -> tuple[Generation, Stores]:
    wanted = fingerprint_of(embedder, settings)
    for _ in range(ATTEMPTS):
        live = registry.live()
        if live is not None:
            check_fingerprint(live, wanted, settings)
            return live, _open(settings, live)
        with suppress(Conflict):  # another process creates it at this moment: look again
            return _create(registry, settings, wanted, embedder.dimension)
    raise Conflict("Other processes keep creating generations; try again when they are done.")


def _open(settings: Settings, generation: Generation) -> Stores:
    dimension = dict(_flat(generation.fingerprint)).get("embedder.dimension", 0)
    return replace(open_stores(settings, generation.name), dimension=dimension)


def check_fingerprint(
    generation: Generation, wanted: Mapping[str, Any], settings: Settings
) -> None:
    """Raises FingerprintMismatch with all that differs, old → new."""
    changes = _differences(generation, wanted, {*_keys(generation.fingerprint), *_keys(wanted)})
    if changes:
        raise FingerprintMismatch(
            f"The index in {_place(settings)} was built with another {', '.join(changes)}; "
            f"{way_back(settings)}."
        )


def certain_differences(generation: Generation, settings: Settings) -> list[str]:
    """What can be told apart without loading a model, as `key (old → new)`.

    Raises ConfigError or ModelError for an embedder that cannot be one.
    """
    wanted = _shaped(certain_fingerprint(settings.embedder), settings)
    return _differences(generation, wanted, _keys(wanted))


def _differences(
    generation: Generation, wanted: Mapping[str, Any], keys: Collection[str]
) -> list[str]:
    held, new = dict(_flat(generation.fingerprint)), dict(_flat(wanted))
    unlike = sorted(key for key in keys if held.get(key) != new.get(key))
    if "embedder.model_id" in unlike:  # other weights, of course
        unlike = [key for key in unlike if key != "embedder.weights_hash"]
    return [
        f"{_SETTINGS.get(key, key)} ({held.get(key, 'unset')} → {new.get(key, 'unset')})"
        for key in unlike
    ]


def way_back(settings: Settings) -> str:
    """What somebody can do whose settings differ from the index."""
    other = "stores.elasticsearch.index_prefix and stores.milvus.collection_prefix"
    place = other if settings.stores.text == "elasticsearch" else "data_dir"
    return f"set that back, or ingest into another {place}"


def _create(
    registry: Registry, settings: Settings, fingerprint: dict[str, Any], dimension: int
) -> tuple[Generation, Stores]:
    """Creates stores before the generation goes live, so that a live one always has them."""
    known = registry.generations()  # once: what another process adds now must be a conflict
    generation = _unfinished(known, fingerprint)
    if generation is None:
        taken = {each.name for each in known}
        name = next(f"g{n}" for n in range(1, len(taken) + 2) if f"g{n}" not in taken)
        generation = Generation(name=name, fingerprint=fingerprint, created_at=datetime.now(UTC))
        registry.create(generation)
    stores = _open(settings, generation)
    stores.ensure(dimension)
    try:
        registry.switch(generation.name, expected="")
    except Conflict:
        stores.close()
        raise
    return generation, stores


def _unfinished(known: Sequence[Generation], fingerprint: Mapping[str, Any]) -> Generation | None:
    """A generation of this fingerprint that a run created and never made live."""
    return next((each for each in known if dict(each.fingerprint) == fingerprint), None)


def _keys(fingerprint: Mapping[str, Any]) -> list[str]:
    return [key for key, _ in _flat(fingerprint)]


def _flat(value: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, inner in value.items():
        if isinstance(inner, Mapping):
            yield from _flat(inner, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", inner


def _place(settings: Settings) -> str:
    if settings.stores.text == "elasticsearch":
        return settings.stores.elasticsearch.url
    return str(settings.data_dir)
