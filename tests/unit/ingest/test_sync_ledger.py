"""The books of a run: nothing is counted twice, nothing is missing."""

from __future__ import annotations

from collections import Counter

import pytest

from ingest.ledger import Ledger
from ingest.plan import Recipe
from ingest.reporter import Reporter
from ingest.summary import Progress
from ingest.work import Done, End, Task
from quarry.errors import QuarryError
from quarry.records import DocState, SourceItem


def task(number: int, size: int = 1) -> Task:
    item = SourceItem(source="s", address=f"{number}.md", uri=f"{number}.md", tag="t", size=size)
    return Task(number=number, source=0, item=item)


def done(number: int, state: DocState = DocState.INDEXED, **more: object) -> Done:
    return Done(task=number, uri=f"{number}.md", state=state, **more)  # type: ignore[arg-type]


def ledger(*tasks: Task, last: bool = True) -> Ledger:
    made = Ledger()
    made.expect(tasks, last=last)
    return made


def test_an_address_is_complete_when_its_end_and_all_its_documents_are_there() -> None:
    books = ledger(task(0))
    assert books.add([End(task=0, documents=2)]) == []
    assert books.add([done(0)]) == []
    (address,) = books.add([done(0)])
    recipe = Recipe(parsers="recipe")
    entry = address.entry(recipe)
    assert (entry.address, entry.tag, entry.documents) == ("0.md", "t", 2)
    assert (entry.state, entry.recipe) == (DocState.INDEXED, recipe.of(DocState.INDEXED))


def test_what_stays_deleted_by_hand_counts_for_nothing_and_is_named_if_a_store_failed_it() -> None:
    books = ledger(task(0))
    away = [
        done(0, DocState.EMPTY, away=True, reason="No text was found in it."),
        done(0, DocState.FAILED, away=True, reason="The store rejected it."),
    ]
    (address,) = books.add([done(0), *away, End(task=0, documents=3)])
    assert address.entry(Recipe(parsers="")).documents == 1
    summary = books.summary(run_id="r", source="s", unread=Counter(), seconds=0)
    assert (summary.listed, summary.indexed, summary.failed) == (1, 1, 0)
    assert summary.by_state == {DocState.INDEXED: 1}
    assert [failure.reason for failure in summary.failures] == ["The store rejected it."]


def test_an_address_takes_the_state_of_its_documents_or_partial_if_they_differ() -> None:
    books = ledger(task(0), task(1), task(2))
    rows = [
        done(0, DocState.ENCRYPTED, reason="It needs a password."),
        End(task=0, documents=1),
        done(1),
        done(1, DocState.CORRUPT, reason="Line 2 is not JSON."),
        End(task=1, documents=2),
        done(2, DocState.FAILED),
        End(task=2, documents=1, state=DocState.TIMED_OUT, reason="Too slow."),
    ]
    entries = [address.entry(Recipe(parsers="")) for address in books.add(rows)]
    assert [each.state for each in entries] == ["encrypted", "partial", "timed_out"]
    assert [each.reason for each in entries] == [
        "It needs a password.",
        "Line 2 is not JSON.",
        "Too slow.",
    ]


def test_a_missing_end_is_noticed() -> None:
    books = ledger(task(0))
    books.add([done(0)])
    with pytest.raises(QuarryError, match="1 addresses were not read"):
        books.check()


@pytest.mark.parametrize(
    "rows",
    [
        [End(task=0, documents=0), End(task=0, documents=0)],
        [done(0), done(0), End(task=0, documents=1)],
        [done(0), End(task=0, documents=1), done(0)],
        [done(7)],
    ],
)
def test_a_row_that_comes_twice_is_noticed(rows: list[Done | End]) -> None:
    with pytest.raises(QuarryError, match="twice"):
        ledger(task(0)).add(rows)


def test_the_summary_adds_up() -> None:
    books = ledger(*(task(number) for number in range(4)))
    books.add(
        [
            done(0, embedded=3, reused=1, deleted=2),
            done(1, unchanged=True),
            done(2, DocState.CORRUPT, reason="It is broken."),
            done(3, DocState.PARTIAL, reason="Page 2 is a scan.", embedded=1),
            *(End(task=number, documents=1) for number in range(4)),
        ]
    )
    books.add_deleted("old.md", 4)
    books.add_deleted("gone.md", 5)
    summary = books.summary(
        run_id="r",
        source="s",
        unread=Counter({DocState.INDEXED: 9, DocState.EMPTY: 1}),
        seconds=1.23456,
    )
    assert summary.to_json() == {
        "run_id": "r",
        "source": "s",
        "documents": {
            "listed": 14,
            "unchanged": 11,
            "indexed": 2,
            "deleted": 2,
            "failed": 1,
            "by_state": {"corrupt": 1, "deleted": 2, "empty": 1, "indexed": 11, "partial": 1},
        },
        "chunks": {"embedded": 4, "reused": 1, "deleted": 11},
        "seconds": 1.235,
        "failures": [
            {"uri": "2.md", "state": "corrupt", "reason": "It is broken."},
            {"uri": "3.md", "state": "partial", "reason": "Page 2 is a scan."},
        ],
        "deleted": [{"uri": "gone.md"}, {"uri": "old.md"}],
        "left_out": [],
    }
    assert summary.exit_code == 3


def test_a_run_without_failures_exits_with_0() -> None:
    books = ledger(task(0))
    books.add([done(0), End(task=0, documents=1)])
    assert books.summary(run_id="r", source="s", unread=Counter(), seconds=0).exit_code == 0


def test_a_conflict_is_read_again_and_what_was_indexed_before_stays_counted() -> None:
    books = ledger(task(0), last=False)
    rows = [done(0, embedded=5), done(0, conflict=True), End(task=0, documents=2)]
    (address,) = books.add(rows)
    assert address.conflict
    books.expect([task(0)], last=True)
    (address,) = books.add([done(0, unchanged=True), done(0), End(task=0, documents=2)])
    assert not address.conflict
    summary = books.summary(run_id="r", source="s", unread=Counter(), seconds=0)
    assert (summary.listed, summary.indexed, summary.unchanged, summary.embedded) == (2, 2, 0, 5)
    assert summary.failures == ()


def test_a_second_conflict_is_named() -> None:
    books = ledger(task(0), last=True)
    (address,) = books.add([done(0, conflict=True), End(task=0, documents=1)])
    assert address.conflict
    summary = books.summary(run_id="r", source="s", unread=Counter(), seconds=0)
    assert (summary.failed, summary.exit_code) == (1, 3)
    assert "Another writer" in summary.failures[0].reason


def test_progress_tells_rate_and_what_is_left_by_bytes() -> None:
    now = 0.0
    told: list[Progress] = []
    tasks = [task(0, size=50), task(1, size=100), task(2, size=300)]
    books = ledger(*tasks)
    report = Reporter(books, told.append, clock=lambda: now)
    report.expect(tasks)
    now = 5.0
    report("starting")
    books.add([done(0), End(task=0, documents=1)])
    now = 6.0
    report("indexing")
    books.add([done(1, DocState.CORRUPT), End(task=1, documents=1)])
    now = 8.0
    report("indexing")
    starting, first, last = told
    assert (starting.phase, starting.eta_s, starting.documents_per_s) == ("starting", None, 0.0)
    assert (first.documents, first.eta_s) == (1, None)
    assert (last.addresses, last.done, last.documents, last.failed) == (3, 2, 2, 1)
    assert (last.documents_per_s, last.eta_s, last.seconds) == (0.5, 6.0, 8.0)
