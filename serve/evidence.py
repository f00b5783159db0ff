"""Chooses the sources of an answer: the best ones that differ, within the generator's budget."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import structlog

from quarry.errors import QuarryError
from quarry.ports import TextStore
from quarry.records import Candidate, Chunk, Evidence, StageRecord
from serve.models import CountTokens
from serve.stage import Deadline, Drop, Stopwatch, Threads

_log = structlog.get_logger(__name__)

SHORT_TOKENS = 120
"""A passage shorter than this (in the embedder's tokens) is read with its neighbours."""
SAME_SHINGLES = 0.9
"""Two passages that share this part of their three-word runs say the same."""
SOURCE_TOKENS = 40
"""Room for the label, title and frame of one source in the prompt."""
DECISIVE = frozenset("no not never none nor without except only unless".split())
"""Words that turn the meaning of the passage round."""
COUNT_SHARE = 0.2
"""Of the time that is left, for counting tokens."""
BYTES_A_TOKEN = 3
"""UTF-8 bytes of a token at least, in most languages and tokenizers."""
JOIN = "\n\n"
NEAR_DUPLICATE = "near_duplicate"
NO_ROOM = "no_room"
_WORD = re.compile(r"\w+")

Neighbours = Callable[[Chunk], Awaitable[list[Chunk]]]
"""Chunks of the same revision at the positions before and after, in order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    sources: int
    """At most so many sources."""
    tokens: int
    """Generator tokens of all sources together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """The sources of an answer, and what was left out though it ranked among them."""

    evidence: tuple[Evidence, ...]
    dropped: tuple[Drop, ...]


def neighbours_of(text: TextStore, threads: Threads) -> Neighbours:
    async def neighbours(chunk: Chunk) -> list[Chunk]:
        around = range(max(0, chunk.ordinal - 1), chunk.ordinal + 2)
        return await threads(text.chunks, chunk.doc_id, chunk.revision, around)

    return neighbours


def dependable(count_tokens: CountTokens, deadline: Deadline) -> CountTokens:
    """The generator's count, or an upper estimate while it cannot be had: then another writes."""

    async def count(texts: Sequence[str]) -> list[int]:
        try:
            return await deadline.within(count_tokens(texts), COUNT_SHARE)
        except (QuarryError, TimeoutError) as error:
            _log.warning("tokens_estimated", error=type(error).__name__)
            return [-(-len(text.encode()) // BYTES_A_TOKEN) for text in texts]

    return count


async def choose(
    ranked: Sequence[Candidate],
    *,
    budget: Budget,
    count_tokens: CountTokens,
    neighbours: Neighbours,
) -> tuple[Chosen, StageRecord]:
    """Numbered evidence, best first, within the budget; the lowest sources are dropped first.

    A source that does not fit with its neighbours is tried without them. Gives nothing when there
    is no candidate, or when not even the first one fits.
    """
    watch = Stopwatch("evidence")
    distinct, dropped = _distinct(ranked, budget.sources)
    texts = [candidate.chunk.text for candidate in distinct]
    wide = await _widened(distinct, neighbours)
    counts = await count_tokens([*texts, *(JOIN.join(c.text for c in w) for w in wide)])
    evidence: list[Evidence] = []
    left = budget.tokens
    for position, candidate in enumerate(distinct):
        alone, whole = counts[position], counts[position + len(distinct)]
        if alone + SOURCE_TOKENS > left:
            dropped += [Drop(each, NO_ROOM) for each in distinct[position:]]
            break
        fits = whole + SOURCE_TOKENS <= left
        left -= (whole if fits else alone) + SOURCE_TOKENS
        parts = wide[position] if fits else [candidate.chunk]
        evidence.append(_evidence(f"S{position + 1}", candidate, parts))
    record = watch.done(
        len(evidence),
        near_duplicates=sum(drop.reason == NEAR_DUPLICATE for drop in dropped),
        tokens=budget.tokens - left,
        budget_tokens=budget.tokens,
    )
    return Chosen(evidence=tuple(evidence), dropped=tuple(dropped)), record


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


async def _widened(chosen: Sequence[Candidate], neighbours: Neighbours) -> list[list[Chunk]]:
    """Each passage with its neighbours of the same section, none of them used twice."""
    used = {candidate.chunk.row_id for candidate in chosen}
    wide = []
    for candidate in chosen:
        chunk = candidate.chunk
        around = await neighbours(chunk) if chunk.tokens < SHORT_TOKENS else []
        beside = [
            other
            for other in around
            if abs(other.ordinal - chunk.ordinal) == 1
            and other.section == chunk.section
            and other.row_id not in used
        ]
        used.update(other.row_id for other in beside)
        wide.append(sorted([chunk, *beside], key=lambda c: c.ordinal))
    return wide


def _distinct(ranked: Sequence[Candidate], limit: int) -> tuple[list[Candidate], list[Drop]]:
    """The first `limit` candidates that repeat no better one, and those that do."""
    kept: list[tuple[Candidate, _Print]] = []
    repeated: list[Drop] = []
    for candidate in ranked:
        if len(kept) == limit:
            break
        print_ = _fingerprint(candidate.chunk)
        first = next((better for better, other in kept if _same(print_, other)), None)
        if first is None:
            kept.append((candidate, print_))
        else:
            repeated.append(Drop(candidate, NEAR_DUPLICATE, beside=first.chunk.chunk_id))
    return [candidate for candidate, _ in kept], repeated


@dataclass(frozen=True, slots=True)
class _Print:
    header: frozenset[str]
    shingles: frozenset[tuple[str, ...]]
    exact: Mapping[str, int]


def _fingerprint(chunk: Chunk) -> _Print:
    words = _WORD.findall(chunk.text.lower())
    width = min(3, len(words))
    return _Print(
        header=frozenset(_WORD.findall(chunk.header.lower())),
        shingles=frozenset(tuple(words[i : i + width]) for i in range(len(words) - width + 1)),
        exact=Counter(w for w in words if w in DECISIVE or any(map(str.isdigit, w))),
    )


def _same(left: _Print, right: _Print) -> bool:
    """Jaccard similarity of three-word runs, under equal headers, numbers and negations: 16 weeks
    is not 20 weeks, Canada is not Germany, and "not covered" is not "covered", however alike the
    rest of the passages is."""
    if left.header != right.header or left.exact != right.exact:
        return False
    union = left.shingles | right.shingles
    return not union or len(left.shingles & right.shingles) / len(union) >= SAME_SHINGLES
