"""Opening what a run writes to, after a check that it was built as the settings now say."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from quarry.errors import ConfigError, ModelError
from quarry.generations import check_fingerprint, fingerprint_of, open_live
from quarry.ids import digest
from quarry.models.factory import FAKE, load_embedder
from quarry.models.location import locate, weights_hash
from quarry.ports import Catalog
from quarry.records import EmbedderFingerprint, Generation
from quarry.settings import EmbedderSettings, Settings
from quarry.stores.factory import Stores, open_catalog, open_registry, open_stores

FINGERPRINT_FILE = "embedder.json"
_SPEED_ONLY = {"device", "dtype", "batch_tokens"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Index:
    generation: str
    stores: Stores


def need_lasting_stores(settings: Settings) -> None:
    """Raises ConfigError for stores that live in one process: the workers are others."""
    if "memory" in (settings.stores.text, settings.stores.vectors):
        raise ConfigError(
            "Stores in memory cannot be ingested into; set stores.text and stores.vectors."
        )


@contextmanager
def live_catalog(settings: Settings) -> Iterator[Catalog | None]:
    """The catalog that readers see, without vectors and models; None if there is none yet.

    Raises FingerprintMismatch if it was built otherwise than the settings say now.
    """
    live = _live(settings)
    if live is None:
        yield None
        return
    fingerprint = embedder_fingerprint(settings)
    check_fingerprint(live, fingerprint_of(fingerprint, settings), settings)
    with closing(open_catalog(settings, live.name)) as catalog:
        yield catalog


@contextmanager
def live_stores(settings: Settings) -> Iterator[Stores | None]:
    """The live generation's stores, without a check and without a server for their vectors: for who
    writes to the catalog alone. None if there is no generation yet. Raises StoreError.
    """
    live = _live(settings)
    if live is None:
        yield None
        return
    with closing(open_stores(settings, live.name)) as stores:
        yield stores


@contextmanager
def existing_index(settings: Settings) -> Iterator[Index]:
    """The live generation, for who embeds nothing. Raises UsageError, StoreError."""
    generation, stores = open_live(settings, None)
    with closing(stores):
        stores.need()
        yield Index(generation=generation.name, stores=stores)


@contextmanager
def writable_index(settings: Settings) -> Iterator[Index]:
    """The live generation, made if there is none. Raises ConfigError, ModelError, StoreError.

    Stores that were lost are not made anew: a run that reads only what has changed would leave an
    index that is silent on all else.
    """
    fingerprint = embedder_fingerprint(settings)
    if settings.chunking.max_tokens > fingerprint.max_tokens:
        raise ConfigError(
            f"The embedder reads {fingerprint.max_tokens} tokens; "
            "set chunking.max_tokens to at most that."
        )
    generation, stores = open_live(settings, _Named(fingerprint))
    with closing(stores):
        stores.need()
        yield Index(generation=generation.name, stores=stores)


@dataclass(frozen=True, slots=True)
class _Named:
    fingerprint: EmbedderFingerprint


def embedder_fingerprint(settings: Settings) -> EmbedderFingerprint:
    """Of the settings' embedder; it is loaded only if its files or settings are new here.

    Loading takes seconds and memory that a run without new documents does not need.
    """
    if settings.embedder.model == FAKE:
        return load_embedder(settings.embedder).fingerprint
    path = settings.data_dir / FINGERPRINT_FILE
    key = _key(settings.embedder)
    known = _read(path)
    if key and known.get("key") == key:
        return EmbedderFingerprint(**known["fingerprint"])
    fingerprint = load_embedder(settings.embedder).fingerprint
    key = _key(settings.embedder)
    path.write_text(json.dumps({"key": key, "fingerprint": asdict(fingerprint)}), encoding="utf-8")
    return fingerprint


def _key(settings: EmbedderSettings) -> str:
    """Of the files and of the settings that shape vectors; empty: the files are not here yet."""
    try:
        weights = weights_hash(locate(settings.model))
    except (OSError, ModelError):
        return ""
    return digest(weights, settings.model_dump_json(exclude=_SPEED_ONLY))


def _read(path: Path) -> dict[str, Any]:
    try:
        return dict(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError):
        return {}


def _live(settings: Settings) -> Generation | None:
    with closing(open_registry(settings)) as registry:
        return registry.live()
