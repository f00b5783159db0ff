"""Tells how an answer came about: what each stage kept and left out, and where evidence was lost.

It reads what the stages of one request gave (`Run.results`) and runs nothing itself, so that an
explanation is of the path that serves people. `quarry explain` prints it; measuring answers uses
it to name the stage that lost an expected passage.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from quarry.access.check import Verdict
from quarry.explanation import (
    LOST_ORDER,
    Expectation,
    Explanation,
    Item,
    LeftOut,
    Lost,
    Place,
    Stage,
)
from quarry.records import Answer, AnswerStatus, Candidate, Prompt, StageRecord
from quarry.text import folded, holds_any
from serve.answering.evidence import NO_ROOM, Chosen
from serve.explaining.locate import Held, Located
from serve.finding.retrieve import Found
from serve.finding.rrf import ranks
from serve.finding.select import Selected
from serve.results import Examined
from serve.stage import Drop

NOT_FOUND, SPLIT, NOT_RETRIEVED = "not_found", "split", "not_retrieved"
BELOW_DEPTH, BELOW_SOURCES = "below_depth", "below_sources"
LEFT_OUT, NOT_CITED, REFUSED, CITED = "left_out", "not_cited", "refused", "cited"


def explain(examined: Examined, results: Mapping[str, Any], answer: Answer) -> Explanation:
    """The explanation of one answer.

    `results`: what all stages gave, those of `examined` and those that wrote the answer.
    """
    steps = _Steps.of(results, answer)
    prompt: Prompt | None = results.get("prompt")
    return Explanation(
        question=examined.gathered.question,
        stages=tuple(_stage(record, steps) for record in answer.trace),
        passages=steps.passages(held for each in examined.located for held in each.held),
        prompt=prompt.messages if prompt and prompt.evidence else (),
        answer=answer,
        expected=tuple(_expectation(each, steps) for each in examined.located),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Steps:
    """What the stages gave, with the ranks that are asked for again and again."""

    found: Found
    fused: Mapping[str, Candidate]
    """By chunk_id, best first; so are the next two."""
    reranked: Mapping[str, Candidate] | None
    selected: Selected | None
    depth: int
    """Candidates that were reranked; 0 where none were."""
    chosen: Chosen
    sources: int
    """Sources that an answer may have."""
    prompt: Prompt | None
    answer: Answer

    @classmethod
    def of(cls, results: Mapping[str, Any], answer: Answer) -> _Steps:
        details = {record.stage: record.detail for record in answer.trace}
        rerank = details.get("rerank", {})
        ran = "rerank" in results and not rerank.get("skipped")
        return cls(
            found=results["catalog"],
            fused=_by_id(results["fuse"]),
            reranked=_by_id(results["rerank"]) if ran else None,
            selected=results.get("select"),
            depth=rerank["depth"] if ran else 0,
            chosen=results["evidence"],
            sources=details["evidence"]["sources"],
            prompt=results.get("prompt"),
            answer=answer,
        )

    @property
    def selection_dropped(self) -> Sequence[Drop]:
        return self.selected.dropped if self.selected else ()

    @property
    def ranked(self) -> Mapping[str, Candidate]:
        """What the last stage that scores gave."""
        return self.fused if self.reranked is None else self.reranked

    @property
    def final(self) -> Mapping[str, Candidate]:
        """What the evidence was chosen from."""
        return self.ranked if self.selected is None else _by_id(self.selected.kept)

    def passages(self, held: Iterable[Held]) -> dict[str, Candidate]:
        """Every passage that the explanation names, as the last stage that had it saw it."""
        dropped = _by_id(
            drop.candidate
            for drops in (self.found.dropped, self.selection_dropped, self.chosen.dropped)
            for drop in drops
        )
        placed = {each.candidate.chunk.chunk_id: each.candidate for each in held}
        read = {
            each.chunk.chunk_id: Candidate(chunk=each.chunk, document=each.document)
            for each in self.chosen.evidence
        }
        return {**placed, **dropped, **read, **self.fused, **self.ranked}


def _by_id(candidates: Iterable[Candidate]) -> dict[str, Candidate]:
    return {candidate.chunk.chunk_id: candidate for candidate in candidates}


# ------------------------------------------------------------------------------------- stages


def _stage(record: StageRecord, steps: _Steps) -> Stage:
    shown = _SHOWN.get(record.stage)
    items, left_out = shown(steps) if shown else ((), ())
    return Stage(record=record, items=tuple(items), left_out=tuple(left_out))


_Shown = tuple[Iterable[Item], Iterable[LeftOut]]


def _dense(steps: _Steps) -> _Shown:
    return _scored(steps.found.dense), ()


def _lexical(steps: _Steps) -> _Shown:
    return _scored(steps.found.lexical), ()


def _catalog(steps: _Steps) -> _Shown:
    return (), _left_out(steps.found.dropped)


def _fuse(steps: _Steps) -> _Shown:
    return _scored({key: each.score for key, each in steps.fused.items()}), ()


def _rerank(steps: _Steps) -> _Shown:
    before = ranks(steps.fused)
    head = list((steps.reranked or {}).items())[: steps.depth]
    return (
        Item(rank=rank, chunk_id=key, score=each.signals.rerank_score, before=before[key])
        for rank, (key, each) in enumerate(head, start=1)
    ), ()


def _select(steps: _Steps) -> _Shown:
    before = ranks(steps.ranked)
    items = (
        Item(rank=rank, chunk_id=key, score=each.score, before=before[key])
        for rank, (key, each) in enumerate(steps.final.items(), start=1)
    )
    return items, _left_out(steps.selection_dropped)


def _evidence(steps: _Steps) -> _Shown:
    before = ranks(steps.final)
    items = (
        Item(
            rank=rank,
            chunk_id=each.chunk.chunk_id,
            score=each.score,
            before=before.get(each.chunk.chunk_id),
            label=each.label,
            tokens=each.tokens,
        )
        for rank, each in enumerate(steps.chosen.evidence, start=1)
    )
    return items, _left_out(steps.chosen.dropped)


def _prompt(steps: _Steps) -> _Shown:
    sent = steps.prompt.evidence if steps.prompt else ()
    items = (
        Item(
            rank=rank,
            chunk_id=each.chunk.chunk_id,
            score=None,
            label=each.label,
            tokens=each.tokens,
        )
        for rank, each in enumerate(sent, start=1)
    )
    dropped = steps.chosen.evidence[len(sent) :]
    return items, (LeftOut(chunk_id=each.chunk.chunk_id, reason=NO_ROOM) for each in dropped)


_SHOWN: Mapping[str, Callable[[_Steps], _Shown]] = {
    "dense": _dense,
    "lexical": _lexical,
    "catalog": _catalog,
    "fuse": _fuse,
    "rerank": _rerank,
    "select": _select,
    "evidence": _evidence,
    "prompt": _prompt,
}


def _scored(scores: Mapping[str, float]) -> Iterable[Item]:
    return (
        Item(rank=rank, chunk_id=key, score=score)
        for rank, (key, score) in enumerate(scores.items(), start=1)
    )


def _left_out(drops: Iterable[Drop]) -> Iterable[LeftOut]:
    return (
        LeftOut(chunk_id=drop.candidate.chunk.chunk_id, reason=drop.reason, beside=drop.beside)
        for drop in drops
    )


# ------------------------------------------------------------------------------- expectations


def _expectation(located: Located, steps: _Steps) -> Expectation:
    """The verdict on one piece of evidence: that of the place that came furthest."""
    labels = _labels_that_say(located.phrases, steps)
    places = [_place(held, steps) for held in located.held]
    if labels:
        lost, reason = _after_evidence(labels, steps)
    elif places:
        best = max(places, key=_distance)
        lost, reason = best.lost, best.reason
    elif located.split:
        lost, reason = Lost.CHUNKS, SPLIT
    else:
        lost, reason = Lost.DOCUMENTS, NOT_FOUND
    return Expectation(
        phrases=located.phrases,
        lost=lost,
        reason=reason,
        places=tuple(sorted(places, key=_distance, reverse=True)),
        whole=located.whole,
    )


def _labels_that_say(phrases: Sequence[str], steps: _Steps) -> list[str]:
    """Sources whose text holds a phrase, be it in a neighbour that was added."""
    wanted = [phrase for phrase in map(folded, phrases) if phrase]
    return [
        each.label
        for each in steps.chosen.evidence
        if holds_any(f"{each.chunk.header}\n{each.text}", wanted)
    ]


def _place(held: Held, steps: _Steps) -> Place:
    key = held.candidate.chunk.chunk_id
    label = next((e.label for e in steps.chosen.evidence if e.chunk.chunk_id == key), "")
    lost, reason = _after_evidence([label], steps) if label else _before_evidence(held, steps)
    return Place(
        chunk_id=key,
        lost=lost,
        reason=reason,
        dense_rank=ranks(steps.found.dense).get(key),
        lexical_rank=ranks(steps.found.lexical).get(key),
        fused_rank=ranks(steps.fused).get(key),
        final_rank=ranks(steps.final).get(key),
        label=label,
    )


def _before_evidence(held: Held, steps: _Steps) -> tuple[Lost, str]:
    key = held.candidate.chunk.chunk_id
    if held.verdict is not Verdict.ADMITTED:
        return Lost.CATALOG, held.verdict.value
    for stage, dropped in (
        (Lost.SELECT, steps.selection_dropped),
        (Lost.EVIDENCE, steps.chosen.dropped),
    ):
        for drop in dropped:
            if drop.candidate.chunk.chunk_id == key:
                return stage, drop.reason
    if key not in steps.fused:  # last: where everything is read, it need not have been found
        return Lost.CANDIDATES, NOT_RETRIEVED
    if ranks(steps.ranked)[key] <= steps.sources < ranks(steps.final)[key]:
        return Lost.SELECT, BELOW_SOURCES
    if steps.reranked is not None:
        scored = ranks(steps.fused)[key] <= steps.depth
        return (Lost.RERANK, BELOW_SOURCES) if scored else (Lost.FUSE, BELOW_DEPTH)
    return Lost.FUSE, BELOW_SOURCES


def _after_evidence(labels: Sequence[str], steps: _Steps) -> tuple[Lost | None, str]:
    """What became of sources that were chosen."""
    sent = {each.label for each in steps.prompt.evidence} if steps.prompt else set()
    if not sent.intersection(labels):
        return Lost.PROMPT, LEFT_OUT
    if steps.answer.status is AnswerStatus.REFUSED:
        return Lost.ANSWER, REFUSED
    cited = {citation.label for citation in steps.answer.citations}
    return (None, CITED) if cited.intersection(labels) else (Lost.ANSWER, NOT_CITED)


def _distance(place: Place) -> int:
    """How far a place came; further is more."""
    return len(LOST_ORDER) if place.lost is None else LOST_ORDER.index(place.lost)
