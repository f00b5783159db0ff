"""What is settled before Ray starts: the port, the address file, the reason for a failed start."""

from __future__ import annotations

import json
import socket
import stat
from pathlib import Path
from types import SimpleNamespace

import pytest
from structlog.testing import capture_logs

from quarry.errors import (
    ConfigError,
    DataDirBusy,
    FingerprintMismatch,
    ModelError,
    PortInUse,
)
from quarry.settings import Settings
from serve.serving.app import (
    SERVER_FILE,
    _announced,
    _delete_app,
    _only_server,
    _published,
    _why,
    run,
)


def settings_for(folder: Path, **serve: object) -> Settings:
    return Settings.model_validate({"data_dir": folder / "data", "serve": serve})


def test_a_port_in_use_is_said_before_anything_starts(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(PortInUse, match=f"Port {port} of 127.0.0.1 is in use"):
            run(settings_for(tmp_path, port=port), block=False)
    assert not (tmp_path / "data").exists()


def test_an_address_that_is_not_of_this_machine_is_said_too(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"cannot listen on 192\.0\.2\.1"):
        run(settings_for(tmp_path, host="192.0.2.1", port=0), block=False)


def test_a_users_file_that_cannot_be_read_is_said_before_anything_starts(tmp_path: Path) -> None:
    settings = settings_for(tmp_path, port=0).model_copy(
        update={"access": Settings().access.model_copy(update={"users_file": tmp_path / "none"})}
    )
    with pytest.raises(ConfigError, match="users_file"):
        run(settings, block=False)


def test_the_address_file_is_for_this_user_only_and_goes_with_the_server(tmp_path: Path) -> None:
    path = tmp_path / SERVER_FILE
    with _published(tmp_path, {"url": "http://127.0.0.1:1", "token": "t"}):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert json.loads(path.read_text())["url"] == "http://127.0.0.1:1"
    assert list(tmp_path.iterdir()) == []


def test_the_gateway_of_our_own_ray_waits_for_the_address_file_and_no_other(tmp_path: Path) -> None:
    settings = settings_for(tmp_path)
    waits, elsewhere = _announced(settings, own=True), _announced(settings, own=False)
    assert (waits(), elsewhere()) == (False, True)
    with _published(settings.data_dir, {"url": "u", "token": "t"}):
        assert waits()


def test_a_server_that_ends_leaves_the_address_of_another_alone(tmp_path: Path) -> None:
    with _published(tmp_path, {"url": "http://127.0.0.1:1", "token": "first"}):
        with _published(tmp_path, {"url": "http://127.0.0.1:2", "token": "second"}):
            pass
        assert not (tmp_path / SERVER_FILE).exists()
        (tmp_path / SERVER_FILE).write_text(json.dumps({"url": "u", "token": "third"}))
    assert json.loads((tmp_path / SERVER_FILE).read_text())["token"] == "third"


@pytest.mark.parametrize(
    ("message", "kind", "says"),
    [
        (
            "ray::Replica()\n  File x\nquarry.errors.FingerprintMismatch: The index differs.",
            FingerprintMismatch,
            "The index differs.",
        ),
        ("RayTaskError(ConfigError): ...\nquarry.errors.ConfigError: No model.", ConfigError, "No"),
        (
            "quarry.errors.MissingExtra: x is not installed; run: pip install -e '.[x]'",
            ConfigError,
            "pip install -e '.[x]'",
        ),
        ("Killed", ModelError, "its log above says why"),
    ],
)
def test_a_part_that_cannot_start_says_why_in_one_sentence(
    message: str, kind: type[Exception], says: str
) -> None:
    application = SimpleNamespace(deployments={"retriever": SimpleNamespace(message=message)})
    status = SimpleNamespace(applications={"quarry": application})
    error = _why(status, RuntimeError("Deploying application quarry failed"))
    assert type(error) is kind
    assert says in str(error) and "\n" not in str(error)


def test_a_data_folder_has_one_server_at_a_time(tmp_path: Path) -> None:
    first = _only_server(tmp_path)
    with first, pytest.raises(DataDirBusy, match="running already"), _only_server(tmp_path):
        pass
    with _only_server(tmp_path):
        pass


def test_replicas_that_do_not_end_are_logged_and_do_not_keep_the_server_from_stopping(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from ray import serve

    def hangs(_name: str) -> None:
        raise TimeoutError

    monkeypatch.setattr(serve, "delete", hangs)
    with capture_logs() as logged:
        _delete_app()
    assert [(line["log_level"], line["event"]) for line in logged] == [
        ("warning", "replicas_did_not_end")
    ]
