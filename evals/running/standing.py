"""How an index stands to a set before it is asked: outdated cases, and documents it lacks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from evals.datasets.questions import Case
from evals.running.system import System
from quarry.records import Document

FROM_OUTSIDE = (
    "Asked over HTTP: nobody looked whether cases are outdated, or whether what was shown may be "
    "read by who asked."
)
_SHOWN = 5
"""Documents that a sentence names; the JSON of a report has them all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    outdated: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Phrases that no current document holds, by case."""
    unread: Sequence[Document] | None = None
    """Documents that failed or are there in part only; None: nobody could look."""
    notes: Sequence[str] = ()

    @classmethod
    def of(cls, system: System, cases: Sequence[Case]) -> Standing:
        if system.inside is None:
            return cls(notes=[FROM_OUTSIDE])
        corpus = system.inside.corpus
        if not corpus.unread:
            return cls(outdated=corpus.outdated(cases), unread=())
        return cls(unread=corpus.unread, notes=_lacking(corpus.unread, corpus.unsaid(cases)))


def _lacking(unread: Sequence[Document], unsaid: Mapping[str, object]) -> list[str]:
    named = ", ".join(f"{each.uri} ({each.state.value})" for each in unread[:_SHOWN])
    more = f" and {len(unread) - _SHOWN} more" if len(unread) > _SHOWN else ""
    notes = [f"Documents that failed to be indexed whole: {named}{more}."]
    if unsaid:
        notes.append(
            "No document says what these cases need, but one that failed may; so they count, and "
            f"are not called outdated: {', '.join(unsaid)}."
        )
    return notes
