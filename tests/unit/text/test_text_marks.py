"""Citation marks of documents are none of an answer's."""

from __future__ import annotations

import pytest

from quarry.text.marks import without_marks_of_its_own
from serve.answering.citations import MarkWriter, marks_in


@pytest.mark.parametrize(
    "text",
    ["7 years [S2].", "monthly (S1).", "【S1】", "[[S1]]", "[S1, S2]", "[Source S1]", "(see S 2)",
     "[S1-S3]", "［S1］", "[^S1]", "[S1, p. 3]", "[s2]",
     "[S1, p. 3; S2, p. 4]", "[S2: Title]", "[S2 (p. 1)]", "{S2}", "⟦S1⟧", r"\[S2\]", "[`S1`]",
     "[Document 2]", "[cite: S1]", "[S3-S1]"],
)  # fmt: skip
def test_no_mark_of_a_document_is_taken_for_a_citation(text: str) -> None:
    known = {"S1", "S2", "S3"}
    writer = MarkWriter(known)
    shown = writer.feed(without_marks_of_its_own(text) + " [S3]") + writer.finish()
    assert [mark.label for mark in marks_in(shown, known)] == ["S3"]
    assert shown.endswith("[S3]")


@pytest.mark.parametrize(
    "text",
    ["size (S)", "[1]", "(S4-HANA)", "{s1}", "(S3: the store)", "f(s) = 2", "Model S3 (2024)"],
)
def test_other_brackets_stay(text: str) -> None:
    assert without_marks_of_its_own(text) == text
