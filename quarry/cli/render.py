"""Searches and answers as a person reads them, from the same JSON that programs get."""

from __future__ import annotations

import shutil
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from quarry.cli.output import one_line, printable

_PASSAGE_CHARS = 300
_WIDEST = 100
_DOUBTS = {
    "uncited": "names no source that says so",
    "numbers": "has a number or code that its sources do not have",
    "words": "shares few words with its sources",
    "negation": "denies what its sources say, or says what they deny",
    "meaning": "does not follow from its sources, says the entailment model",
    "language": "is in another language than its sources, so it was not compared",
}


def answer_lines(answer: Mapping[str, Any], seconds: float) -> Iterator[str]:
    """The answer, its numbered sources, and the time of each stage; a refusal has no sources."""
    for paragraph in printable(str(answer["answer"])).split("\n"):
        yield from wrapped(paragraph, indent=0) if paragraph.strip() else [""]
    if answer["status"] == "answered" and answer["citations"]:
        yield ""
        yield "Sources"
        for citation in answer["citations"]:
            yield from _citation(citation)
    if answer["doubts"]:
        yield ""
        yield from doubt_lines(answer["doubts"])
    yield ""
    yield from cut_lines(answer["cut"])
    yield from degraded_lines(answer["degraded"])
    done = "Answered" if answer["status"] == "answered" else "Refused"
    yield f"{done} in {time_text(seconds * 1000)}{_stages(answer['timings_ms'])}"


def search_lines(found: Mapping[str, Any], seconds: float) -> Iterator[str]:
    """Each result with where it is, the beginning of its text, and why it stands there."""
    for result in found["results"]:
        yield f"{result['rank']:>2}  {place(result)}"
        yield from wrapped(_shortened(result["text"]), indent=4)
        yield f"    {_signals(result)}"
        yield ""
    count = len(found["results"])
    yield from degraded_lines(found["degraded"])
    timings = {stage["stage"]: stage["ms"] for stage in found["trace"]}
    results = "1 result" if count == 1 else f"{count or 'No'} results"
    yield f"{results} in {time_text(seconds * 1000)}{_stages(timings)}"


def pages_text(pages: Sequence[int] | None) -> str:
    """`p. 3` or `pp. 3–4`."""
    if not pages:
        return ""
    first, last = pages[0], pages[-1]
    return f"p. {first}" if first == last else f"pp. {first}–{last}"


def _citation(citation: Mapping[str, Any]) -> Iterator[str]:
    yield f"  [{one_line(citation['label'])}] {place(citation)}"
    yield from wrapped(f"“{one_line(citation['quote'])}”", indent=7)


def doubt_lines(doubts: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """The sentences that their sources may not bear, each with the reason."""
    if doubts:
        yield "Check these sentences"
    for doubt in doubts:
        yield from wrapped(f"“{one_line(doubt['sentence'])}”", indent=2)
        yield f"    {_DOUBTS[doubt['reason']]}"


def cut_lines(cut: bool) -> Iterator[str]:
    if cut:
        yield "The answer was cut off at generator.max_tokens."


def place(item: Mapping[str, Any]) -> str:
    """Title, section, pages and address, without what is not known or said already."""
    title = one_line(item["title"])
    steps = [step for step in one_line(item["section"]).split(" > ") if step]
    if steps and title and (title.startswith(steps[0]) or steps[0].startswith(title)):
        title = max(title, steps.pop(0), key=len)
    heading = " › ".join(part for part in (title, *steps) if part)
    parts = (heading, pages_text(item["pages"]), one_line(item.get("url") or item["uri"]))
    return "  ".join(part for part in parts if part)


def _signals(result: Mapping[str, Any]) -> str:
    signals = result["signals"]
    named = [
        f"{name}{number_text(signals[key])}"
        for name, key in (
            ("dense #", "dense_rank"),
            ("lexical #", "lexical_rank"),
            ("rerank ", "rerank_score"),
        )
        if signals[key] is not None
    ]
    return ", ".join([f"score {number_text(result['score'])}", *named])


def _stages(timings: Mapping[str, float]) -> str:
    parts = [f"{one_line(name)} {time_text(ms)}" for name, ms in timings.items() if name != "total"]
    return f" ({', '.join(parts)})" if parts else ""


def degraded_lines(stages: Sequence[str]) -> Iterator[str]:
    if stages:
        yield f"Made without: {one_line(', '.join(stages))}."


def time_text(ms: float) -> str:
    return f"{ms / 1000:.1f} s" if ms >= 1000 else f"{ms:.0f} ms"


def number_text(value: float) -> str:
    return f"{value:.3f}" if isinstance(value, float) else str(value)


def _shortened(text: str) -> str:
    flat = one_line(text)
    return flat if len(flat) <= _PASSAGE_CHARS else flat[: _PASSAGE_CHARS - 1].rstrip() + "…"


def wrapped(text: str, *, indent: int) -> list[str]:
    width = min(shutil.get_terminal_size((_WIDEST, 24)).columns, _WIDEST)
    pad = " " * indent
    return textwrap.wrap(
        text,
        width=max(width, 40),
        initial_indent=pad,
        subsequent_indent=pad,
        break_long_words=False,
        break_on_hyphens=False,
    )
