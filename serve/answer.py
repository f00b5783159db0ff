"""Holds a written answer to its sources: citations that exist, quotes that are there, refusals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from quarry.records import AnswerStatus, Citation, Evidence, StageRecord
from quarry.text import REFUSAL
from serve.citations import claims, quote, without_marks
from serve.generate import Written
from serve.stage import Stopwatch


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    status: AnswerStatus
    text: str
    citations: tuple[Citation, ...]


REFUSED = Checked(status=AnswerStatus.REFUSED, text=REFUSAL, citations=())


def check(written: Written, evidence: Sequence[Evidence]) -> tuple[Checked, StageRecord]:
    """The answer with its citations; refused if the generator refused or cited nothing."""
    watch = Stopwatch("check")
    sources = {item.label: item for item in evidence}
    text = written.text.strip()
    supported = claims(text)
    refused = without_marks(text).startswith(REFUSAL) or not supported
    checked = REFUSED
    if not refused:
        citations = tuple(_citation(sources[label], said) for label, said in supported.items())
        checked = Checked(status=AnswerStatus.ANSWERED, text=text, citations=citations)
    return checked, watch.done(
        len(checked.citations), unknown_citations=written.unknown_citations, refused=refused
    )


def section_path(section: Sequence[str]) -> str:
    """The section as shown to readers: headings from the outermost in."""
    return " > ".join(section)


def _citation(source: Evidence, supported: Sequence[str]) -> Citation:
    document = source.document
    return Citation(
        label=source.label,
        doc_id=document.doc_id,
        uri=document.uri,
        title=document.title,
        section=section_path(source.chunk.section),
        pages=source.chunk.pages,
        quote=quote(source, supported),
    )
