"""An explanation as a person reads it, from the same JSON that programs get."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from quarry.cli.output import one_line
from quarry.cli.render import (
    cut_lines,
    degraded_lines,
    doubt_lines,
    number_text,
    place,
    time_text,
    wrapped,
)

_SHOWN = 10
"""Passages of a stage that are listed; the JSON has all."""

_WHY = {
    "filtered": "it does not match the filter",
    "not_current": "it is a draft or withdrawn",
    "superseded": "another version is current, or it is not in effect yet",
    "below_threshold": "its score is below the threshold",
    "not_scored": "the reranker did not score it, and there is a threshold",
    "same_section": "{beside} of the same section stands before it",
    "near_duplicate": "it says the same as {beside}",
    "no_room": "the generator's context has no room for it",
}
"""Why a passage was left out by a stage."""

_LOST = {
    "not_found": "No document that may be read says it.",
    "split": "A document says it across the end of a chunk; no chunk holds it whole.",
    "not_retrieved": "Neither leg found the passage; its words and its meaning are too far from "
    "the question, or retrieval.candidates is too low.",
    "filtered": "The catalog check left it out: its document does not match the filter.",
    "not_current": "The catalog check left it out: its document is a draft or withdrawn.",
    "superseded": "The catalog check left it out: another version is current, or it is not in "
    "effect yet.",
    "below_depth": "Fusion put it too low for the reranker to see it{ranks}.",
    "below_sources": "It ranked too low to become a source{ranks}.",
    "below_threshold": "Its rerank score is below retrieval.select.threshold.",
    "not_scored": "The reranker did not score it, and there is a threshold.",
    "same_section": "Another passage of its section stood before it.",
    "near_duplicate": "A source that says the same stands for it.",
    "no_room": "The generator's context had no room for it.",
    "left_out": "The prompt left the source out.",
    "refused": "It was in the prompt{label}, and the generator refused.",
    "not_cited": "It was in the prompt{label}, and the answer does not cite it.",
    "cited": "It was cited{label}.",
}


def explanation_lines(explained: Mapping[str, Any], seconds: float) -> Iterator[str]:
    """The answer, the fate of what was expected, and each stage with its passages."""
    answer = explained["answer"]
    yield from wrapped(f"Question: {one_line(explained['question'])}", indent=0)
    said = one_line(answer["answer"])
    yield from wrapped(f"{answer['status'].capitalize()}: {said}", indent=0)
    yield from doubt_lines(answer["doubts"])
    yield from cut_lines(answer["cut"])
    yield from degraded_lines(answer["degraded"])
    for expectation in explained["expected"]:
        yield ""
        yield from _expectation(expectation, explained["passages"])
    for stage in explained["stages"]:
        yield ""
        yield from _stage(stage, explained["passages"])
    yield ""
    yield f"Explained in {time_text(seconds * 1000)}"


def _expectation(
    expectation: Mapping[str, Any], passages: Mapping[str, Mapping[str, Any]]
) -> Iterator[str]:
    phrases = " or ".join(f"“{one_line(phrase)}”" for phrase in expectation["phrases"])
    where = f"lost at {expectation['lost']}" if expectation["lost"] else "not lost"
    yield from wrapped(f"Expected {phrases}: {where}.", indent=0)
    first = expectation["places"][0] if expectation["places"] else {}
    yield from wrapped(_sentence(expectation["reason"], first), indent=2)
    if not expectation["whole"]:
        yield "  Time was up before all documents were looked through; it may be in one of them."
    for where_it_is in expectation["places"][:_SHOWN]:
        yield f"  {place(passages[where_it_is['chunk_id']])}{_ranks(where_it_is)}"
    yield from _more(expectation["places"])


def _sentence(reason: str, where_it_is: Mapping[str, Any]) -> str:
    label = where_it_is.get("label")
    return _LOST[reason].format(
        ranks=_ranks(where_it_is) if where_it_is else "", label=f" as {label}" if label else ""
    )


def _ranks(where_it_is: Mapping[str, Any]) -> str:
    named = [
        f"{name} #{where_it_is[key]}"
        for name, key in (
            ("dense", "dense_rank"),
            ("lexical", "lexical_rank"),
            ("fused", "fused_rank"),
            ("final", "final_rank"),
        )
        if where_it_is[key] is not None
    ]
    return f" ({', '.join(named)})" if named else ""


def _stage(stage: Mapping[str, Any], passages: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    details = [f"{name} {_detail(value)}" for name, value in stage["detail"].items()]
    facts = ", ".join([str(stage["count"]), time_text(stage["ms"]), *details])
    yield f"{one_line(stage['stage'])}: {facts}"
    for item in stage["items"][:_SHOWN]:
        score = "" if item["score"] is None else f"  {number_text(item['score'])}"
        moved = "" if item["before"] in (None, item["rank"]) else f"  was #{item['before']}"
        label = f"  {item['label']}" if item["label"] else ""
        tokens = "" if item["tokens"] is None else f"  {item['tokens']} tokens"
        where = place(passages[item["chunk_id"]])
        yield f"  {item['rank']:>3}{score}{label}{tokens}{moved}  {where}"
    yield from _more(stage["items"])
    for left_out in stage["left_out"][:_SHOWN]:
        beside = passages.get(left_out["beside"])
        why = _WHY[left_out["reason"]].format(beside=place(beside) if beside else "another one")
        yield f"  left out: {place(passages[left_out['chunk_id']])}: {why}"
    yield from _more(stage["left_out"])


def _detail(value: object) -> str:
    if isinstance(value, list):
        return one_line(" ".join(map(str, value))) or "none"
    return one_line(str(value))


def _more(listed: Sequence[object]) -> Iterator[str]:
    if len(listed) > _SHOWN:
        yield f"  … and {len(listed) - _SHOWN} more; --json has them all"
