"""Retrieval collections in the layout of BEIR: corpus.jsonl, queries.jsonl, qrels/SPLIT.tsv.

The layout is described at https://github.com/beir-cellar/beir/wiki/Load-your-custom-dataset.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from evals.datasets.files import lines_of, text_of
from quarry.errors import SourceNotFound, UsageError


@dataclass(frozen=True, slots=True, kw_only=True)
class BeirDataset:
    """A collection with its judged questions; a judgement above 0 means relevant."""

    name: str
    corpus: Path
    queries: Mapping[str, str]
    """Text of each judged question."""
    qrels: Mapping[str, Mapping[str, int]]
    """Judgements by question and document; every question here is in `queries`."""
    unjudged: int = 0
    """Questions of the collection that have no judgement and are not in `queries`."""


def load_beir(folder: Path, split: str = "test") -> BeirDataset:
    """Reads questions and judgements; the corpus is left to ingest.

    Raises SourceNotFound for a missing file, UsageError for a line that does not fit.
    """
    corpus, queries, qrels = (
        folder / "corpus.jsonl",
        folder / "queries.jsonl",
        folder / "qrels" / f"{split}.tsv",
    )
    for path in (corpus, queries, qrels):
        if not path.is_file():
            raise SourceNotFound(
                f"There is no {path}; a BEIR folder holds corpus.jsonl, queries.jsonl and "
                f"qrels/{split}.tsv."
            )
    judged = _qrels(qrels)
    texts = dict(_queries(queries))
    missing = judged.keys() - texts.keys()
    if missing:
        raise UsageError(f"{qrels} judges query '{min(missing)}', which is not in {queries}.")
    return BeirDataset(
        name=folder.resolve().name,
        corpus=corpus,
        queries={query_id: texts[query_id] for query_id in texts if query_id in judged},
        qrels=judged,
        unjudged=len(texts) - len(judged),
    )


def _queries(path: Path) -> Iterator[tuple[str, str]]:
    for number, line in lines_of(path):
        try:
            record = json.loads(line)
            yield str(record["_id"]), str(record["text"])
        except (ValueError, KeyError, TypeError) as error:
            raise UsageError(
                f"{path}, line {number}: a query is a JSON object with '_id' and 'text'."
            ) from error


def _qrels(path: Path) -> dict[str, dict[str, int]]:
    judged: dict[str, dict[str, int]] = {}
    lines = io.StringIO(text_of(path), newline="")
    for number, row in enumerate(csv.reader(lines, delimiter="\t"), start=1):
        if not row or (number == 1 and row[-1].strip() == "score"):
            continue
        try:
            query_id, document_id, score = row
            judged.setdefault(query_id, {})[document_id] = int(score)
        except ValueError as error:
            raise UsageError(
                f"{path}, line {number}: a judgement is query-id, corpus-id and a whole "
                "number, with tabs between."
            ) from error
    if not judged:
        raise UsageError(f"{path} holds no judgements.")
    return judged
