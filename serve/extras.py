"""Files that options of retrieval need, read once when a searcher is opened."""

from __future__ import annotations

from dataclasses import dataclass

from quarry.calibration import Calibration, load_calibration
from quarry.errors import ConfigError
from quarry.fusion import Fusion, load_fusion
from quarry.glossary import Glossary, load_glossary
from quarry.settings import Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class Extras:
    calibration: Calibration | None = None
    glossary: Glossary | None = None
    fusion: Fusion | None = None


def load_extras(settings: Settings) -> Extras:
    """Raises ConfigError for a file that cannot be used."""
    path, weights = settings.retrieval.rewrite.glossary_file, settings.retrieval.fusion_file
    if weights and settings.reranker.kind == "none":
        raise ConfigError("retrieval.fusion_file weighs rerank scores; set reranker.kind as well.")
    return Extras(
        calibration=load_calibration(settings),
        glossary=load_glossary(path) if path else None,
        fusion=load_fusion(weights) if weights else None,
    )
