"""What is particular to the SQLite stores: one file, several processes, errors, tokens."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from quarry.access import EVERYTHING
from quarry.errors import StoreError, StoreUnavailable
from quarry.records import Document, Generation
from quarry.stores.sqlite import Database, open_database, translated, translation
from quarry.stores.sqlite_catalog import SqliteCatalog
from quarry.stores.sqlite_registry import SqliteRegistry
from quarry.stores.sqlite_text import SqliteTextStore
from quarry.text import analyze
from tests.contract.rows import LATER, at, document, labels, text_row

YEAR = timedelta(days=365)


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    database = Database(tmp_path / "quarry.sqlite", busy_seconds=0.2)
    yield database
    database.close()


@pytest.fixture
def text(database: Database) -> SqliteTextStore:
    store = SqliteTextStore(database, "g1")
    store.ensure()
    return store


@pytest.fixture
def catalog(database: Database) -> SqliteCatalog:
    store = SqliteCatalog(database, "g1", retention=YEAR)
    store.ensure()
    return store


# ----------------------------------------------------------------------------------- registry


@pytest.mark.parametrize("made", [False, True])
def test_looking_for_the_live_generation_waits_for_no_writer(
    database: Database, made: bool
) -> None:
    generation = Generation(name="g1", fingerprint={}, created_at=at(0))
    if made:
        SqliteRegistry(database).create(generation)
        SqliteRegistry(database).switch("g1", expected="")
    with database.write():
        reader = Database(database.path, busy_seconds=0.2)
        registry = SqliteRegistry(reader)
        assert registry.live() == (generation if made else None)
        assert registry.generations() == ([generation] if made else [])
        registry.close()


def test_looking_for_the_live_generation_creates_nothing(database: Database) -> None:
    assert SqliteRegistry(database).live() is None
    with database.read() as db:
        assert db.execute("SELECT count(*) FROM sqlite_master").fetchone() == (0,)


# ------------------------------------------------------------------------------------- tokens


def test_the_index_holds_exactly_the_terms_of_the_analyzer(
    text: SqliteTextStore, database: Database
) -> None:
    words = (
        "E-1042 ORD-99107 v1.2.3 C++ C# x86_64 naïve Ærøskøbing 育児休業 ราคา ǅ İstanbul ß ½ "
        "0x80070005 don't O'Neill 1,234.5 ﬁne e\u0301te\u0301 हिन्दी QUARRY_CONFIG 🏕"
    )
    text.upsert([text_row(words)])
    with database.write() as db:
        db.execute("CREATE VIRTUAL TABLE vocabulary USING fts5vocab(fts_g1, row)")
        indexed = {term for (term,) in db.execute("SELECT term FROM vocabulary")}
    assert indexed == set(analyze(words))


@pytest.mark.parametrize("code", ["E-1042", "ORD-99107", "v1.2.3", "0x80070005", "max_tokens"])
def test_a_code_finds_only_rows_with_the_whole_code(text: SqliteTextStore, code: str) -> None:
    near = text_row(f"{code}9 and 9{code} and {code[:-1]}", doc="near")
    text.upsert([text_row(f"see {code}", doc="exact"), near])
    hits = text.search(code, limit=10, where=EVERYTHING)
    assert hits[0].doc_id == "exact"
    assert all(hit.score < 1000 for hit in hits[1:])


# -------------------------------------------------------------------------------------- files


def lose(database: Database, statement: str) -> None:
    with database.write() as db:
        assert db.execute(statement).rowcount


def test_a_row_takes_nothing_over_from_a_lost_one_whose_number_it_gets(
    text: SqliteTextStore, database: Database
) -> None:
    text.upsert([text_row("zebra E-1042")])
    lose(database, "DELETE FROM chunks_g1")
    text.upsert([text_row("okapi", token=LATER)])
    (hit,) = text.search("okapi E-1042", limit=9, where=EVERYTHING)
    assert hit.revision == LATER and not hit.exact
    assert text.search("zebra", limit=9, where=EVERYTHING) == []


def test_rows_of_a_lost_label_set_do_not_get_a_new_one(
    text: SqliteTextStore, database: Database
) -> None:
    text.upsert([text_row("zebra", row_labels=labels(acl=("staff",)))])
    lose(database, "DELETE FROM labels_g1")
    text.upsert([text_row("okapi", row_labels=labels(acl=("public",)))])
    assert text.search("zebra", limit=9, where=EVERYTHING) == []


def test_label_sets_that_no_row_has_any_more_are_deleted(
    text: SqliteTextStore, database: Database
) -> None:
    shared, own = labels(), labels(tenant="north")
    rows = [
        text_row("one", row_labels=shared, ordinal=0),
        text_row("two", row_labels=shared, ordinal=1),
        text_row("three", row_labels=own, ordinal=2),
    ]
    text.upsert(rows)
    text.delete([rows[0].chunk.row_id, rows[2].chunk.row_id])
    with database.read() as db:
        tenants = db.execute("SELECT tenant FROM labels_g1").fetchall()
    assert tenants == [("default",)]


def test_a_commit_that_fails_in_the_middle_leaves_row_and_history_as_they_were(
    catalog: SqliteCatalog, database: Database
) -> None:
    stored = catalog.commit(document())
    with database.write() as db:
        db.execute(
            "CREATE TRIGGER full BEFORE INSERT ON history_g1"
            " BEGIN SELECT RAISE(ABORT, 'no room'); END"
        )
    with pytest.raises(StoreError):
        catalog.commit(replace(stored, title="half"))
    assert catalog.get(["d1"]) == {"d1": stored}
    assert catalog.history("d1") == [stored]


def test_looking_for_what_has_expired_reads_nothing_else(database: Database) -> None:
    SqliteCatalog(database, "g1", retention=YEAR).ensure()
    with database.read() as db:
        plan = db.execute(
            "EXPLAIN QUERY PLAN SELECT doc_id FROM history_g1 INDEXED BY history_g1_by_age"
            " WHERE replaced < 1 AND doc_id > '' ORDER BY doc_id LIMIT 1"
        ).fetchall()
    assert "SEARCH history_g1 USING INDEX history_g1_by_age (replaced<?)" in plan[0][3]


INCREMENTER = """
    import sys
    from dataclasses import replace
    from datetime import timedelta
    from pathlib import Path
    from quarry.errors import Conflict
    from quarry.stores.sqlite import Database
    from quarry.stores.sqlite_catalog import SqliteCatalog

    catalog = SqliteCatalog(Database(Path(sys.argv[1])), "g1", retention=timedelta(days=365))
    won = 0
    for _ in range(60):
        row = catalog.get(["d1"])["d1"]
        try:
            catalog.commit(replace(row, title=sys.argv[2]))
            won += 1
        except Conflict:
            pass
    print(won)
"""


def test_of_several_processes_exactly_one_wins_each_serial(
    catalog: SqliteCatalog, database: Database
) -> None:
    catalog.commit(document())
    command = [sys.executable, "-c", textwrap.dedent(INCREMENTER), str(database.path)]
    others = [
        subprocess.Popen([*command, str(n)], stdout=subprocess.PIPE, text=True) for n in range(3)
    ]
    won = sum(int(other.communicate(timeout=120)[0]) for other in others)
    assert won > 0
    assert catalog.get(["d1"])["d1"].serial == 1 + won
    assert [row.serial for row in catalog.history("d1")] == list(range(1, 2 + won))


ENDLESS = """
    import itertools, sys
    from dataclasses import replace
    from datetime import timedelta
    from pathlib import Path
    from quarry.stores.sqlite import Database
    from quarry.stores.sqlite_catalog import SqliteCatalog
    from tests.contract.rows import document

    catalog = SqliteCatalog(Database(Path(sys.argv[1])), "g1", retention=timedelta(days=365))
    rows = catalog.commit_many([document(f"d{n}") for n in range(20)])
    for n in itertools.count():
        rows = catalog.commit_many([replace(row, title=str(n)) for row in rows])
        print(n, flush=True)
"""


def test_a_killed_process_leaves_whole_commits(catalog: SqliteCatalog, database: Database) -> None:
    root = str(Path(__file__).resolve().parents[3])
    command = [sys.executable, "-c", textwrap.dedent(ENDLESS), str(database.path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=root) as other:
        assert other.stdout
        while int(other.stdout.readline()) < 20:
            pass
        other.kill()
    rows = catalog.scan()
    assert len({row.serial for row in rows}) == 1
    for row in rows:
        assert catalog.history(row.doc_id)[-1] == row
        assert len(catalog.history(row.doc_id)) == row.serial
    assert isinstance(catalog.commit(rows[0]), Document)


# ------------------------------------------------------------------------------------- errors


def test_a_file_that_another_process_keeps_locked_is_unavailable(
    catalog: SqliteCatalog, database: Database
) -> None:
    other = sqlite3.connect(database.path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreUnavailable, match="locked"):
        catalog.commit(document())
    other.execute("ROLLBACK")
    other.close()
    assert catalog.commit(document()).serial == 1


def test_a_file_that_is_no_database_is_damaged(tmp_path: Path) -> None:
    path = tmp_path / "quarry.sqlite"
    path.write_text("not a database " * 1000)
    with pytest.raises(StoreError, match="damaged"):
        SqliteCatalog(Database(path), "g1", retention=YEAR).ensure()


def test_a_folder_that_cannot_be_made_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(StoreError, match="cannot be made"):
        open_database(tmp_path / "file" / "data")


def test_asking_before_anything_was_made_is_an_error_of_ours(database: Database) -> None:
    with pytest.raises(StoreError):
        SqliteCatalog(database, "g1", retention=YEAR).get(["d1"])


def test_a_closed_store_says_so(catalog: SqliteCatalog) -> None:
    catalog.close()
    with pytest.raises(StoreError, match="closed"):
        catalog.get(["d1"])


def test_an_address_that_is_not_unicode_is_an_error_of_ours(catalog: SqliteCatalog) -> None:
    with pytest.raises(StoreError, match="rename"):
        catalog.commit(document(address="caf\udce9.md"))


@pytest.mark.parametrize("name", ["", "G1", "g1; DROP TABLE live", "1g", "g" * 40, "g-1"])
def test_only_names_of_generations_become_names_of_tables(database: Database, name: str) -> None:
    with pytest.raises(StoreError, match="no name of a generation"):
        SqliteTextStore(database, name)


CODES = sorted(
    value
    for name, value in vars(sqlite3).items()
    if name.startswith("SQLITE_") and isinstance(value, int) and 0 < value < 100
)


@pytest.mark.parametrize("code", CODES)
def test_every_sqlite_error_is_one_of_ours(code: int) -> None:
    error = sqlite3.OperationalError("it failed")
    error.sqlite_errorcode = code
    with pytest.raises(StoreError), translated(Path("q.sqlite")):
        raise error
    told = str(translation(error, Path("q.sqlite")))
    assert "q.sqlite" in told
    assert "it failed" not in told, "SQLite's own text may quote a question"


@pytest.mark.parametrize(
    "kind", [sqlite3.DatabaseError, sqlite3.IntegrityError, sqlite3.InterfaceError, sqlite3.Error]
)
def test_errors_without_a_code_are_ours_too(kind: type[sqlite3.Error]) -> None:
    with pytest.raises(StoreError), translated(Path("q.sqlite")):
        raise kind("it failed")
