"""Who asks and what is asked, before anything is searched."""

from __future__ import annotations

from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from quarry.cli.catalog import NOTHING_YET
from quarry.cli.main import run
from quarry.cli.requests import Askers, request_of
from quarry.cli.server import RunningServer
from quarry.errors import ConfigError
from quarry.records import Principal
from quarry.settings import AccessSettings, Settings, load_settings
from quarry.stores.factory import open_registry

NOBODY = Principal()


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    users = tmp_path / "users.yaml"
    users.write_text("users: {mei: {groups: [staff, canada], tenant: acme}}\n")
    return Settings(access=AccessSettings(users_file=users))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory, with settings that say nothing and no index."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("QUARRY_CONFIG", raising=False)
    (tmp_path / "quarry.yaml").touch()
    return tmp_path


@pytest.mark.parametrize(
    ("user", "groups", "expected"),
    [
        ("", None, Principal()),
        ("mei", None, Principal(user="mei", groups=("staff", "canada"), tenant="acme")),
        ("mei", ["hr"], Principal(user="mei", groups=("hr",), tenant="acme")),
        ("mei", [], Principal(user="mei", groups=(), tenant="acme")),
        ("zoe", None, Principal(user="zoe")),
        ("", ["hr"], Principal(groups=("hr",))),
    ],
)
def test_a_person_has_the_groups_of_the_file_unless_others_are_given(
    settings: Settings, user: str, groups: list[str] | None, expected: Principal
) -> None:
    assert Askers(settings).named(user, groups) == expected


def test_without_a_users_file_a_person_has_a_name_and_no_groups() -> None:
    assert Askers(Settings()).named("mei", None) == Principal(user="mei")


def test_a_users_file_that_cannot_be_read_stops_the_question(tmp_path: Path) -> None:
    broken = Settings(access=AccessSettings(users_file=tmp_path / "none.yaml"))
    with pytest.raises(ConfigError):
        Askers(broken)


def test_what_is_not_given_is_as_the_settings_say() -> None:
    body: dict[str, Any] = {"question": "q", "mode": "dense", "filter": "", "all_versions": True}
    settings = Settings()
    request = request_of(settings, body, NOBODY)
    assert request.top_k == settings.retrieval.top_k
    assert request.deadline_s == settings.serve.deadline_s
    assert request.mode == "dense"
    assert request.all_versions
    assert request_of(settings, {**body, "top_k": 3}, NOBODY).top_k == 3


@pytest.mark.parametrize("command", ["ask", "search"])
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([""], "empty"),
        ([" \n\t "], "empty"),
        (["x" * 3000], "2000 characters"),
        (["why?", "--filter", "region ="], "filter"),
        (["why?", "--groups", "public"], "group"),
        (["why?", "--top-k", "0"], "top-k"),
        (["why?", "--mode", "psychic"], "psychic"),
        (["why?", "--as-of", "yesterday"], "2026-01-31"),
        (["why?", "--as-of", ""], "2026-01-31"),
        (["why?", "--as-of", "2026-01-31"], "stores.retention_days"),
        (["why?"], "Nothing has been ingested yet"),
    ],
)
def test_what_cannot_be_asked_ends_in_one_sentence_before_a_model_is_loaded(
    command: str,
    arguments: list[str],
    said: str,
    folder: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run([command, *arguments]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.count("\n") == 1
    assert said in printed.err
    assert not (folder / ".quarry").exists()


@pytest.mark.parametrize(
    "command",
    ["ask why?", "search why?", "explain why?", "verify", "delete x", "history x", "calibrate set"],
)
def test_after_an_ingest_of_an_empty_folder_there_is_still_nothing_and_no_model_is_loaded(
    command: str,
    folder: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (folder / "empty").mkdir()
    case = '{"id": "a", "question": "why?", "kind": "unanswerable", "status": "refused"}'
    (folder / "set").write_text(case + "\n")
    assert run(["ingest", "empty"]) == 0
    printed = capsys.readouterr()
    assert printed.out == "empty: there is no document to read; check the path.\n"
    assert run(command.split()) == 2
    printed = capsys.readouterr()
    assert (printed.out, printed.err) == ("", f"{NOTHING_YET}\n")
    with closing(open_registry(load_settings(folder / "quarry.yaml"))) as registry:
        assert registry.generations() == []


@pytest.mark.parametrize(
    ("time", "said"),
    [("2999-01-01", "future"), ("2001-01-31", "30 days"), ("2026-13-01", "2026-01-31")],
)
@pytest.mark.parametrize("command", ["ask", "search", "explain"])
def test_a_time_that_cannot_be_gone_back_to_ends_in_one_sentence(
    command: str,
    time: str,
    said: str,
    folder: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (folder / "quarry.yaml").write_text("stores: {retention_days: 30}\n")
    assert run([command, "why?", "--as-of", time]) == 2
    printed = capsys.readouterr()
    assert printed.out == "" and printed.err.count("\n") == 1
    assert said in printed.err
    assert not (folder / ".quarry").exists()


def test_a_time_reaches_the_search() -> None:
    body = {"question": "q", "mode": "hybrid", "filter": "", "all_versions": False}
    assert request_of(Settings(), body, NOBODY).as_of is None
    request = request_of(Settings(), {**body, "as_of": "2026-01-31T14:30+01:00"}, NOBODY)
    assert request.as_of == datetime(2026, 1, 31, 13, 30, tzinfo=UTC)


@pytest.mark.parametrize(
    ("settings_text", "arguments", "said"),
    [
        ("access: {users_file: users.yaml}", ["--as", "mie"], "mie is not in"),
        ("", ["--as", "mei"], "access.users_file is not set"),
        ("access: {users_file: users.yaml}", ["--as", "mei"], ""),
        ("access: {users_file: users.yaml}", ["--as", "mie", "--groups", "hr"], ""),
        ("access: {users_file: users.yaml}", [], ""),
    ],
)
def test_a_name_that_is_not_known_is_told(
    settings_text: str,
    arguments: list[str],
    said: str,
    folder: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (folder / "quarry.yaml").write_text(settings_text + "\n")
    (folder / "users.yaml").write_text("users: {mei: {groups: [staff]}}\n")
    assert run(["search", "why?", *arguments]) == 2  # there is no index
    *notes, nothing = capsys.readouterr().err.splitlines()
    assert nothing == NOTHING_YET
    assert bool(notes) == bool(said)
    assert said in "".join(notes)


def test_where_a_server_answers_its_users_decide(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    server = RunningServer(url="http://127.0.0.1:9", token="t")
    monkeypatch.setattr(RunningServer, "find", lambda _folder: server)
    run(["search", "why?", "--as", "ruth"])
    said = capsys.readouterr().err
    assert "access.users_file is not set here; the server's own file of users decides" in said
    assert "has no groups" not in said
