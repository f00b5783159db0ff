"""Reranking by a cross-encoder: a model that reads question and passage together."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import structlog
import torch

from quarry.errors import ConfigError, ModelError
from quarry.models.loading import loading, pick_device
from quarry.models.location import locate
from quarry.settings import RerankerSettings

_log = structlog.get_logger(__name__)

_BATCH = 32


class CrossEncoderReranker:
    """A hub id or a folder. Its scores decide alone. Safe to call from several threads.

    Scores are the model's raw logits, whatever activation its configuration asks for: a sigmoid
    keeps the order but rounds confident passages to the same value.
    """

    def __init__(self, settings: RerankerSettings, device: str = "auto") -> None:
        from sentence_transformers import CrossEncoder

        location = locate(settings.model)
        with loading(location):
            self._model = CrossEncoder(
                location.source,
                device=pick_device(device),
                local_files_only=location.folder is not None,
            )
        if self._model.num_labels != 1:
            raise ConfigError(
                f"The cross-encoder {location.model_id} gives {self._model.num_labels} scores a "
                "passage; use one that gives a single relevance score."
            )
        self._name = f"cross_encoder:{location.model_id}"
        _log.info("reranker_loaded", model=location.model_id, device=str(self._model.device))

    @property
    def name(self) -> str:
        return self._name

    @property
    def fuses(self) -> bool:
        return False

    def score(self, question: str, passages: Sequence[str]) -> list[float]:
        """Logits. Raises ModelError if the model fails or a score is not finite."""
        if not passages:
            return []
        try:
            logits = self._model.predict(
                [(question, passage) for passage in passages],
                batch_size=_BATCH,
                activation_fn=torch.nn.Identity(),
                show_progress_bar=False,
            )
        except RuntimeError as error:
            raise ModelError(f"The reranker failed: {type(error).__name__}.") from error
        scores = np.asarray(logits, dtype=np.float64).reshape(-1)
        if not np.isfinite(scores).all():
            raise ModelError("The reranker gave scores that are not finite; use another model.")
        return [float(score) for score in scores]
