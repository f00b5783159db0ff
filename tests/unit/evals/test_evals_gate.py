"""Gates let a run through or not, and never pass for want of something to check."""

from __future__ import annotations

import pytest

from evals.compare import compare
from evals.gate import Gate, check_before, check_gate, load_gate
from evals.measuring.results import CaseResult
from evals.reporting.report import Run
from quarry.errors import ConfigError, UsageError
from tests.unit.evals.evals_world import ASKING, case


def run(passes, **facts):
    found = [
        CaseResult(
            case=case(f"c{n}", must=["this"], slices=["hard"] if n == 0 else []),
            passed=passed,
            status="answered",
            measures={"RR@10": 1.0 if passed else 0.0},
            **facts,
        )
        for n, passed in enumerate(passes)
    ]
    return Run.of("run", found, ASKING)


def checks(gate, found, before=None):
    comparison = compare(("before", before.results), ("run", found.results)) if before else None
    return {
        check.what: check.passed
        for check in check_gate(
            Gate.model_validate(gate),
            whole=found.whole,
            slices=found.slices,
            results=found.by_id,
            comparison=comparison,
        )
    }


def test_minimum_and_maximum_hold_at_their_limit():
    gate = {"minimum": {"pass_rate": 0.75}, "maximum": {"RR@10": 0.75}}
    assert checks(gate, run([1, 1, 1, 0])) == {
        "pass_rate": True,
        "RR@10": True,
        "leaks": True,
        "failed": True,
    }
    assert checks(gate, run([1, 1, 0, 0]))["pass_rate"] is False
    assert checks(gate, run([1, 1, 1, 1]))["RR@10"] is False


def test_a_slice_has_limits_of_its_own():
    gate = {"slices": {"hard": {"minimum": {"pass_rate": 1.0}}}}
    assert checks(gate, run([1, 0]))["hard: pass_rate"] is True
    assert checks(gate, run([0, 1]))["hard: pass_rate"] is False


def test_no_leak_and_no_failure_pass_unless_the_gate_says_so():
    assert checks({}, run([1], leaks=("leak",)))["leaks"] is False
    assert checks({"leaks": 1}, run([1], leaks=("leak",)))["leaks"] is True
    assert checks({}, run([0], error="store_unavailable"))["failed"] is False


def test_outdated_cases_fail_a_gate_only_if_it_says_so():
    assert "outdated" not in checks({}, run([1], outdated=True))
    assert checks({"outdated": 0}, run([1], outdated=True))["outdated"] is False


def test_cases_that_were_lost_fail_the_slices_that_must_lose_none():
    before, after = run([1, 1]), run([1, 0])
    assert checks({"no_lost": ["hard"]}, after, before)["hard: lost cases"] is True
    assert checks({"no_lost": ["all"]}, after, before)["all: lost cases"] is False
    gained = checks({"no_lost": ["all"]}, before, after)
    assert gained["all: lost cases"] is True


def test_a_case_that_passed_and_is_outdated_now_is_lost():
    before, after = run([1, 1]), run([0, 1], outdated=True)
    assert checks({"no_lost": ["hard"]}, after, before)["hard: lost cases"] is False
    gate = Gate(no_lost=("hard",))
    told = check_gate(
        gate,
        whole=after.whole,
        slices=after.slices,
        results=after.by_id,
        comparison=compare(("before", before.results), ("run", after.results)),
    )
    assert told[-1].has == "c0 (outdated now)"


def test_a_slice_that_must_lose_none_needs_a_case_that_both_runs_have():
    before = Run.of("before", run([1, 1]).results[1:], ASKING)
    assert checks({"no_lost": ["all"]}, run([1, 1]), before)["all: lost cases"] is True
    with pytest.raises(UsageError, match=r"\[hard\], of which no case can be compared"):
        checks({"no_lost": ["hard"]}, run([1, 1]), before)


@pytest.mark.parametrize(
    ("gate", "facts", "told"),
    [
        ({"minimum": {"pass_rat": 1}}, {}, "pass_rat, which this run does not have"),
        ({"slices": {"hard": {"maximum": {"RR@7": 1}}}}, {}, "hard: RR@7"),
        ({"no_lost": ["soft"]}, {}, "'soft', which no case is in"),
        ({"no_lost": ["hard"]}, {"compared": None}, "needs something to compare with"),
        ({"no_lost": ["hard"]}, {"compared": {"c1"}}, "no case can be compared"),
        ({"leaks": 0}, {"inside": False}, "Over HTTP nobody can look"),
        ({"outdated": 0}, {"inside": False}, "Over HTTP nobody can look"),
    ],
)
def test_what_a_gate_could_never_check_is_told_before_anything_is_asked(gate, facts, told):
    slices = {"hard": {"c0"}, "kind: answerable": {"c0", "c1"}}
    known = {"figures": {"pass_rate"}, "slices": slices, "compared": {"c0"}, "inside": True}
    good = Gate.model_validate({"minimum": {"pass_rate": 1}, "no_lost": ["hard", "all"]})
    check_before(good, **known)
    with pytest.raises(UsageError, match=told):
        check_before(Gate.model_validate(gate), **known | facts)


def test_where_nobody_could_look_leaks_are_those_that_answers_tell():
    found = run([1], leaks=("leak: /x/",))
    told = check_gate(
        Gate(), whole=found.whole, slices={}, results={}, comparison=None, inside=False
    )
    assert (told[0].what, told[0].passed) == ("leaks that answers tell", False)


@pytest.mark.parametrize(
    ("gate", "told"),
    [
        ({"minimum": {"recall": 1}}, "recall, which this run does not have"),
        ({"slices": {"hart": {}}}, "'hart', which no case is in"),
        ({"no_lost": ["all"]}, "needs something to compare with"),
    ],
)
def test_a_gate_that_would_check_nothing_is_an_error(gate, told):
    with pytest.raises(UsageError, match=told):
        checks(gate, run([1]))


def test_a_gate_is_read_from_yaml(tmp_path):
    path = tmp_path / "gate.yaml"
    path.write_text("minimum: {pass_rate: 0.9}\nno_lost: [hard]\n")
    assert load_gate(path).minimum == {"pass_rate": 0.9}


@pytest.mark.parametrize(
    ("text", "error", "told"),
    [
        ("minimun: {}", UsageError, "'minimun'"),
        ("minimum: {pass_rate: high}", UsageError, "'minimum.pass_rate'"),
        ("minimum: [", ConfigError, "YAML"),
    ],
)
def test_a_file_that_is_no_gate_is_named_with_the_key(tmp_path, text, error, told):
    path = tmp_path / "gate.yaml"
    path.write_text(text)
    with pytest.raises(error, match=told):
        load_gate(path)


def test_a_gate_that_is_not_there_is_an_error(tmp_path):
    with pytest.raises(UsageError, match="no gate"):
        load_gate(tmp_path / "gate.yaml")
