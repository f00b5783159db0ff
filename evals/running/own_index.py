"""Settings for an index that only the documents of one evaluation are in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import zip_longest
from pathlib import Path

from quarry.ids import digest
from quarry.settings import Settings, SourceSettings


def own_index(
    settings: Settings,
    folders: Sequence[Path],
    *,
    names: Sequence[str | None] = (),
    sources: Mapping[str, SourceSettings] | None = None,
) -> Settings:
    """The same models and search over an index in `data_dir/evals`; the caller's is not touched.

    Where it is depends on what decides its rows: documents, the `names` of their sources, embedder
    and chunking. So a second run only searches, and settings that differ in search alone share it.
    `sources` takes the place of the settings' own.
    """
    homes = [folder.resolve() for folder in folders]
    named = [f"{name or ''}={home}" for name, home in zip_longest(names, homes)]
    parts = settings.embedder.model_dump_json(), settings.chunking.model_dump_json()
    name = f"{homes[0].name}-{digest(*named, *parts, size=4)}"
    stores = settings.stores
    elasticsearch = stores.elasticsearch.model_copy(
        update={"index_prefix": f"{stores.elasticsearch.index_prefix}-eval-{name}".lower()}
    )
    milvus = stores.milvus.model_copy(
        update={"collection_prefix": f"{stores.milvus.collection_prefix}_eval_{name[-8:]}"}
    )
    return settings.model_copy(
        update={
            "data_dir": settings.data_dir / "evals" / name,
            "sources": settings.sources if sources is None else dict(sources),
            "stores": stores.model_copy(update={"elasticsearch": elasticsearch, "milvus": milvus}),
        }
    )
