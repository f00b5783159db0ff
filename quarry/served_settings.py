"""Tells whether a running server has the settings that somebody else has, without showing them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import reduce
from typing import Any

from quarry.ids import digest
from quarry.settings import Settings
from quarry.settings_file import is_secret, key_paths

_SHAPING = frozenset(
    {
        "stores",
        "embedder",
        "chunking",
        "reranker",
        "generator",
        "retrieval",
        "answers",
        "access",
    }
)
"""Sections that shape what is found and answered."""
_INDEX = frozenset(
    {
        "stores.text",
        "stores.vectors",
        "stores.elasticsearch.url",
        "stores.elasticsearch.index_prefix",
        "stores.milvus.uri",
        "stores.milvus.collection_prefix",
        "embedder.model",
        "embedder.question_prompt",
        "embedder.document_prompt",
        "embedder.max_tokens",
        "chunking.max_tokens",
        "chunking.min_tokens",
    }
)
"""Keys that name another index, or one that was built otherwise."""


def marks(settings: Settings) -> dict[str, str]:
    """A digest of each value that shapes answers, by key; secrets have none."""
    values = settings.model_dump(mode="json", include=set(_SHAPING))
    return {
        key: digest(json.dumps(_at(values, key)))
        for key, info in key_paths(Settings)
        if key.partition(".")[0] in _SHAPING and not is_secret(info)
    }


def unlike(settings: Settings, published: Mapping[str, str]) -> tuple[list[str], list[str]]:
    """Keys of other values than a server's: those of the index, and the others."""
    own = marks(settings)
    keys = [key for key in own if key in published and own[key] != published[key]]
    return [key for key in keys if key in _INDEX], [key for key in keys if key not in _INDEX]


def _at(values: Mapping[str, Any], key: str) -> Any:
    return reduce(lambda section, name: section[name], key.split("."), values)
