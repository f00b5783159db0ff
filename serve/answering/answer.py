"""Holds a written answer to its sources: citations that exist, sentences they bear, refusals."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import structlog

from quarry.errors import QuarryError
from quarry.records import AnswerStatus, Citation, Doubt, Evidence, StageRecord, StopReason
from quarry.text import REFUSAL
from serve.answering.citations import Sentence, cited_sentences, claims, quote
from serve.answering.generate import Written
from serve.answering.support import bears, denied, doubt, readable, says_something, states_fact
from serve.models import Entail
from serve.stage import Run, Stopwatch, told

_log = structlog.get_logger(__name__)

SHARE = 0.5
"""Of the time that is left, for an entailment model."""
_FOR_A_JUDGE = ("words", "language", "negation")
"""Doubts that a judge of the meaning may take away."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    status: AnswerStatus
    text: str
    citations: tuple[Citation, ...]
    doubts: tuple[Doubt, ...] = ()
    cut: bool = False


REFUSED = Checked(status=AnswerStatus.REFUSED, text=REFUSAL, citations=())


@dataclass(frozen=True, slots=True)
class Judge:
    """An entailment model, and the least probability that counts as support."""

    entail: Entail
    threshold: float


async def check(
    written: Written, evidence: Sequence[Evidence], *, judge: Judge | None, run: Run
) -> tuple[Checked, StageRecord]:
    """The answer with its citations and the sentences to doubt.

    Refused if the generator refused, cited nothing, or if no sentence that cites is borne by what
    it cites. Without the judge's word in time, words and numbers decide and `degraded` says so.
    """
    watch = Stopwatch("check")
    sources = {item.label: item for item in evidence}
    said = [] if written.text == REFUSAL else cited_sentences(written.text, written.marks)
    doubts = [_doubt(number, said, sources) for number in range(len(said))]
    judged = await _judged(said, doubts, sources, judge, run) if judge is not None else {}
    for number, entailed in judged.items():
        doubts[number] = None if entailed else denied(said[number])
    cut = written.last.stop is StopReason.LENGTH and written.text != REFUSAL
    checked = replace(REFUSED, cut=cut)
    if any(
        bool(sentence.labels) and (judged.get(number) or _borne(sentence, doubts[number], sources))
        for number, sentence in enumerate(said)
    ):
        checked = Checked(
            status=AnswerStatus.ANSWERED,
            text=written.text,
            citations=tuple(
                _citation(sources[label], supported) for label, supported in claims(said).items()
            ),
            doubts=tuple(found for found in doubts if found),
            cut=cut,
        )
    return checked, watch.done(
        len(checked.citations),
        unknown_citations=written.unknown_citations,
        removed_links=written.removed_links,
        refused=checked.status is AnswerStatus.REFUSED,
        doubts=dict(Counter(found.reason for found in checked.doubts)),
        cut=checked.cut,
    )


def section_path(section: Sequence[str]) -> str:
    """The section as shown to readers: headings from the outermost in."""
    return " > ".join(section)


def _borne(sentence: Sentence, found: Doubt | None, sources: Mapping[str, Evidence]) -> bool:
    """Whether a check found what it says in what it cites, or could not compare the languages."""
    if found is not None:
        return found.reason == "language"
    return bears(sentence, [sources[label] for label in sentence.labels])


def _doubt(number: int, said: Sequence[Sentence], sources: Mapping[str, Evidence]) -> Doubt | None:
    """Why a sentence may not be borne; one without a mark is by the next mark of its paragraph.

    What has a mark is checked in any form: a heading, a question or code may state a fact too.
    """
    sentence = said[number]
    if not sentence.labels and not states_fact(sentence):
        return None
    found = doubt(sentence, [sources[label] for label in _named(number, said)])
    return found if not found or sentence.labels else doubt(sentence, [])


def _named(number: int, said: Sequence[Sentence]) -> tuple[str, ...]:
    for later in said[number:]:
        if later.paragraph != said[number].paragraph:
            return ()
        if later.labels:
            return later.labels
    return ()


async def _judged(
    said: Sequence[Sentence],
    doubts: Sequence[Doubt | None],
    sources: Mapping[str, Evidence],
    judge: Judge,
    run: Run,
) -> dict[int, bool]:
    """By their place, whether the judge finds sentences entailed; numbers it cannot talk right."""
    asked = [
        number
        for number, found in enumerate(doubts)
        if (says_something(said[number]) if said[number].labels else states_fact(said[number]))
        and (found is None or found.reason in _FOR_A_JUDGE)
    ]
    pairs = [
        (readable(sources[label]), said[number].text)
        for number in asked
        for label in _named(number, said)
    ]
    if not pairs:
        return {}
    try:
        probabilities = iter(await run.deadline.within(judge.entail(pairs), SHARE))
    except (QuarryError, TimeoutError) as error:
        run.without("entailment")
        _log.warning("entailment_failed", **told(error))
        return {}
    return {
        number: max(next(probabilities) for _ in _named(number, said)) >= judge.threshold
        for number in asked
    }


def _citation(source: Evidence, supported: Sequence[str]) -> Citation:
    document = source.document
    return Citation(
        label=source.label,
        doc_id=document.doc_id,
        uri=document.uri,
        url=document.url,
        title=document.title,
        section=section_path(source.chunk.section),
        pages=source.chunk.pages,
        quote=quote(source, supported),
    )
