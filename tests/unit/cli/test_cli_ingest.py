"""How an ingest shows where it stands and what it did."""

from __future__ import annotations

from collections import Counter

import pytest

from ingest.summary import Failure, Omission, Progress, RunSummary
from quarry.cli import progress
from quarry.cli.commands.ingest import summary_lines
from quarry.cli.progress import duration, progress_display, standing_text
from quarry.records import DocState


def test_the_summary_counts_and_names_every_failure() -> None:
    failure = Failure(uri="bad\x1b.pdf", state=DocState.CORRUPT, reason="It is broken.")
    summary = RunSummary(
        run_id="r",
        source="shop",
        listed=7,
        unchanged=1,
        indexed=5,
        failed=1,
        by_state=Counter({DocState.INDEXED: 5, DocState.CORRUPT: 1}),
        embedded=12,
        reused=3,
        seconds=61.2,
        failures=(failure,),
    )
    text = "\n".join(summary_lines(summary))
    assert "shop: 7 documents listed: 5 indexed, 1 unchanged, 1 failed, in 1:01." in text
    assert "12 embedded, 3 reused" in text
    assert "corrupt" in text
    assert "bad␛.pdf  It is broken." in text


def test_a_run_that_read_nothing_says_so_in_one_line() -> None:
    summary = RunSummary(run_id="r", source="shop", listed=5, unchanged=5, seconds=0.2)
    assert list(summary_lines(summary)) == [
        "shop: 5 documents listed: 0 indexed, 5 unchanged, in 0:00."
    ]


def test_what_was_left_out_is_named_with_the_reason() -> None:
    omission = Omission(uri="qrels", reason="It is no document.")
    lines = list(summary_lines(RunSummary(run_id="r", source="s", left_out=(omission,))))
    assert lines[-2:] == ["Left out, since they are no documents:", "  qrels  It is no document."]


def test_a_thousand_failures_do_not_flood_the_screen() -> None:
    failures = tuple(
        Failure(uri=f"{number}.pdf", state=DocState.CORRUPT, reason="It is broken.")
        for number in range(1000)
    )
    lines = list(summary_lines(RunSummary(run_id="r", source="s", failures=failures)))
    assert len(lines) < 30
    assert "980 more" in lines[-1]


def test_a_few_of_the_documents_that_were_deleted_are_named_and_all_are_in_the_json() -> None:
    uris = tuple(f"{number}\x1b.md" for number in range(7))
    summary = RunSummary(run_id="r", source="s", deleted=7, deleted_uris=uris)
    lines = list(summary_lines(summary))
    assert "7 deleted" in lines[0]
    assert lines[-7] == "Deleted, since they are gone from the source:"
    assert lines[-6] == "  0␛.md"
    assert lines[-1] == "  and 2 more; quarry documents --state deleted lists all."
    assert [each["uri"] for each in summary.to_json()["deleted"]] == list(uris)


@pytest.mark.parametrize(
    ("standing", "text"),
    [
        (Progress(phase="listing"), "listing"),
        (
            Progress(
                phase="indexing",
                addresses=1400,
                done=120,
                documents=120,
                documents_per_s=35.24,
                eta_s=40.0,
                failed=2,
            ),
            "indexing: 120 of 1400 read, 35.2 documents/s, 0:40 left, 2 failed",
        ),
        (
            Progress(phase="indexing", addresses=1, done=0, documents=700),
            "indexing: 0 of 1 read, 700 documents",
        ),
    ],
)
def test_the_standing_tells_rate_time_left_and_failures(standing: Progress, text: str) -> None:
    assert standing_text(standing) == text


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.4, "0:00"), (59.6, "1:00"), (750, "12:30"), (3723, "1:02:03")]
)
def test_durations_are_read_at_a_glance(seconds: float, text: str) -> None:
    assert duration(seconds) == text


def test_without_a_terminal_there_are_few_plain_lines(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [100.0]
    monkeypatch.setattr(progress, "_now", lambda: now[0])
    with progress_display() as show:
        for done in range(100):
            show(Progress(phase="indexing", addresses=100, done=done))
        now[0] += 60
        show(Progress(phase="indexing", addresses=100, done=100))
        show(Progress(phase="deleting", addresses=100, done=100))
    printed = capsys.readouterr()
    assert printed.out == ""
    assert [line.partition(",")[0] for line in printed.err.splitlines()] == [
        "indexing: 0 of 100 read",
        "indexing: 100 of 100 read",
        "deleting: 100 of 100 read",
    ]
