"""Topics and judgements in the formats of TREC (https://trec.nist.gov/data/qrels_eng/)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from evals.datasets.files import lines_of, text_of
from quarry.errors import UsageError

_TOPIC = re.compile(r"<top>(.*?)(?:</top>|(?=<top>)|\Z)", re.IGNORECASE | re.DOTALL)
_NUMBER = re.compile(r"<num>\s*(?:Number\s*:)?\s*([^\s<]+)", re.IGNORECASE)
_TITLE = re.compile(r"<title>\s*(?:Topic\s*:)?([^<]*)", re.IGNORECASE)


def read_topics(path: Path) -> dict[str, str]:
    """Questions by id, of lines `ID<TAB>QUESTION` or of the classic form, whose `<title>` is the
    question. Raises UsageError."""
    text = text_of(path)
    return dict(_classic(path, text) if "<top>" in text.lower() else _tabbed(path))


def _classic(path: Path, text: str) -> Iterator[tuple[str, str]]:
    for topic in _TOPIC.finditer(text):
        number, title = _NUMBER.search(topic[1]), _TITLE.search(topic[1])
        question = " ".join(title[1].split()) if title else ""
        if number is None or not question:
            line = text.count("\n", 0, topic.start()) + 1
            raise UsageError(f"{path}, line {line}: a topic has a <num> and a <title>.")
        yield number[1], question


def _tabbed(path: Path) -> Iterator[tuple[str, str]]:
    for number, line in lines_of(path):
        topic, tab, text = line.partition("\t")
        if not (topic.strip() and tab and text.strip()):
            raise UsageError(
                f"{path}, line {number}: a topic is its id, a tab, and the question, or "
                "<top> with <num> and <title>."
            )
        yield topic.strip(), text.strip()


def read_qrels(path: Path) -> dict[str, dict[str, int]]:
    """Grades by topic and document, of lines `TOPIC ITERATION DOCUMENT GRADE`."""
    judged: dict[str, dict[str, int]] = {}
    for number, line in lines_of(path):
        try:
            topic, _, document, grade = line.split()
            judged.setdefault(topic, {})[document] = int(grade)
        except ValueError as error:
            raise UsageError(
                f"{path}, line {number}: a judgement is topic, iteration, document and a whole "
                "number, with blanks between."
            ) from error
    if not judged:
        raise UsageError(f"{path} holds no judgements.")
    return judged
