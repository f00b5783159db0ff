"""Files that options of retrieval need, read once when a searcher is opened."""

from __future__ import annotations

from dataclasses import dataclass

from quarry.calibration import Calibration, load_calibration
from quarry.fusion import Fusion, fusion_of
from quarry.glossary import Glossary, glossary_of
from quarry.settings import Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class Extras:
    calibration: Calibration | None = None
    glossary: Glossary | None = None
    fusion: Fusion | None = None


def load_extras(settings: Settings) -> Extras:
    """Raises ConfigError for a file that cannot be used."""
    return Extras(
        calibration=load_calibration(settings),
        glossary=glossary_of(settings),
        fusion=fusion_of(settings),
    )
