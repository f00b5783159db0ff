"""Prompts that embedding models were trained with, known by the model's name.

Each is from the model's card on its hub page. A model that is not listed gets none, unless its own
configuration names prompts for queries and documents, or the settings do.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Prompts:
    """Put before a question and before a document, blanks included."""

    question: str = ""
    document: str = ""


_SEARCH = "Represent this sentence for searching relevant passages: "
_TASK = "Given a web search query, retrieve relevant passages that answer the query"

_KNOWN: tuple[tuple[re.Pattern[str], Prompts], ...] = tuple(
    (re.compile(pattern), prompts)
    for pattern, prompts in (
        (r"\be5-mistral|\be5.*-instruct", Prompts(f"Instruct: {_TASK}\nQuery: ")),
        (r"\be5-(small|base|large)", Prompts("query: ", "passage: ")),
        (r"\bbge-(small|base|large)-en", Prompts(_SEARCH)),
        (r"\bbge-(small|base|large)-zh", Prompts("为这个句子生成表示以用于检索相关文章：")),
        (r"\bqwen3-embedding", Prompts(f"Instruct: {_TASK}\nQuery:")),
        (r"\bnomic-embed-text", Prompts("search_query: ", "search_document: ")),
        (r"\bmxbai-embed-large", Prompts(_SEARCH)),
        (r"\barctic-embed-.*v2", Prompts("query: ")),
        (r"\barctic-embed", Prompts(_SEARCH)),
        (r"\bembeddinggemma", Prompts("task: search result | query: ", "title: none | text: ")),
    )
)


def prompts_for(
    model_id: str, own: Mapping[str, str], question: str | None, document: str | None
) -> Prompts:
    """Settings win over the model's own configuration, that over the known names.

    `own` maps prompt names of the model's configuration to prompts; `query`, `document` and
    `passage` are used.
    """
    name = model_id.lower()
    known = next((prompts for pattern, prompts in _KNOWN if pattern.search(name)), Prompts())
    own_document = own.get("document") or own.get("passage")
    return Prompts(
        question=question if question is not None else own.get("query") or known.question,
        document=document if document is not None else own_document or known.document,
    )
