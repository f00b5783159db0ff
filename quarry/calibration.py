"""What the reranker's scores are worth: fitted on labelled questions, read by searches.

A score of a reranker means nothing by itself: one model's 0.4 is another one's sure hit. Only a
fit to questions with known evidence tells how probable evidence is at a score.
"""

from __future__ import annotations

import math
from datetime import datetime
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from quarry.errors import ConfigError
from quarry.settings import Settings
from quarry.settings_file import model_name

MADE_BY = "quarry calibrate QUESTIONS"


class Calibration(BaseModel):
    """A logistic curve over rerank scores, and what it was fitted on."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    reranker: str
    """`reranker_name` of the settings that it holds for."""
    slope: float
    intercept: float
    questions: int
    evidence: int
    """Passages of the fit that were evidence."""
    others: int
    """Passages of the fit that were none."""
    made_at: datetime
    seen: tuple[str, ...] = ()
    """Fingerprints of the questions of the fit; none in files that lack them."""

    def probability(self, score: float) -> float:
        """That a passage with this rerank score is evidence; from 0 to 1."""
        return 1.0 / (1.0 + math.exp(-max(-700.0, min(700.0, self.slope * score + self.intercept))))

    def save(self, path: Path) -> None:
        """Raises ConfigError if the file cannot be written."""
        try:
            path.write_text(self.model_dump_json(indent=2) + "\n", encoding="utf-8")
        except OSError as error:
            raise ConfigError(f"{path} cannot be written; name another file.") from error


def reranker_name(settings: Settings) -> str:
    """What must be the same for a calibration to hold: the kind and the model behind it."""
    model = model_name(settings.reranker.model or settings.embedder.model)
    return f"{settings.reranker.kind}:{model}"


def load_calibration(settings: Settings) -> Calibration | None:
    """The file that the settings name, where they set a threshold.

    Raises ConfigError if it cannot be read, is no calibration, or is one of another reranker.
    """
    select = settings.retrieval.select
    if select.threshold is None:
        return None
    path = select.calibration_file
    assert path is not None, "settings with a threshold name a calibration"
    try:
        calibration = Calibration.model_validate_json(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(
            f"{path} cannot be read; check retrieval.select.calibration_file, "
            f"or make one with: {MADE_BY}"
        ) from error
    except (UnicodeDecodeError, ValidationError):
        raise ConfigError(f"{path} is no calibration; make one with: {MADE_BY}") from None
    if calibration.reranker != reranker_name(settings):
        raise ConfigError(
            f"{path} was made for the reranker {calibration.reranker} and does not hold for "
            f"{reranker_name(settings)}; make one with: {MADE_BY}"
        )
    return calibration
