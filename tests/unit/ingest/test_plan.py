"""What is read, what is left alone, and what is deleted."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from ingest.plan import (
    Known,
    Recipe,
    check_moved,
    check_origins,
    check_renamed,
    check_within,
    documents_of,
    guarded,
    known,
    make_plan,
    put_mark,
    recipe_of,
    states,
    with_lost,
    with_orphans,
)
from ingest.sources import LeftOut
from ingest.sources.local import Refused
from ingest.summary import Failure
from quarry.entries import LOST
from quarry.errors import UsageError
from quarry.ids import doc_id
from quarry.records import DocState, Document, SourceEntry, SourceItem
from quarry.settings import IngestSettings, Settings, SourceSettings
from quarry.stores.memory import MemoryCatalog

RECIPE = Recipe(parsers="r1", labels="labels", limits="limits")


def item(address: str, tag: str = "t") -> SourceItem:
    return SourceItem(source="s", address=address, uri=address, tag=tag, size=1)


def entry(
    address: str,
    documents: int = 1,
    state: DocState = DocState.INDEXED,
    recipe: str | None = None,
) -> SourceEntry:
    return SourceEntry(
        source="s",
        address=address,
        tag="t",
        recipe=RECIPE.of(state) if recipe is None else recipe,
        state=state,
        documents=documents,
    )


def before(*entries: SourceEntry) -> Known:
    return Known(source="s", entries={each.address: each for each in entries})


def addresses(items: Sequence[SourceItem]) -> list[str]:
    return [each.address for each in items]


def test_only_new_and_changed_addresses_are_read() -> None:
    listing = [item("same"), item("new"), item("changed", tag="other")]
    plan = make_plan(listing, before(entry("same", 7), entry("changed")), recipe=RECIPE)
    assert addresses(plan.read) == ["new", "changed"]
    assert plan.unchanged == {DocState.INDEXED: 7}
    assert plan.vanished == ()


def test_another_recipe_reads_everything_again() -> None:
    plan = make_plan([item("a")], before(entry("a", recipe="old")), recipe=RECIPE)
    assert addresses(plan.read) == ["a"]


@pytest.mark.parametrize(
    ("state", "again"),
    [
        (DocState.FAILED, True),
        (DocState.ENCRYPTED, False),
        (DocState.CORRUPT, False),
        (DocState.PARTIAL, False),
    ],
)
def test_what_failed_for_a_passing_reason_is_tried_again(state: DocState, again: bool) -> None:
    plan = make_plan([item("a")], before(entry("a", state=state)), recipe=RECIPE)
    assert bool(plan.read) is again


def test_what_can_never_be_read_as_it_is_is_not_tried_again_and_told_with_its_reason() -> None:
    refused = Refused(source="s", address="a", uri="a", tag="t", size=0)
    known_before = replace(entry("a", state=DocState.FAILED), reason="It is a link.")
    plan = make_plan([refused], before(known_before), recipe=RECIPE)
    assert (plan.read, plan.unchanged) == ((), {DocState.FAILED: 1})
    assert plan.refused == (Failure(uri="a", state=DocState.FAILED, reason="It is a link."),)
    for other in (replace(known_before, tag="before"), replace(known_before, recipe="before")):
        plan = make_plan([refused], before(other), recipe=RECIPE)
        assert (plan.read, plan.refused) == ((refused,), ())
    unsupported = entry("a", state=DocState.UNSUPPORTED)
    assert make_plan([refused], before(unsupported), recipe=RECIPE).refused == ()


def test_what_failed_by_a_limit_is_tried_again_when_a_limit_changes() -> None:
    was = recipe_of("r1", Settings(), "s")
    slow, good = (
        before(entry("a", state=state, recipe=was.of(state)))
        for state in (DocState.TIMED_OUT, DocState.INDEXED)
    )
    assert make_plan([item("a")], slow, recipe=was).read == ()
    wider = recipe_of("r1", Settings(ingest=IngestSettings(parse_timeout_s=600.0)), "s")
    assert make_plan([item("a")], slow, recipe=wider).read == (item("a"),)
    assert make_plan([item("a")], good, recipe=wider).read == ()


OPEN = SourceSettings(default_acl=("public",))


@pytest.mark.parametrize(
    ("sources", "again"),
    [
        ({"s": SourceSettings(default_acl=("staff",))}, True),
        ({"s": SourceSettings(default_acl=("public",), tenant="acme")}, True),
        ({"s": SourceSettings()}, True),
        ({}, True),
        ({"default": OPEN}, False),
        ({"s": OPEN, "other": SourceSettings(default_acl=("staff",))}, False),
    ],
)
def test_other_settings_of_its_source_read_an_address_again(
    sources: dict[str, SourceSettings], again: bool
) -> None:
    was, now = (recipe_of("r1", Settings(sources=each), "s") for each in ({"s": OPEN}, sources))
    for state in (DocState.INDEXED, DocState.PARTIAL, DocState.CORRUPT, DocState.TOO_LARGE):
        known_before = before(entry("a", state=state, recipe=was.of(state)))
        plan = make_plan([item("a")], known_before, recipe=now)
        assert bool(plan.read) is again


def test_what_is_left_out_is_told_and_not_read_and_what_it_was_before_is_gone() -> None:
    left = LeftOut(source="s", address="q", uri="q", tag="", size=0, reason="It is none.")
    plan = make_plan([item("a"), left], before(entry("a"), entry("q")), recipe=RECIPE)
    assert (plan.left_out, plan.read, plan.vanished) == ((left,), (), ("q",))


def test_what_is_listed_no_more_has_vanished() -> None:
    plan = make_plan([item("a")], before(entry("a"), entry("b")), recipe=RECIPE)
    assert plan.vanished == ("b",)


def test_a_single_file_says_nothing_about_the_others() -> None:
    plan = make_plan([item("a")], before(entry("b")), recipe=RECIPE, complete=False)
    assert plan.vanished == ()


def test_an_address_that_held_many_records_is_known_to() -> None:
    known_before = before(entry("many.dat", 30), entry("one.md"))
    plan = make_plan([item("many.dat", "new"), item("one.md", "new")], known_before, recipe=RECIPE)
    assert plan.several == {"many.dat"}


def test_two_files_of_one_address_are_refused() -> None:
    with pytest.raises(UsageError, match=r"address a\.md"):
        make_plan([item("a.md"), item("a.md")], before(), recipe=RECIPE)


def test_documents_that_are_left_alone_are_counted_by_their_states() -> None:
    catalog = MemoryCatalog()
    catalog.commit(document("c.csv", "1"))
    catalog.commit(document("c.csv", "2", DocState.CORRUPT))
    catalog.commit(document("c.csv", "3", DocState.DELETED))
    known_before = before(
        entry("a", 5), entry("b", state=DocState.EMPTY), entry("c.csv", 2, DocState.PARTIAL)
    )
    plan = make_plan([item("a"), item("b"), item("c.csv")], known_before, recipe=RECIPE)
    assert states(catalog, plan) == {"indexed": 6, "empty": 1, "corrupt": 1}


# ------------------------------------------------------------------------- suspicious deletes


@pytest.mark.parametrize(
    ("gone", "total", "withheld"),
    [
        (11, 54, 11),  # more than 10 and more than a fifth
        (10, 20, 0),  # a half, but not more than 10
        (11, 55, 0),  # more than 10, but not more than a fifth
        (12, 12, 12),
    ],
)
def test_deletions_past_both_limits_are_withheld(gone: int, total: int, withheld: int) -> None:
    known_before = before(*(entry(f"{number}") for number in range(total)))
    listing = [item(f"{number}") for number in range(gone, total)]
    plan = make_plan(listing, known_before, recipe=RECIPE)
    checked = guarded(plan, known_before, IngestSettings(), allow=False)
    assert checked.withheld == withheld
    assert len(checked.vanished) == (0 if withheld else gone)


def test_documents_count_not_addresses() -> None:
    known_before = before(entry("corpus.jsonl", 30), entry("a.md"))
    plan = make_plan([item("a.md")], known_before, recipe=RECIPE)
    assert guarded(plan, known_before, IngestSettings(), allow=False).withheld == 30


def test_deletions_that_are_allowed_go_through() -> None:
    known_before = before(*(entry(f"{number}") for number in range(20)))
    plan = make_plan([], known_before, recipe=RECIPE)
    assert len(guarded(plan, known_before, IngestSettings(), allow=True).vanished) == 20


# ---------------------------------------------------------------------------- where it is from


def test_a_name_read_from_another_place_is_refused_unless_it_was_given() -> None:
    catalog = MemoryCatalog()
    put_mark(catalog, "docs", ["/a/docs"], unfinished=False)
    found = known(catalog, "docs")
    check_origins(found, ["/a/docs"], named=False)
    check_origins(found, ["/b/docs"], named=True)
    with pytest.raises(UsageError, match="read from /a/docs until now; pass --moved"):
        check_origins(found, ["/b/docs"], named=False)


def test_a_move_that_would_delete_names_a_few_of_what_it_would() -> None:
    gone = [entry(f"{number}.md") for number in range(5)]
    known_before = replace(before(entry("a.md"), *gone), origins=("/a",))
    plan = make_plan([item("a.md")], known_before, recipe=RECIPE)
    check_moved(plan, known_before, ["/a"])
    said = r"5 of its 6 documents are not in /b \(0.md, 1.md, 2.md, …\)"
    with pytest.raises(UsageError, match=said):
        check_moved(plan, known_before, ["/b"])
    whole = make_plan([item(address) for address in known_before.entries], before(), recipe=RECIPE)
    check_moved(whole, known_before, ["/b"])


def renamed(origin: str, had: Sequence[str], listed: Sequence[str]) -> None:
    """A catalog whose source `old` was read from `origin`, asked about a listing of `new`."""
    catalog = MemoryCatalog()
    put_mark(catalog, "old", [origin], unfinished=False)
    for address in had:
        catalog.put_entry(replace(entry(address), source="old"))
    plan = make_plan([item(address) for address in listed], Known(source="new"), recipe=RECIPE)
    check_renamed(catalog, plan, ["/b/new"])


@pytest.mark.parametrize("listed", [["1.md", "2.md"], ["1.md"], ["1.md", "9.md", "8.md"]])
def test_a_folder_that_has_half_the_files_of_one_that_is_gone_is_refused(
    listed: Sequence[str], tmp_path: Path
) -> None:
    same = sum(address in ("1.md", "2.md") for address in listed)
    said = rf"{same} of the 2 files of the source old.* --source old --moved if .* --source new to"
    with pytest.raises(UsageError, match=said):
        renamed(str(tmp_path / "gone"), ["1.md", "2.md"], listed)


@pytest.mark.parametrize(
    ("place", "said"),
    [
        (
            "/a/docs/hr",
            "/a/docs/hr is in /a/docs, which is the source old; run: quarry ingest /a/docs",
        ),
        ("/a/docs/x.md", "pass --source new to have it twice"),
        ("/a/docs", "pass --source new to have it twice"),
        ("/a", "/a/docs, which is the source old, is in /a; pass --source old --moved"),
    ],
)
def test_what_is_in_the_folder_of_another_source_is_refused(place: str, said: str) -> None:
    catalog = MemoryCatalog()
    put_mark(catalog, "old", ["/a/docs"], unfinished=False)
    with pytest.raises(UsageError, match=re.escape(said)):
        check_within(catalog, "new", [place])
    check_within(catalog, "old", [place])
    check_within(catalog, "new", ["/a/docs2", "s3"])


def test_a_folder_beside_one_that_is_there_is_a_source_of_its_own(tmp_path: Path) -> None:
    renamed(str(tmp_path), ["1.md", "2.md"], ["1.md", "2.md"])


def test_a_folder_of_other_files_is_none_that_has_moved(tmp_path: Path) -> None:
    renamed(str(tmp_path / "gone"), ["1.md", "2.md", "3.md"], ["1.md", "9.md"])
    renamed(str(tmp_path / "gone"), [], ["1.md"])


def test_of_what_is_no_path_nobody_knows_whether_it_is_gone() -> None:
    renamed("bucket", ["1.md"], ["1.md"])


def test_the_mark_of_a_source_is_no_address_of_it() -> None:
    catalog = MemoryCatalog()
    put_mark(catalog, "s", ["/a"], unfinished=True)
    catalog.put_entry(entry("a.md"))
    found = known(catalog, "s")
    assert set(found.entries) == {"a.md"}
    assert found.unfinished


# ------------------------------------------------------------------------- after a killed run


def document(address: str, record: str = "", state: DocState = DocState.INDEXED) -> Document:
    return Document(
        doc_id=f"{address}{record}", source="s", address=address, uri=address, state=state
    )


def test_after_an_unfinished_run_documents_without_an_entry_are_not_forgotten() -> None:
    catalog = MemoryCatalog()
    put_mark(catalog, "s", ["/a"], unfinished=True)
    catalog.put_entry(entry("done.md"))
    for row in (document("done.md"), document("c.csv", "1"), document("c.csv", "2")):
        catalog.commit(row)
    catalog.commit(document("old.md", state=DocState.DELETED))
    found = with_orphans(catalog, known(catalog, "s"))
    assert {a: e.documents for a, e in found.entries.items()} == {"done.md": 1, "c.csv": 2}
    plan = make_plan([item("done.md")], found, recipe=RECIPE)
    assert plan.vanished == ("c.csv",)
    assert make_plan([item("c.csv")], found, recipe=RECIPE).read == (item("c.csv"),)


@pytest.mark.parametrize("marked", [True, False])
def test_documents_whose_entry_is_lost_are_not_forgotten(marked: bool) -> None:
    catalog = MemoryCatalog()
    if marked:
        put_mark(catalog, "s", ["/a"], unfinished=False)
    catalog.put_entry(entry("done.md"))
    for row in (document("done.md"), document("c.csv", "1"), document("c.csv", "2")):
        catalog.commit(row)
    before = known(catalog, "s")
    assert (before.there, before.unfinished) == (3, not marked)
    assert with_orphans(catalog, before).entries["c.csv"].documents == 2


def test_a_source_without_documents_and_mark_is_new_and_not_unfinished() -> None:
    catalog = MemoryCatalog()
    catalog.commit(document("old.md", state=DocState.DELETED))
    assert not known(catalog, "s").unfinished


def test_documents_of_other_sources_hide_no_loss() -> None:
    catalog = MemoryCatalog()
    catalog.put_entry(entry("a.md"))
    for number in range(5):
        catalog.commit(replace(document(f"{number}.md"), source="other"))
    found = with_lost(catalog, known(catalog, "s"))
    assert found.entries["a.md"].reason == LOST
    catalog.commit(replace(document("a.md"), doc_id=doc_id("s", "a.md")))
    assert with_lost(catalog, known(catalog, "s")).entries["a.md"] == entry("a.md")


def test_documents_are_listed_page_by_page() -> None:
    catalog = MemoryCatalog()
    for number in range(2500):
        catalog.commit(document(f"{number:04}"))
    assert len(list(documents_of(catalog, "s"))) == 2500
