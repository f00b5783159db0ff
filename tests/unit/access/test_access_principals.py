"""Principals hold public, their groups and their own name; no name widens what they may read."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from structlog.testing import capture_logs

from quarry.access.principals import Users, load_users, scopes, token_hash
from quarry.access.users_file import FollowedUsers
from quarry.errors import ConfigError, NotSignedIn, UsageError
from quarry.records import PUBLIC, Principal


def test_everybody_holds_public_and_nobody_more() -> None:
    assert scopes(Principal()) == ("public",)


def test_a_principal_holds_its_groups_and_its_own_name() -> None:
    assert scopes(Principal(user="ana", groups=("hr", "hr", "Team 7"))) == (
        "public",
        "hr",
        "Team 7",
        "user:ana",
    )


@pytest.mark.parametrize(
    "group",
    ["", " ", "public", "PUBLIC", "user:ana", "User:ana", "USER:", "a,b", "a\nb", "\0", " hr",
     "hr ", 'h"r', "h'r", "h\\r", "x" * 129, "\ud800", "hr\u200b", "h\u202er", "h\u2028r"],
)  # fmt: skip
def test_a_group_that_could_be_taken_for_something_else_is_refused(group: str) -> None:
    with pytest.raises(UsageError) as caught:
        scopes(Principal(user="eve", groups=("hr", group)))
    assert str(caught.value).endswith(".")


@pytest.mark.parametrize("user", [" ana", "a,b", "a\nb", "\0", "x" * 129, "ana\u200b"])
def test_a_user_name_that_is_no_name_is_refused(user: str) -> None:
    with pytest.raises(UsageError):
        scopes(Principal(user=user))


def test_one_spelling_of_a_name_is_one_scope() -> None:
    assert scopes(Principal(user="Zoe\u0308")) == scopes(Principal(user="Zo\u00eb"))


@given(st.text(), st.lists(st.text(), max_size=3))
def test_no_names_give_a_scope_that_was_not_asked_for(user: str, groups: list[str]) -> None:
    try:
        held = scopes(Principal(user=user, groups=tuple(groups)))
    except UsageError:
        return
    people = [scope for scope in held if scope.casefold().startswith("user:")]
    assert len(people) == bool(user)
    assert held.count(PUBLIC) == 1
    assert len(held) <= 1 + len(groups) + bool(user)


def write(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "users.yaml"
    path.write_text(text, encoding="utf-8")
    return path


HASH = sha256(b"secret-of-ana").hexdigest()
OTHER = sha256(b"secret-of-ben").hexdigest()
GOOD = f"""
users:
  ana: {{groups: [hr, staff], tenant: acme, token_sha256: {HASH}}}
  ben: {{token_sha256: {OTHER}}}
  cy: {{}}
"""


@pytest.fixture
def users(tmp_path: Path) -> Users:
    return load_users(write(tmp_path, GOOD))


def test_people_are_found_by_name(users: Users) -> None:
    assert users.named("ana") == Principal(user="ana", groups=("hr", "staff"), tenant="acme")
    assert users.named("cy") == Principal(user="cy")
    assert len(users) == 3


def test_a_user_without_anything_has_no_groups(tmp_path: Path) -> None:
    users = load_users(write(tmp_path, "users:\n  ruth:\n"))
    assert users.named("ruth") == Principal(user="ruth")


def test_somebody_unknown_has_no_groups(users: Users) -> None:
    assert users.named("zoe") == Principal(user="zoe")


def test_a_token_says_who_somebody_is(users: Users) -> None:
    assert users.by_token("secret-of-ana").user == "ana"
    assert users.by_token("secret-of-ben").user == "ben"
    assert token_hash("secret-of-ana") == HASH


@pytest.mark.parametrize(
    "token", ["", "secret-of-an", HASH, "secret-of-cy", "\ud800", "x" * 10_000]
)
def test_any_other_token_says_nothing(users: Users, token: str) -> None:
    with pytest.raises(NotSignedIn) as caught:
        users.by_token(token)
    assert not token or token not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "users"),
        ("[]", "users"),
        ("users: [ana]", "users"),
        ("users: {ana: {groups: hr}}", "users.ana.groups"),
        ("users: {ana: {groups: [1]}}", "users.ana.groups.0"),
        ("users: {ana: {group: [hr]}}", "users.ana.group"),
        ("users: {ana: {}}\nroles: {}", "roles"),
        ("users: {ana: {token_sha256: abc}}", "users.ana.token_sha256"),
        ("users: {ana: {groups: [public]}}", "cannot be called public"),
        ("users: {ana: {groups: ['user:ben']}}", "cannot be called public"),
        ("users: {'a,b': {}}", "name of a user"),
        ("users: {ana: {tenant: ''}}", "name of a tenant"),
        (f"users: {{a: {{token_sha256: {HASH}}}, b: {{token_sha256: {HASH}}}}}", "same token"),
        ("users: {ana: {}, ana: {groups: [hr]}}", "line 1 is not valid YAML: 'ana' is given twice"),
        (
            "users:\n  ana: {groups: [a], groups: [b]}",
            "line 2 is not valid YAML: 'groups'",
        ),
        ("users: {Zoe\u0308: {}, Zo\u00eb: {}}", "one name"),
        ("users: {1: {}}", "users"),
        ("users: {: {}", "not valid YAML"),
        ("users: !!python/object/apply:os.getcwd []", "not valid YAML"),
    ],
)
def test_a_bad_file_is_named_with_what_is_wrong(tmp_path: Path, text: str, says: str) -> None:
    path = write(tmp_path, text)
    with pytest.raises(ConfigError) as caught:
        load_users(path)
    message = str(caught.value)
    assert says in message and str(path) in message
    assert "\n" not in message and message.endswith(".")


BROKEN = [
    ("users:\n  ana: {groups: [hr]\n", "line 3"),
    ("users:\n  ana: {groups: [a], groups: [b]}\n", "line 2"),
    ("users:\n  ana: {}\n  ben:\n    tenant: 2026-13-45\n", "line 4"),
    ("users:\n  ana: {}\n  ben: {tenant: 0x_}\n", "line 3"),
    ("users:\n  ana: {tenant: !s3!cret x}\n", "line 2"),
    ("users:\n  ana: {}\n  ben:\n    groups: hr\n", "line 4"),
    ("users:\n  ana: {}\n  ben:\n    groups:\n    - hr\n    - 1\n", "line 6"),
    ("users:\n  ana: {}\n  ben:\n    token_sha256: s3cret\n", "line 4"),
    ("users:\n  ana: {}\n  ben: {token_sha256:s3cret}\n", "line 3"),
    ("users:\n  ana: {}\n  1: {}\n", "line 3"),
    ("users:\n  ana: {}\nroles: {}\n", "line 3"),
    ("users:\n  ana: {}\n  ben: {groups: [public]}\n", "line 3"),
    ("users:\n  ana: {}\n  'a,b': {}\n", "line 3"),
    (f"users:\n  a: {{token_sha256: {HASH}}}\n  b: {{token_sha256: {HASH}}}\n", "line 3"),
    ("users:\n  Zoe\u0308: {}\n  ana: {}\n  Zo\u00eb: {}\n", "line 4"),
]


@pytest.mark.parametrize(("text", "line"), BROKEN)
def test_the_line_of_the_fault_is_named_and_no_secret(tmp_path: Path, text: str, line: str) -> None:
    path = write(tmp_path, text)
    with pytest.raises(ConfigError) as caught:
        load_users(path)
    message = str(caught.value)
    assert message.startswith(f"{path}, {line}") and message.endswith(".")
    assert "s3" not in message and HASH not in message and "\n" not in message


def test_a_missing_or_binary_file_is_a_config_error(tmp_path: Path) -> None:
    binary = tmp_path / "binary.yaml"
    binary.write_bytes(b"\xff\xfe\x00users")
    for path in (tmp_path / "none.yaml", tmp_path):
        with pytest.raises(ConfigError, match=r"check access\.users_file\.$"):
            load_users(path)
    with pytest.raises(ConfigError, match=r"binary\.yaml is not valid YAML"):
        load_users(binary)


# ------------------------------------------------------------------------------ while a server runs


def test_what_the_file_of_users_takes_away_ends_while_a_server_runs(tmp_path: Path) -> None:
    now = 0.0
    path = tmp_path / "users.yaml"
    path.write_text(f"users:\n  ruth: {{groups: [hr], token_sha256: {token_hash('secret')}}}\n")
    known = FollowedUsers(path, clock=lambda: now)
    assert known().by_token("secret").groups == ("hr",)

    path.write_text("users:\n  ruth: {groups: []}\n")
    now += 2
    assert known().named("ruth").groups == ()
    with pytest.raises(NotSignedIn):
        known().by_token("secret")


@pytest.mark.parametrize("broken", ["users: [", None])
def test_while_the_file_of_users_cannot_be_read_nobody_is_known(
    broken: str | None, tmp_path: Path
) -> None:
    now = 0.0
    path = tmp_path / "users.yaml"
    good = "users:\n  ruth: {groups: [hr]}\n"
    path.write_text(good)
    known = FollowedUsers(path, clock=lambda: now)
    path.unlink() if broken is None else path.write_text(broken)
    now += 2
    assert known().named("ruth").groups == ()
    path.write_text(good)
    now += 2
    assert known().named("ruth").groups == ("hr",)


@pytest.mark.parametrize(("text", "line"), BROKEN)
def test_the_log_of_a_server_tells_what_is_wrong_with_the_file_as_its_start_does(
    text: str, line: str, tmp_path: Path
) -> None:
    now = 0.0
    path = write(tmp_path, GOOD)
    known = FollowedUsers(path, clock=lambda: now)
    write(tmp_path, text)
    now += 2
    with capture_logs() as logs:
        assert known().named("ana").groups == ()
    with pytest.raises(ConfigError) as caught:
        load_users(path)
    (told,) = logs
    assert (told["event"], told["reason"]) == ("users_file_not_read", str(caught.value))
    assert line in told["reason"]


def test_nobody_is_known_either_while_reading_the_file_runs_into_a_fault_of_the_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 0.0
    known = FollowedUsers(write(tmp_path, GOOD), clock=lambda: now)
    write(tmp_path, GOOD + "  dan: {}\n")

    def fails(_path: Path) -> Users:
        raise RuntimeError

    monkeypatch.setattr("quarry.access.users_file.load_users", fails)
    now += 2
    with pytest.raises(RuntimeError):
        known()
    assert known().named("ana").groups == ()
