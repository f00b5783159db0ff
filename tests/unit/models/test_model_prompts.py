"""Prompts that models are known to need."""

from __future__ import annotations

import pytest

from quarry.models.prompts import prompts_for


@pytest.mark.parametrize(
    ("model", "question", "document"),
    [
        ("intfloat/multilingual-e5-base", "query: ", "passage: "),
        ("BAAI/bge-small-en-v1.5", "Represent this sentence", ""),
        ("BAAI/bge-m3", "", ""),
        ("Qwen/Qwen3-Embedding-0.6B", "Instruct: ", ""),
        ("intfloat/multilingual-e5-large-instruct", "Instruct: ", ""),
        ("nomic-ai/nomic-embed-text-v1.5", "search_query: ", "search_document: "),
        ("packaged:all-MiniLM-L6-v2", "", ""),
    ],
)
def test_known_names_have_their_prompts(model: str, question: str, document: str) -> None:
    found = prompts_for(model, {}, None, None)
    assert found.question.startswith(question)
    assert bool(found.question) == bool(question)
    assert found.document == document


def test_settings_win_over_the_models_configuration_and_that_over_its_name() -> None:
    own = {"query": "ask: ", "passage": "tell: "}
    assert prompts_for("intfloat/e5-base", own, None, None).question == "ask: "
    assert prompts_for("intfloat/e5-base", own, None, None).document == "tell: "
    assert prompts_for("intfloat/e5-base", own, "", "x: ").question == ""
    assert prompts_for("intfloat/e5-base", own, "", "x: ").document == "x: "
