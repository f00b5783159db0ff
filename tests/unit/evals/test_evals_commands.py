"""`quarry diagnose` and `quarry tune` on the command line, over systems that answer as told."""

from __future__ import annotations

import json
from contextlib import contextmanager

import pytest

from evals.improving.diagnose import Diagnoses, Diagnosis, Loss, Stage
from evals.improving.seen import fingerprints, notes
from evals.improving.tune import halves
from evals.running.system import System as Opened
from quarry.cli.commands import diagnose, tune
from quarry.cli.main import run
from quarry.fusion import load_fusion
from quarry.settings import Settings
from tests.unit.evals.evals_world import System, case
from tests.unit.evals.test_evals_learn import result


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def opening_over(ask):
    @contextmanager
    def opened():
        yield Opened(ask=ask)

    return lambda _settings, _documents: opened


def write_set(path, cases):
    path.write_text("".join(c.model_dump_json(exclude_defaults=True) + "\n" for c in cases))


FOUND = Diagnoses(
    cases=3,
    failed=[
        Diagnosis(
            case=case("lost"),
            stage=Stage.INDEX,
            reasons=["refused in place of answered"],
            losses=[
                Loss(
                    phrase="it is \x1b[31mthis",
                    stage=Stage.INDEX,
                    reason="exact rank 1 of 9, 4 are asked for",
                    record="chunk-7",
                )
            ],
        )
    ],
    counts={Stage.INDEX: 1},
)


@pytest.fixture
def diagnosed(folder, monkeypatch):
    async def found(*_):
        return FOUND

    monkeypatch.setattr(diagnose, "opening", opening_over(System()))
    monkeypatch.setattr(diagnose, "_diagnose", found)
    write_set(folder / "set.jsonl", [case("lost")])


def test_a_diagnosis_names_counts_stages_and_the_record_to_read(diagnosed, capsys):
    assert run(["diagnose", "set.jsonl"]) == 0
    out = capsys.readouterr().out
    for told in ("1 of 3 cases failed", "1  index", "lost: index", "exact rank 1", "[chunk-7]"):
        assert told in out
    assert "\x1b" not in out


def test_a_diagnosis_is_json_for_programs(diagnosed, capsys):
    assert run(["diagnose", "set.jsonl", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["counts"] == {"index": 1}
    assert told["diagnoses"][0]["losses"][0]["record"] == "chunk-7"


def questions(count):
    """Questions whose right document has the most words in common, but stands second."""
    cases, table = [], {}
    for number in range(count):
        cases.append(case(f"q{number}", question=f"q{number}", relevant={"right": 1}))
        table[f"q{number}"] = {
            "results": [
                result("wrong", lexical_score=1.0, dense_score=0.9),
                result("right", lexical_score=9.0, dense_score=0.1 + number / 100),
            ],
            "degraded": [],
            "trace": [],
        }
    return cases, table


def test_learned_weights_are_written_shown_and_tried_on_another_set(folder, monkeypatch, capsys):
    cases, table = questions(30)
    write_set(folder / "set.jsonl", cases)
    monkeypatch.setattr(tune, "opening", opening_over(System(search=table)))
    arguments = ["tune", "fusion", "set.jsonl", "--output", "fusion.json", "--also", "set.jsonl"]
    assert run(arguments) == 0
    out = capsys.readouterr().out
    assert "It helps" in out and "unseen questions" in out and "Learned from 30 questions" in out
    assert out.count("nDCG@10") == 2
    fusion = load_fusion(folder / "fusion.json")
    assert fusion.learned_from == "set.jsonl" and fusion.weights["lexical"] > 0
    assert set(fusion.seen) == set(fingerprints(cases))
    assert run([*arguments, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert "It helps" in told["sentence"] and "set.jsonl" in told["also_sentence"]


def test_held_out_cases_teach_nothing(folder, monkeypatch, capsys):
    cases, table = questions(30)
    held_out = [each.model_copy(update={"held_out": True}) for each in cases[15:]]
    write_set(folder / "set.jsonl", [*cases[:15], *held_out])
    monkeypatch.setattr(tune, "opening", opening_over(System(search=table)))
    assert run(["tune", "fusion", "set.jsonl", "--output", "fusion.json"]) == 2
    assert "Only 15 questions" in capsys.readouterr().err


def settings_with(rrf_k):
    return Settings.model_validate({"retrieval": {"rrf_k": rrf_k}})


def test_tuned_settings_are_printed_as_a_settings_file(folder, monkeypatch, capsys):
    cases, _ = questions(8)
    write_set(folder / "set.jsonl", cases)

    def opening(settings, _documents):
        right = [result("right"), result("x")]
        wrong = [result(f"x{n}") for n in range(5)] + [result("right")]
        found = right if settings.retrieval.rrf_k == 20 else wrong
        reply = {"results": found, "degraded": [], "trace": []}
        return opening_over(System(search={c.question: reply for c in cases}))(None, None)

    monkeypatch.setattr(tune, "opening", opening)
    arguments = ["tune", "settings", "set.jsonl", "--try", "retrieval.rrf_k=20,60"]
    assert run(arguments) == 0
    out = capsys.readouterr().out
    assert "held out by their ids" in out and "retrieval:\n  rrf_k: 20" in out
    half = fingerprints(halves(cases)[0])
    tuned_there = settings_with(20)
    assert "retrieval.rrf_k was learned, from" in notes([tuned_there], half)[0]
    assert notes([settings_with(60)], half) == []
    assert notes([tuned_there], fingerprints(halves(cases)[1])) == []
    assert run([*arguments, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["best"] == {"retrieval.rrf_k": 20}
    assert run(["tune", "settings", "set.jsonl", "--try", "retrieval.rrf_k=60"]) == 0
    assert "not beaten" in capsys.readouterr().out
