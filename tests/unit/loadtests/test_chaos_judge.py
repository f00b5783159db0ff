"""The judge of a chaos run finds everything that must never happen, and nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from loadtests.chaos.journal import Row
from loadtests.chaos.judge import Kind, Read, Seen, Truth, fault_in, judge
from loadtests.chaos.pages import PEOPLE
from quarry.records import Principal

NOBODY, ANA, BO, CY, _ = PEOPLE
"""Everybody, user ana, group hr, group eng."""

OLD = Row("d", 1, "r1", "v1", ("public",), 2)
NEW = Row("d", 2, "r2", "v2", ("public",), 2)
GONE = Row("d", 2, "", "v1", ("public",), 0)
NARROW = Row("d", 2, "r2", "v1", ("hr",), 2)
TEXTS = {"v1": ("a", "b"), "v2": ("b", "c")}


class Book:
    """Journals by hand: `commit` at a time, `reads` asked about afterwards."""

    def __init__(self) -> None:
        self.entries: list[dict[str, Any]] = [
            {"event": "page", "at": 0, "version": version, "passages": texts}
            for version, texts in TEXTS.items()
        ]
        self.reads: list[Read] = []

    def commit(self, row: Row, *, tried: float, kept: float | None) -> Book:
        number = str(len(self.entries))
        self.entries.append({"event": "rows", "at": tried, "number": number, "rows": [list(row)]})
        if kept is not None:
            self.entries.append({"event": "kept", "at": kept, "number": number, "won": [True]})
        return self

    def outage(self, at: float) -> Book:
        self.entries.append({"event": "outage", "at": at})
        return self

    def truth(self) -> Truth:
        truth = Truth()
        truth.learn(self.entries)
        truth.observe(self.reads)
        truth.settle()
        return truth

    def kinds(self, read: Read) -> list[Kind]:
        return [violation.kind for violation in judge(self.truth(), read)]


def read(
    *seen: tuple[Row, Sequence[str]],
    start: float,
    end: float,
    person: Principal = NOBODY,
    whole: bool = False,
) -> Read:
    shown = [Seen(row, tuple(texts)) for row, texts in seen]
    return Read(start=start, end=end, person=person, seen=shown, name="d", whole=whole)


@pytest.fixture
def book() -> Book:
    return Book().commit(OLD, tried=1, kept=2)


# ------------------------------------------------------------------------------- what may happen


def test_the_committed_revision_may_be_shown(book: Book) -> None:
    assert book.kinds(read((OLD, "ab"), start=3, end=4, whole=True)) == []


def test_during_a_commit_the_old_and_the_new_may_be_shown(book: Book) -> None:
    book.commit(NEW, tried=5, kept=8)
    for shown in ((OLD, "ab"), (NEW, "bc")):
        assert book.kinds(read(shown, start=6, end=7)) == []
        assert book.kinds(read(shown, start=7, end=9)) == []


def test_an_attempt_whose_answer_was_lost_may_be_shown_or_not(book: Book) -> None:
    book.commit(NEW, tried=5, kept=None)
    assert book.kinds(read((NEW, "bc"), start=50, end=51)) == []
    assert book.kinds(read((OLD, "ab"), start=50, end=51)) == []


def test_a_part_of_a_document_may_be_shown_while_it_is_changed(book: Book) -> None:
    book.commit(NEW, tried=5, kept=8)
    assert book.kinds(read((NEW, "b"), start=6, end=7, whole=True)) == []
    assert book.kinds(read(start=6, end=7, whole=True)) == []


def test_a_document_may_be_hidden_from_who_must_not_see_it(book: Book) -> None:
    book.commit(NARROW, tried=5, kept=6)
    assert book.kinds(read(start=7, end=8, person=CY, whole=True)) == []


# ------------------------------------------------------------------------------ what must not be


def test_an_older_revision_after_a_newer_one_was_acknowledged_is_stale(book: Book) -> None:
    book.commit(NEW, tried=5, kept=6)
    assert book.kinds(read((OLD, "ab"), start=7, end=8)) == [Kind.STALE]


def test_an_older_revision_after_somebody_saw_a_newer_one_is_stale(book: Book) -> None:
    book.commit(NEW, tried=5, kept=None)
    book.reads.append(read((NEW, "bc"), start=6, end=7))
    assert book.kinds(read((OLD, "ab"), start=8, end=9)) == [Kind.STALE]
    assert book.kinds(read((OLD, "ab"), start=6, end=9)) == [], "it began before"


def test_what_was_seen_but_not_acknowledged_may_be_lost_with_the_server(book: Book) -> None:
    book.commit(NEW, tried=5, kept=None).outage(7.5)
    book.reads.append(read((NEW, "bc"), start=6, end=7))
    assert book.kinds(read((OLD, "ab"), start=8, end=9)) == []


def test_what_was_acknowledged_may_not_be_lost_with_the_server(book: Book) -> None:
    book.commit(NEW, tried=5, kept=6).outage(7)
    assert book.kinds(read((OLD, "ab"), start=8, end=9)) == [Kind.STALE]


def test_a_deleted_document_is_never_shown_again(book: Book) -> None:
    book.commit(GONE, tried=5, kept=6)
    assert book.kinds(read((OLD, "ab"), start=7, end=8)) == [Kind.DELETED]


def test_a_forbidden_document_is_never_shown(book: Book) -> None:
    book.commit(NARROW, tried=5, kept=6)
    assert book.kinds(read((NARROW, "ab"), start=7, end=8, person=BO)) == []
    assert book.kinds(read((NARROW, "ab"), start=7, end=8, person=ANA)) == [Kind.LEAKED]


def test_the_old_row_does_not_let_anybody_see_what_was_forbidden_since(book: Book) -> None:
    book.commit(NARROW, tried=5, kept=6)
    assert book.kinds(read((OLD, "ab"), start=7, end=8, person=ANA)) == [Kind.LEAKED]
    assert book.kinds(read((OLD, "ab"), start=7, end=8, person=BO)) == [Kind.STALE]


def test_two_revisions_in_one_result_are_mixed(book: Book) -> None:
    book.commit(NEW, tried=5, kept=None)
    assert book.kinds(read((OLD, "a"), (NEW, "c"), start=6, end=7)) == [Kind.MIXED]


@pytest.mark.parametrize("texts", ["ac", "aab", "abz"])
def test_texts_of_another_revision_or_a_text_twice_are_mixed(book: Book, texts: str) -> None:
    assert book.kinds(read((OLD, texts), start=3, end=4)) == [Kind.MIXED]


def test_a_document_that_stands_still_must_be_there_and_whole(book: Book) -> None:
    assert book.kinds(read(start=3, end=4, whole=True)) == [Kind.MISSING]
    assert book.kinds(read((OLD, "a"), start=3, end=4, whole=True)) == [Kind.PARTIAL]
    assert book.kinds(read((OLD, "a"), start=3, end=4)) == [], "not all of it was asked for"


def test_a_row_that_nobody_committed_is_unknown(book: Book) -> None:
    forged = OLD._replace(acl=("public", "hr"))
    assert book.kinds(read((forged, "ab"), start=3, end=4)) == [Kind.UNKNOWN]
    book.commit(NEW, tried=9, kept=10)
    assert book.kinds(read((NEW, "bc"), start=3, end=4)) == [Kind.UNKNOWN], "not yet"


def test_two_winners_of_one_commit_are_forked(book: Book) -> None:
    book.commit(NEW, tried=5, kept=6).commit(GONE, tried=5, kept=6)
    assert [violation.kind for violation in book.truth().violations] == [Kind.FORKED]


@pytest.mark.parametrize(
    ("row", "wanted"),
    [(NEW, None), (GONE, ["v1", ["public"]]), (NARROW, ["v1", ["public"]]), (NEW, ["v1", []])],
)
def test_a_write_that_is_done_must_be_what_was_wanted(
    book: Book, row: Row, wanted: list[Any] | None
) -> None:
    done = {"event": "done", "at": 6, "kind": "edit", "row": list(row), "wanted": wanted}
    book.commit(row, tried=5, kept=6).entries.append(done)
    assert [violation.kind for violation in book.truth().violations] == [Kind.BROKEN_WORD]


# ------------------------------------------------------------------------------------- errors


def test_an_error_must_be_one_of_quarrys_own_and_one_sentence() -> None:
    assert fault_in("StoreUnavailable", "Milvus did not answer; check that it runs.") == ""
    assert fault_in("KeyError", "'d07'")
    assert fault_in("StoreError", "two\nlines")
    assert fault_in("StoreError", "")
    assert fault_in("StoreError", "harbour d07 w1x1p3 was refused.")
