"""What can be said of an embedder without loading it: its files are read, torch is not imported."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from quarry.errors import ModelError
from quarry.models.factory import FAKE, load_embedder
from quarry.models.location import folder_of, locate, weights_hash
from quarry.models.prompts import prompts_for
from quarry.settings import EmbedderSettings


def certain_fingerprint(settings: EmbedderSettings) -> dict[str, Any]:
    """The fields of its EmbedderFingerprint that are certain; the others are left out.

    Of a hub model that is not in the local cache these are its name and the prompts that are set.
    Raises ConfigError or ModelError for what cannot be a model.
    """
    if settings.model == FAKE:
        return asdict(load_embedder(settings).fingerprint)
    location = locate(settings.model)
    known: dict[str, Any] = {"model_id": location.model_id}
    own: Mapping[str, str] = {}
    folder = folder_of(location)
    if folder is not None:
        with suppress(ModelError):  # no weights: it will not load, which is said elsewhere
            known["weights_hash"] = weights_hash(location)
        own = _read(folder / "config_sentence_transformers.json").get("prompts") or {}
        limit = _read(folder / "sentence_bert_config.json").get("max_seq_length")
        if isinstance(limit, int):
            known["max_tokens"] = min(limit, settings.max_tokens or limit)
    prompts = prompts_for(
        location.model_id, own, settings.question_prompt, settings.document_prompt
    )
    if folder is not None or settings.question_prompt is not None:
        known["question_prompt"] = prompts.question
    if folder is not None or settings.document_prompt is not None:
        known["document_prompt"] = prompts.document
    return known


def _read(path: Path) -> dict[str, Any]:
    with suppress(OSError, ValueError):
        found = json.loads(path.read_text(encoding="utf-8"))
        return found if isinstance(found, dict) else {}
    return {}
