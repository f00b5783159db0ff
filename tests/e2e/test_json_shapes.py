"""What commands print with --json has the keys that docs/api.md gives, and no others."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import ingest.run
from evals.measuring.judge import ModelJudge
from quarry.cli.commands import evaluate_sets
from quarry.cli.main import run
from quarry.cli.reference import command_block, command_names
from tests.conftest import REPO
from tests.e2e.ingest_world import InlinePipeline
from tests.unit.serve.serve_world import Scripted

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

API = (REPO / "docs" / "api.md").read_text(encoding="utf-8")
SETTINGS = """\
sources: {default: {default_acl: [public]}}
embedder: {model: fake}
reranker: {kind: fake}
ingest: {parse_workers: 1}
"""
COSTS = {number: f"item{number} costs {number} euros" for number in range(1, 25)}
LABEL = {"id": "a", "judgement": "faithfulness", "passages": ["p"], "answer": "a", "label": "yes"}
CALLS: dict[str, tuple[str, ...]] = {
    "ingest": ("docs",),
    "search": ("What does item3 cost?",),
    "ask": ("What does item3 cost?",),
    "explain": ("What does item3 cost?", "--expect", COSTS[3]),
    "calibrate": ("set.jsonl",),
    "status": (),
    "documents": (),
    "show": ("page1.md",),
    "history": ("page1.md",),
    "verify": (),
    "doctor": (),
    "eval run": ("set.jsonl",),
    "eval agree": ("labels.jsonl",),
    "eval inject": ("set.jsonl", "--documents", "docs"),
    "eval beir": ("beir", "--modes", "lexical"),
    "diagnose": ("set.jsonl",),
    "tune settings": ("set.jsonl", "--try", "retrieval.rrf_k=10"),
    "tune fusion": ("set.jsonl", "--output", "fusion.json"),
    "delete": ("page1.md",),
}
"""In an order that leaves each what it needs."""
ENDS = {"doctor": {0, 1}, "eval inject": {0, 4}}
"""Exit codes besides 0 that say what was found, not that the command failed."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("shapes")
    (folder / "quarry.yaml").write_text(SETTINGS)
    (folder / "docs").mkdir()
    cases = []
    for number, cost in COSTS.items():
        page = f"# Item {number}\n\nThe {cost}.\n"
        (folder / "docs" / f"page{number}.md").write_text(page)
        question = f"What does item{number} cost?"
        case = {"id": f"q{number}", "kind": "answerable", "question": question}
        cases.append({**case, "status": "answered", "evidence": [[cost]]})
    (folder / "set.jsonl").write_text("".join(json.dumps(case) + "\n" for case in cases))
    (folder / "labels.jsonl").write_text(json.dumps(LABEL) + "\n")
    (folder / "beir" / "qrels").mkdir(parents=True)
    (folder / "beir" / "corpus.jsonl").write_text('{"_id": "d", "title": "", "text": "Ropes."}\n')
    (folder / "beir" / "queries.jsonl").write_text('{"_id": "q", "text": "ropes"}\n')
    qrels = "query-id\tcorpus-id\tscore\nq\td\t1\n"
    (folder / "beir" / "qrels" / "test.tsv").write_text(qrels)
    return folder


def documented(command: str) -> set[str]:
    """Top-level keys of what docs/api.md shows for a command."""
    if command in ("search", "ask"):
        heading = {"search": "## Search", "ask": "## Answer"}[command]
        example = re.search(rf"^{heading}$.*?^```json\n(.*?)^```$", API, re.M | re.S)
    elif command == "explain":
        (table,) = re.findall(r"^## Explain$(.*?)^## ", API, re.M | re.S)
        return set(re.findall(r"^\| `(\w+)` \|", table, re.M))
    else:
        name = "eval DATASET" if command == "eval run" else command
        label = rf"^`quarry {name}(?: [A-Z]+)? --json`"
        example = re.search(rf"{label}.*?^```json\n(.*?)^```$", API, re.M | re.S)
    assert example, f"docs/api.md shows no JSON of quarry {command}"
    shown: Mapping[str, Any] = json.loads(example[1])
    return set(shown)


def test_each_command_prints_the_documented_keys(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(folder)
    monkeypatch.delenv("QUARRY_CONFIG", raising=False)
    monkeypatch.setattr(ingest.run, "_ray_pipeline", InlinePipeline)
    said = '{"reason": "it says so", "verdict": "yes"}'
    monkeypatch.setattr(evaluate_sets, "judge_of", lambda _: ModelJudge(Scripted(said), sent=5))
    for command, arguments in CALLS.items():
        capsys.readouterr()
        ended = run([*command.split(), *arguments, "--json"])
        printed = capsys.readouterr()
        assert ended in ENDS.get(command, {0}), f"{command}: {printed.err}"
        assert set(json.loads(printed.out)) == documented(command), command


def test_every_command_with_json_is_tried() -> None:
    with_json = {name for name in command_names() if "| `--json` |" in command_block(name)}
    assert with_json == CALLS.keys()
