"""Learned fusion: one linear model over the signals that a search has anyway.

A question's candidates are described by a few numbers each, which are standardised within the
question (mean 0, standard deviation 1), so that scores of any scale and any question compare. The
model is a logistic regression on them; its weights can be read, and its file is small. It is
learned by `quarry tune fusion` and named by `retrieval.fusion_file`.
"""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from quarry.errors import ConfigError
from quarry.records import Candidate, Signals
from quarry.settings import Settings
from quarry.text import analyze

FORMAT = 1
FEATURES = (
    "dense",
    "lexical",
    "late",
    "document_best",
    "document_mean",
    "title",
    "section",
    "dense_rank",
    "lexical_rank",
    "late_rank",
)
"""Similarity of the passage, its BM25 and its rerank score; the best and the mean similarity of the
document's candidates; how much of the question title and section hold, rare words counting more;
and 1 / (60 + rank) by each of the three."""
_RANK_K = 60

Matrix = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """What fusion looks at of one candidate."""

    doc_id: str
    title: str
    section: str
    signals: Signals

    @classmethod
    def of(cls, candidate: Candidate) -> Item:
        return cls(
            doc_id=candidate.document.doc_id,
            title=candidate.document.title,
            section=" ".join(candidate.chunk.section),
            signals=candidate.signals,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Fusion:
    """A learned model: weights of the standardised features, by name."""

    weights: Mapping[str, float]
    learned_from: str = ""
    """Names of the sets, for people."""
    seen: tuple[str, ...] = ()
    """Fingerprints of the questions that it was learned from; none in files that lack them."""

    def scores(self, question: str, items: Sequence[Item]) -> list[float]:
        """One score an item, higher is better, comparable within the question only."""
        weights = np.array([self.weights[name] for name in FEATURES])
        return [float(score) for score in features(question, items) @ weights]


def features(question: str, items: Sequence[Item]) -> Matrix:
    """Standardised features, shape (items, features), float64."""
    if not items:
        return np.zeros((0, len(FEATURES)))
    dense = _filled([item.signals.dense_score for item in items])
    documents: dict[str, list[float]] = defaultdict(list)
    for item, score in zip(items, dense, strict=True):
        documents[item.doc_id].append(score)
    late = _filled([item.signals.rerank_score for item in items])
    by_late = sorted(range(len(items)), key=lambda position: -late[position])
    late_rank = {position: rank for rank, position in enumerate(by_late, start=1)}
    columns = [
        dense,
        [item.signals.lexical_score or 0.0 for item in items],
        late,
        [max(documents[item.doc_id]) for item in items],
        [sum(documents[item.doc_id]) / len(documents[item.doc_id]) for item in items],
        _overlap(question, [item.title for item in items]),
        _overlap(question, [item.section for item in items]),
        [_reciprocal(item.signals.dense_rank) for item in items],
        [_reciprocal(item.signals.lexical_rank) for item in items],
        [_reciprocal(late_rank[position]) for position in range(len(items))],
    ]
    return _standardised(np.array(columns, dtype=np.float64).T)


def fusion_of(settings: Settings) -> Fusion | None:
    """What the settings name, if anything. Raises ConfigError as load_fusion."""
    weights = settings.retrieval.fusion_file
    if weights and settings.reranker.kind == "none":
        raise ConfigError("retrieval.fusion_file weighs rerank scores; set reranker.kind as well.")
    return load_fusion(weights) if weights else None


def load_fusion(path: Path) -> Fusion:
    """Raises ConfigError for a file that `quarry tune fusion` did not write."""
    try:
        raw = json.loads(path.read_text(encoding="utf-8"))
        weights = {name: float(raw["weights"][name]) for name in FEATURES}
        readable = raw["format"] == FORMAT and len(raw["weights"]) == len(FEATURES)
        learned_from = str(raw["learned_from"])
        seen = tuple(map(str, raw.get("seen", ())))
    except OSError as error:
        raise ConfigError(
            f"The fusion file {path} cannot be read; check retrieval.fusion_file."
        ) from error
    except (ValueError, KeyError, TypeError) as error:
        raise ConfigError(f"{path} is no fusion file; make one with quarry tune fusion.") from error
    if not readable or not all(map(math.isfinite, weights.values())):
        raise ConfigError(f"{path} is of another version; make it anew with quarry tune fusion.")
    return Fusion(weights=weights, learned_from=learned_from, seen=seen)


def save_fusion(fusion: Fusion, path: Path, measured: Mapping[str, float]) -> None:
    """Writes the file; `measured` is for people and not read again."""
    body = {
        "format": FORMAT,
        "learned_from": fusion.learned_from,
        "weights": {name: round(fusion.weights[name], 6) for name in FEATURES},
        "measured": dict(measured),
        "seen": list(fusion.seen),
    }
    path.write_text(json.dumps(body, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")


def _filled(scores: Sequence[float | None]) -> list[float]:
    """Scores with the lowest one in place of those that are not known."""
    lowest = min((score for score in scores if score is not None), default=0.0)
    return [lowest if score is None else score for score in scores]


def _reciprocal(rank: int | None) -> float:
    return 1.0 / (_RANK_K + rank) if rank else 0.0


def _overlap(question: str, texts: Sequence[str]) -> list[float]:
    """Weight of the question's words that each text holds; rare among the texts counts more."""
    wanted = set(analyze(question))
    held = [wanted.intersection(analyze(text)) for text in texts]
    total = len(texts)
    spread = {word: sum(word in each for each in held) for word in wanted}
    weight = {word: math.log1p((total - n + 0.5) / (n + 0.5)) for word, n in spread.items()}
    return [sum(weight[word] for word in each) for each in held]


def _standardised(columns: Matrix) -> Matrix:
    deviation = columns.std(axis=0)
    deviation[deviation < 1e-12] = 1.0
    standardised: Matrix = (columns - columns.mean(axis=0)) / deviation
    return standardised
