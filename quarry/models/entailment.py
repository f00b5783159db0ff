"""Entailment by a cross-encoder that was trained on natural language inference (NLI)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import structlog
import torch

from quarry.errors import ConfigError, ModelError
from quarry.models.loading import loading, pick_device
from quarry.models.location import locate
from quarry.settings_answers import EntailmentSettings

_log = structlog.get_logger(__name__)

_BATCH = 16
_CLASS = "entailment"


class CrossEncoderEntailment:
    """A hub id or a folder. Its configuration must name the class `entailment`.

    A passage longer than the model's limit is cut at its end. Safe to call from several threads.
    """

    def __init__(self, settings: EntailmentSettings, device: str = "auto") -> None:
        from sentence_transformers import CrossEncoder

        location = locate(settings.model)
        with loading(location):
            self._model = CrossEncoder(
                location.source,
                device=pick_device(device),
                local_files_only=location.folder is not None,
            )
        named = {name.lower(): number for number, name in self._model.config.id2label.items()}
        if _CLASS not in named:
            raise ConfigError(
                f"The model {location.model_id} has no class '{_CLASS}'; set "
                "answers.entailment.model to one for natural language inference."
            )
        self._class = int(named[_CLASS])
        self._name = f"cross_encoder:{location.model_id}"
        _log.info("entailment_loaded", model=location.model_id, device=str(self._model.device))

    @property
    def name(self) -> str:
        return self._name

    def entails(self, pairs: Sequence[tuple[str, str]]) -> list[float]:
        """Probabilities (softmax over the classes). Raises ModelError if the model fails."""
        if not pairs:
            return []
        try:
            probabilities = self._model.predict(
                list(pairs),
                batch_size=_BATCH,
                activation_fn=torch.nn.Softmax(dim=-1),
                show_progress_bar=False,
            )
        except RuntimeError as error:
            raise ModelError(f"The entailment model failed: {type(error).__name__}.") from error
        entailed = np.asarray(probabilities, dtype=np.float64)[:, self._class]
        if not np.isfinite(entailed).all():
            raise ModelError(
                "The entailment model gave values that are not finite; use another model."
            )
        return [float(value) for value in entailed]
