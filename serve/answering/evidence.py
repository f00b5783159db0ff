"""Chooses the sources of an answer: the best ones that differ, within the generator's budget."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Awaitable, Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

import structlog

from quarry.errors import QuarryError
from quarry.ports import TextStore
from quarry.records import Candidate, Chunk, Evidence, StageRecord
from serve.answering.prompt import rendered
from serve.models import CountTokens
from serve.stage import Drop, Run, Stopwatch, Threads, told

_log = structlog.get_logger(__name__)

SHORT_TOKENS = 120
"""A passage shorter than this (in the embedder's tokens) is read with its neighbours."""
SAME_SHINGLES = 0.9
"""Two passages that share this part of their three-word runs say the same."""
SOURCE_TOKENS = 40
"""Of the label, title and frame of a source, before they are counted."""
DECISIVE = frozenset("no not never none nor without except only unless".split())
"""Words that turn the meaning of the passage round."""
READ_SHARE = 0.2
"""Of the time that is left, for reading what stands beside one passage."""
SECTION_REACH = 20
"""Chunks to either side that a section is looked for in."""
JOIN = "\n\n"
NEAR_DUPLICATE = "near_duplicate"
NO_ROOM = "no_room"
_WORD = re.compile(r"\w+")

Shingles: TypeAlias = frozenset[tuple[str, ...]]
Around = Callable[[Chunk, int], Awaitable[list[Chunk]]]
"""Chunks of the same revision at most so many positions before and after, in order."""
Widen = Literal["none", "short", "neighbours", "section"]
_REACH: Mapping[Widen, int] = {"none": 0, "short": 1, "neighbours": 1, "section": SECTION_REACH}


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    sources: int
    """At most so many sources."""
    tokens: int
    """Generator tokens of all sources together."""
    count: CountTokens
    """Counts these."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """The sources of an answer, and what was left out though it ranked among them."""

    evidence: tuple[Evidence, ...]
    dropped: tuple[Drop, ...]


def around_of(text: TextStore, threads: Threads, run: Run) -> Around:
    """Reads from the text store; without an answer in time, passages are read alone."""

    async def around(chunk: Chunk, reach: int) -> list[Chunk]:
        ordinals = range(max(0, chunk.ordinal - reach), chunk.ordinal + reach + 1)
        reading = threads(text.chunks, chunk.doc_id, chunk.revision, ordinals)
        try:
            return await run.deadline.within(reading, READ_SHARE)
        except (QuarryError, TimeoutError) as error:
            run.without("neighbours")
            _log.warning("read_alone", **told(error))
            return []

    return around


async def choose(
    ranked: Sequence[Candidate],
    *,
    budget: Budget,
    around: Around,
    widen: Widen = "short",
) -> tuple[Chosen, StageRecord]:
    """Numbered evidence, best first, within the budget; the lowest sources are dropped first.

    Sources count as they stand in the prompt, with their heads. One that does not fit with what it
    is read with is tried alone. Gives nothing when there is no candidate, or when not even the
    first one fits.
    """
    watch = Stopwatch("evidence")
    distinct, dropped = _distinct(ranked, budget.sources)
    share = budget.tokens // max(1, len(distinct)) - SOURCE_TOKENS
    wide = await _widened(distinct, around, widen, share)
    sized = await _sized(distinct, wide, budget.count)
    evidence: list[Evidence] = []
    left = budget.tokens
    for alone, whole in sized:
        source = whole if whole.tokens <= left else alone
        if source.tokens > left:
            dropped += [Drop(each, NO_ROOM) for each in distinct[len(evidence) :]]
            break
        left -= source.tokens
        evidence.append(source)
    record = watch.done(
        len(evidence),
        near_duplicates=sum(drop.reason == NEAR_DUPLICATE for drop in dropped),
        tokens=budget.tokens - left,
        budget_tokens=budget.tokens,
        sources=budget.sources,
        widen=widen,
    )
    return Chosen(evidence=tuple(evidence), dropped=tuple(dropped)), record


async def _sized(
    candidates: Sequence[Candidate], wide: Sequence[Sequence[Chunk]], count: CountTokens
) -> Iterator[tuple[Evidence, Evidence]]:
    """Each candidate as a source alone, and with what it is read with; their tokens counted."""
    numbered = [(f"S{place}", each) for place, each in enumerate(candidates, start=1)]
    alone = [_evidence(label, each, [each.chunk]) for label, each in numbered]
    whole = [_evidence(*each, parts) for each, parts in zip(numbered, wide, strict=True)]
    # The end of line between two sources is counted with the first one.
    counts = iter(await count([f"{rendered(source)}\n" for source in (*alone, *whole)]))
    sized = [[replace(source, tokens=next(counts)) for source in each] for each in (alone, whole)]
    return zip(*sized, strict=True)


def _evidence(label: str, candidate: Candidate, parts: Sequence[Chunk]) -> Evidence:
    pages = [part.pages for part in parts if part.pages]
    span = (min(first for first, _ in pages), max(last for _, last in pages)) if pages else None
    return Evidence(
        label=label,
        chunk=replace(candidate.chunk, pages=span),
        document=candidate.document,
        text=JOIN.join(part.text for part in parts),
        score=candidate.score,
    )


async def _widened(
    chosen: Sequence[Candidate], around: Around, widen: Widen, share: int
) -> list[list[Chunk]]:
    """Each passage with those beside it of the same section, none of them used twice.

    Short passages take their neighbours whatever these cost. Everything wider may take `share`
    tokens a source, so that the best source does not push out the others.
    """
    used = {candidate.chunk.row_id for candidate in chosen}
    wide = []
    for candidate in chosen:
        chunk = candidate.chunk
        reach = 0 if widen == "short" and chunk.tokens >= SHORT_TOKENS else _REACH[widen]
        beside = {
            other.ordinal: other
            for other in (await around(chunk, reach) if reach else ())
            if other.section == chunk.section and other.row_id not in used
        }
        parts = _grown(chunk, beside, None if widen == "short" else share)
        used.update(part.row_id for part in parts)
        wide.append(parts)
    return wide


def _grown(chunk: Chunk, beside: Mapping[int, Chunk], tokens: int | None) -> list[Chunk]:
    """The chunk with an unbroken run around it, as far as the tokens reach; None: all of it."""
    first = last = chunk.ordinal
    held = {first: chunk}
    left = None if tokens is None else tokens - chunk.tokens
    grew = True
    while grew:
        grew = False
        for ordinal in (last + 1, first - 1):
            other = beside.get(ordinal)
            if other is None or (left is not None and other.tokens > left):
                continue
            held[ordinal] = other
            left = None if left is None else left - other.tokens
            first, last, grew = min(first, ordinal), max(last, ordinal), True
    return [held[ordinal] for ordinal in sorted(held)]


def _distinct(ranked: Sequence[Candidate], limit: int) -> tuple[list[Candidate], list[Drop]]:
    """The first `limit` candidates that repeat no better one, and those that do."""
    kept: list[Candidate] = []
    alike: dict[Hashable, list[tuple[Candidate, Shingles]]] = {}
    repeated: list[Drop] = []
    for candidate in ranked:
        if len(kept) == limit:
            break
        decisive, shingles = _fingerprint(candidate.chunk)
        others = alike.setdefault(decisive, [])
        first = next((better for better, other in others if _same(shingles, other)), None)
        if first is None:
            kept.append(candidate)
            others.append((candidate, shingles))
        else:
            repeated.append(Drop(candidate, NEAR_DUPLICATE, beside=first.chunk.chunk_id))
    return kept, repeated


def _fingerprint(chunk: Chunk) -> tuple[Hashable, Shingles]:
    """What must be equal in two passages that say the same, and their runs of three words.

    Headers, numbers and negations decide: 16 weeks is not 20 weeks, Canada is not Germany, and
    "not covered" is not "covered", however alike the rest of the passages is.
    """
    words = _WORD.findall(chunk.text.lower())
    width = min(3, len(words))
    header = frozenset(_WORD.findall(chunk.header.lower()))
    exact = Counter(w for w in words if w in DECISIVE or any(map(str.isdigit, w)))
    shingles = frozenset(tuple(words[i : i + width]) for i in range(len(words) - width + 1))
    return (header, frozenset(exact.items())), shingles


def _same(left: Shingles, right: Shingles) -> bool:
    """Jaccard similarity of three-word runs."""
    union = left | right
    return not union or len(left & right) / len(union) >= SAME_SHINGLES
