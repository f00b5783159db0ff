"""`quarry eval` on the command line, over systems that answer as they are told."""

from __future__ import annotations

import json
from collections import Counter
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest

from evals.improving.seen import fingerprint
from evals.running.system import System as Opened
from ingest.summary import RunSummary
from quarry.cli.commands import evaluate
from quarry.cli.commands.evaluate import chosen, labels
from quarry.cli.evaluating import Documents, described, note_indexed
from quarry.cli.main import run
from quarry.cli.requests import request_of
from quarry.errors import ModelError, UsageError
from quarry.fusion import FEATURES, Fusion, save_fusion
from quarry.records import DocState, Message, Mode, Principal
from quarry.settings import Settings
from tests.unit.evals.evals_world import System, answer_json, case, search_json

CASES = [
    {"id": "a", "question": "A", "kind": "answerable", "evidence": [["this"]], "must": ["this"],
     "status": "answered", "slices": ["hard"]},
    {"id": "b", "question": "B", "kind": "unanswerable", "status": "refused"},
]  # fmt: skip


@pytest.fixture
def world(tmp_path, monkeypatch):
    """Settings files `good.yaml` and `bad.yaml`, whose systems do and do not find case a."""
    (tmp_path / "set.jsonl").write_text("".join(json.dumps(each) + "\n" for each in CASES))
    good = System(search={"A": search_json("this")}, answer={"A": answer_json()})
    systems = {"good": good, "bad": System()}
    for number, name in enumerate(systems):
        (tmp_path / f"{name}.yaml").write_text(f"retrieval: {{top_k: {number + 1}}}\n")

    def opening(settings, documents):
        @contextmanager
        def opened():
            yield Opened(ask=list(systems.values())[settings.retrieval.top_k - 1])

        return opened

    monkeypatch.setattr(evaluate, "opening", opening)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def report(capsys, *arguments):
    code = run(["eval", "set.jsonl", "--json", *arguments])
    out, err = capsys.readouterr()
    return code, json.loads(out) if out else err


def test_a_set_is_evaluated_without_naming_the_command(world, capsys):
    code, told = report(capsys, "--config", "good.yaml")
    assert code == 0 and told["sets"] == ["set.jsonl"]
    assert told["runs"][0]["figures"]["measures"]["pass_rate"] == 1.0
    assert run(["eval", "run", "set.jsonl", "--config", "good.yaml"]) == 0
    assert "pass_rate" in capsys.readouterr().out


def test_two_settings_are_compared_case_by_case(world, capsys):
    code, told = report(capsys, "--config", "bad.yaml", "--config", "good.yaml")
    (comparison,) = told["comparisons"]
    assert code == 0 and (comparison["first"], comparison["second"]) == ("bad", "good")
    assert comparison["gained"] == ["a"] and "cannot tell" in comparison["sentence"]


def test_settings_files_of_one_name_are_told_apart_by_their_folders(world, capsys):
    for name, config in (("old", "bad"), ("new", "good")):
        (world / name).mkdir()
        (world / name / "quarry.yaml").write_text((world / f"{config}.yaml").read_text())
    arguments = ["--config", "old/quarry.yaml", "--config", "new/quarry.yaml"]
    _, told = report(capsys, *arguments, "--html", "out.html")
    assert [each["label"] for each in told["runs"]] == ["old/quarry", "new/quarry"]
    assert "new/quarry against old/quarry" in (world / "out.html").read_text()
    assert labels([Path("a.yaml"), Path("a.yaml")]) == ["a 1", "a 2"]
    assert labels([None]) == ["settings"]


def test_two_modes_are_compared_too(world, capsys):
    _, told = report(capsys, "--config", "good.yaml", "--mode", "lexical", "--mode", "hybrid")
    assert [each["label"] for each in told["runs"]] == ["good lexical", "good hybrid"]


def test_a_gate_that_is_not_met_exits_with_four(world, capsys):
    (world / "gate.yaml").write_text("slices: {hard: {minimum: {pass_rate: 1}}}\n")
    code, told = report(capsys, "--config", "good.yaml", "--gate", "gate.yaml")
    assert (code, told["passed"]) == (0, True)
    code, told = report(capsys, "--config", "bad.yaml", "--gate", "gate.yaml")
    assert (code, told["passed"]) == (4, False)


def test_an_earlier_report_is_a_baseline(world, capsys):
    assert report(capsys, "--config", "good.yaml", "--save", "before.json")[0] == 0
    (world / "gate.yaml").write_text("no_lost: [hard]\n")
    code, told = report(
        capsys, "--config", "bad.yaml", "--baseline", "before.json", "--gate", "gate.yaml"
    )
    assert code == 4 and told["comparisons"][0]["lost"] == ["a"]


def test_what_is_done_is_written_before_a_failure_is_told(world, capsys):
    (world / "gate.yaml").write_text("minimum: {citation_precision: 0.5}\n")
    arguments = ["--config", "bad.yaml", "--gate", "gate.yaml", "--save", "out.json"]
    code = run(["eval", "set.jsonl", *arguments])
    assert code == 2 and "citation_precision" in capsys.readouterr().err
    saved = json.loads((world / "out.json").read_text())
    assert len(saved["runs"][0]["cases"]) == 2 and "citation_precision" in saved["failure"]


def test_a_judge_that_cannot_be_asked_is_told_before_a_run_counts_on_it(world, capsys, monkeypatch):
    async def check():
        raise ModelError("The judge could not be asked.")

    monkeypatch.setattr(evaluate, "judge_of", lambda _: SimpleNamespace(check=check))
    code, told = report(capsys, "--config", "good.yaml", "--judge", "--save", "out.json")
    assert code == 1 and "The judge could not be asked" in told
    assert not (world / "out.json").exists()


def test_reports_are_written_beside_the_output(world, capsys):
    arguments = ["--config", "good.yaml", "--junit", "out.xml", "--html", "out.html"]
    assert report(capsys, *arguments)[0] == 0
    assert (world / "out.xml").read_text().startswith("<?xml")
    assert (world / "out.html").read_text().startswith("<!doctype html>")


@pytest.mark.parametrize(
    ("seen", "told"),
    [(("What?", "A"), "from 1 of these 2 questions"), (("What?",), ""), ((), "does not say")],
)
def test_a_report_says_when_weights_were_learned_from_questions_that_it_grades(
    world, capsys, seen, told
):
    fusion = Fusion(
        weights=dict.fromkeys(FEATURES, 0.0),
        learned_from="another name",
        seen=tuple(map(fingerprint, seen)),
    )
    save_fusion(fusion, world / "weights.json", {})
    (world / "good.yaml").write_text("retrieval: {top_k: 1, fusion_file: weights.json}\n")
    _, report_ = report(capsys, "--config", "good.yaml")
    notes = [note for note in report_["notes"] if "learned from another name" in note]
    assert bool(notes) is bool(told) and all(told in note for note in notes)


def test_a_report_says_when_nobody_knows_the_people_of_the_cases(world, capsys):
    with (world / "set.jsonl").open("a") as lines:
        lines.write(json.dumps(CASES[1] | {"id": "c", "person": "mei"}) + "\n")
    _, told = report(capsys, "--config", "good.yaml")
    assert any("1 people of the cases have no groups" in note for note in told["notes"])


def test_only_the_cases_of_a_slice(world, capsys):
    code, told = report(capsys, "--config", "good.yaml", "--slice", "hard")
    assert code == 0 and [each["id"] for each in told["runs"][0]["cases"]] == ["a"]
    code, told = report(capsys, "--config", "good.yaml", "--slice", "soft")
    assert code == 2 and "'soft'" in told


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--url", "http://x", "--documents", "d"], "--url"),
        (["--gate", "none.yaml"], "no gate"),
        (["--baseline", "none.json"], "--save"),
        (["--url", "http://x", "--token-file", "none"], "token file"),
        (["--url", "http://x", "--exact"], "--exact"),
        (["--save", "none/out.json"], "no folder for none/out.json"),
    ],
)
def test_what_does_not_go_together_or_is_not_there_is_told_in_a_sentence(
    world, capsys, arguments, told
):
    code, said = report(capsys, "--config", "good.yaml", *arguments)
    assert code == 2 and told in said


def test_a_collection_becomes_a_set(tmp_path, capsys):
    (tmp_path / "sheet.csv").write_text("question,must\nWhat?,this\n")
    output = tmp_path / "set.jsonl"
    assert run(["eval", "import", str(tmp_path / "sheet.csv"), "--output", str(output)]) == 0
    assert json.loads(output.read_text())["must"] == ["this"]


def test_documents_may_have_the_name_of_a_source():
    named, plain = Documents.parse("shop=a/b"), Documents.parse("a/b")
    assert (named.source, str(named.folder)) == ("shop", "a/b")
    assert (plain.source, str(plain.folder)) == (None, "a/b")


def test_a_body_asks_in_process_what_it_asks_of_a_server():
    body = {
        "question": "q",
        "mode": "dense",
        "top_k": 3,
        "rerank": False,
        "all_versions": True,
        "conversation": [{"role": "user", "content": "before"}],
    }
    asked = request_of(Settings(), body, Principal(user="mei"))
    assert (asked.mode, asked.top_k, asked.rerank) == (Mode.DENSE, 3, False)
    assert asked.all_versions and asked.conversation == (Message(role="user", content="before"),)
    assert request_of(Settings(), {"question": "q"}, Principal()).top_k == 10


def test_settings_are_described_by_what_decides_the_answers():
    line = described(Settings())
    assert "late_interaction to depth 50" in line and "extractive" in line


def test_what_is_missing_from_an_index_is_told_whenever_it_failed(capsys):
    states = Counter({DocState.INDEXED: 2, DocState.CORRUPT: 1, DocState.DELETED: 3})
    note_indexed(RunSummary(run_id="r", source="docs", listed=3, unchanged=3, by_state=states))
    assert "docs: 3 documents, 0 of them indexed now; 1 corrupt." in capsys.readouterr().err


def test_only_the_cases_of_the_named_slices_are_asked():
    cases = [case("a", slices=["hard"]), case("b", held_out=True), case("c", filter="tenant = x")]
    assert chosen(cases, []) == cases
    assert [each.id for each in chosen(cases, ["filtered", "hard"])] == ["a", "c"]
    assert [each.id for each in chosen(cases, ["half: held out"])] == ["b"]
    with pytest.raises(UsageError, match="No case is in the slice 'typo'; there are: filtered, ha"):
        chosen(cases, ["hard", "typo"])
