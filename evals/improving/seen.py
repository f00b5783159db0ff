"""Which questions settings were learned from, so that grading on them is always said.

A question is known by a fingerprint of its text, whatever its set is called and wherever it lies.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evals.datasets.questions import Case
from quarry.calibration import load_calibration
from quarry.fusion import load_fusion
from quarry.ids import digest
from quarry.settings import Settings
from quarry.text import folded


@dataclass(frozen=True, slots=True, kw_only=True)
class Lesson:
    """Something in the settings that questions have taught."""

    what: str
    source: str
    """Names of the sets, as far as they are known."""
    seen: Collection[str]
    """Fingerprints of the questions; none where the file is of a time that did not keep them."""


def fingerprint(question: str, earlier: Iterable[str] = ()) -> str:
    """Of a question with what was said before it."""
    return digest(folded(question), *map(folded, earlier), size=6)


def fingerprints(cases: Iterable[Case]) -> tuple[str, ...]:
    """Of each case, in an order that says nothing."""
    found = {fingerprint(each.question, (t.content for t in each.conversation)) for each in cases}
    return tuple(sorted(found))


def notes(settings: Sequence[Settings], asked: Collection[str]) -> list[str]:
    """A sentence for each part of the settings that saw some of the questions, given by their
    fingerprints. Raises ConfigError for a file of the settings that cannot be used."""
    lessons = [lesson for each in settings for lesson in _lessons(each)]
    told = (_note(lesson, frozenset(asked)) for lesson in lessons)
    return list(dict.fromkeys(note for note in told if note))


def _note(lesson: Lesson, asked: frozenset[str]) -> str:
    source = f" from {lesson.source}" if lesson.source else ""
    if not lesson.seen:
        return (
            f"{lesson.what} was learned{source} and does not say from which questions; make it "
            "anew to be told whether these are among them."
        )
    both = len(asked.intersection(lesson.seen))
    if not both:
        return ""
    return (
        f"{lesson.what} was learned{source}, from {both} of these {len(asked)} questions: figures "
        "over them are of seen questions."
    )


def _lessons(settings: Settings) -> Iterator[Lesson]:
    retrieval = settings.retrieval
    if retrieval.fusion_file:
        fusion = load_fusion(retrieval.fusion_file)
        yield Lesson(what="retrieval.fusion_file", source=fusion.learned_from, seen=fusion.seen)
    calibration = load_calibration(settings)
    if calibration:
        yield Lesson(what="retrieval.select.calibration_file", source="", seen=calibration.seen)
    yield from _tuned(settings)


def remember(settings: Settings, changed: Mapping[str, Any], cases: Iterable[Case]) -> None:
    """Keeps beside the indexes of evaluations which cases these values were picked on."""
    path = _records(settings)
    path.parent.mkdir(parents=True, exist_ok=True)
    record = {"changed": dict(changed), "seen": fingerprints(cases)}
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(record, default=str) + "\n")


def _tuned(settings: Settings) -> Iterator[Lesson]:
    """Values that `remember` kept, where all of them are in force."""
    path = _records(settings)
    if not path.is_file():
        return
    in_force = settings.model_dump(mode="json")
    seen: dict[str, set[str]] = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        record = json.loads(line)
        changed = record["changed"]
        if all(_value(in_force, name) == value for name, value in changed.items()):
            seen.setdefault(", ".join(changed), set()).update(record["seen"])
    for names, questions in seen.items():
        yield Lesson(what=names, source="", seen=questions)


def _value(raw: Any, name: str) -> Any:
    for key in name.split("."):
        raw = raw.get(key) if isinstance(raw, dict) else None
    return raw


def _records(settings: Settings) -> Path:
    return settings.data_dir / "evals" / "tuned.jsonl"
