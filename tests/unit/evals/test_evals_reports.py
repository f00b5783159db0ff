"""The report as table, JSON, JUnit and one HTML file."""

from __future__ import annotations

import io
import json
import re
from dataclasses import replace
from datetime import UTC, datetime
from xml.etree import ElementTree

import pytest
from rich.console import Console

from evals.compare import compare
from evals.gate import Check
from evals.measuring.results import CaseResult
from evals.measuring.retrieval import Depths
from evals.reporting import plots
from evals.reporting.baseline import load_baseline
from evals.reporting.html import html_report
from evals.reporting.junit import junit_xml
from evals.reporting.report import Asking, Report, Run
from evals.reporting.tables import tables
from evals.reporting.xml_text import xml_text
from quarry.errors import UsageError
from tests.unit.evals.evals_world import ASKING, case, refused

EVIL = "<script>alert(1)</script> & \x1b[31m\x00"
WHY = "Why " + EVIL


def results(passed):
    return [
        CaseResult(
            case=case("one", question=WHY, slices=["hard & fast"]),
            passed=passed,
            reasons=() if passed else ("the answer lacks /x/",),
            status="answered",
            answer=EVIL,
            found=(1,) if passed else (7,),
            measures={"R@8": float(passed), "RR@10": float(passed), "nDCG@10": 0.5},
            search_ms=30.0,
            answer_ms=70.0,
        ),
        CaseResult(case=refused("two"), passed=True, status="refused", measures={}),
        CaseResult(case=case("old"), passed=False, outdated=True, found=(None,)),
        CaseResult(case=case("broken"), passed=False, error="late", reasons=("failed: late",)),
    ]


@pytest.fixture
def report():
    runs = [
        Run.of("before", results(False), ASKING, seconds=2.0),
        Run.of("after", results(True), ASKING),
    ]
    return Report(
        sets=["shop"],
        created=datetime(2026, 11, 30, tzinfo=UTC),
        runs=runs,
        comparisons=[compare(("before", runs[0].results), ("after", runs[1].results))],
        checks=[Check(what="leaks", demand="≤ 0", has="1", passed=False)],
        notes=["Nobody looked."],
        outdated={"old": ["it is this"]},
    )


def test_the_json_holds_every_case_and_says_whether_the_gate_let_it_through(report):
    read = json.loads(json.dumps(report.as_json()))
    assert read["passed"] is False and read["format"] == 3
    assert [each["id"] for each in read["runs"][1]["cases"]] == ["one", "two", "old", "broken"]
    assert read["runs"][1]["figures"]["outdated"] == 1
    assert read["comparisons"][0]["gained"] == ["one"]


def test_a_report_is_a_baseline_for_the_cases_that_are_still_there(report, tmp_path):
    path = tmp_path / "before.json"
    path.write_text(json.dumps(report.as_json()))
    found = load_baseline(path, [case("one", question=WHY), case("new")])
    assert (found.label, found.asking) == ("before.json: after", ASKING)
    assert [(each.case.id, each.passed) for each in found.results] == [("one", True)]


@pytest.mark.parametrize(
    "change",
    [
        {"question": "What else?"},
        {"evidence": [["it is that"]]},
        {"must": ["that"]},
        {"must_not": ["that"]},
        {"conversation": [{"role": "user", "content": "Hello."}]},
    ],
)
def test_a_case_that_has_changed_since_the_baseline_is_not_compared(report, tmp_path, change):
    path = tmp_path / "before.json"
    path.write_text(json.dumps(report.as_json()))
    one = case("one", **{"question": WHY, **change})
    found = load_baseline(path, [one, case("old", filter="tenant = x", held_out=True)])
    assert [each.case.id for each in found.results] == ["old"]
    assert found.changed == ["one"]
    assert found.notes == [
        "Changed since the baseline and not compared with it: 1 of the cases: one."
    ]


def test_a_run_is_equal_to_itself_when_it_is_read_back(tmp_path):
    cases = [case(f"c{n}") for n in range(20)]
    found = [
        CaseResult(
            case=each,
            passed=True,
            status="answered",
            error="late" if n == 0 else "",
            measures={"nDCG@10": 0.6309297535714575},
            search_ms=100.04 + n / 7,
            prompt_tokens=500.0,
        )
        for n, each in enumerate(cases)
    ]
    saved = Report(sets=["s"], created=datetime(2026, 11, 30, tzinfo=UTC),
                   runs=[Run.of("a", found, ASKING)])  # fmt: skip
    path = tmp_path / "before.json"
    path.write_text(json.dumps(saved.as_json()))
    again = load_baseline(path, cases)
    differences = compare((again.label, again.results), ("a", found)).differences
    assert differences.keys() == {"pass", "nDCG@10", "search_ms", "prompt_tokens"}
    assert all((each.better, each.worse) == (0, 0) for each in differences.values())
    assert differences["search_ms"].cases == 19


@pytest.mark.parametrize(
    ("asking", "told"),
    [
        (Asking(depths=Depths(sent=5, reranked=50)), r"passages sent \(8 and 5\)"),
        (Asking(depths=Depths(sent=8, reranked=20)), r"candidates reranked \(50 and 20\)"),
        (replace(ASKING, repeats=3), r"repeats \(1 and 3\)"),
        (replace(ASKING, answers=False), r"\(answers and search alone\)"),
    ],
)
def test_a_baseline_that_was_asked_otherwise_is_not_compared(report, tmp_path, asking, told):
    path = tmp_path / "before.json"
    path.write_text(json.dumps(report.as_json()))
    baseline = load_baseline(path, [case("one")])
    baseline.check_alike(replace(ASKING, depths=replace(ASKING.depths, also=(3,))))
    with pytest.raises(UsageError, match=told):
        baseline.check_alike(asking)


@pytest.mark.parametrize("text", ["", "[]", '{"format": 3, "runs": []}', '{"format": 2}'])
def test_a_file_that_is_no_report_is_no_baseline(tmp_path, text):
    path = tmp_path / "before.json"
    path.write_text(text)
    with pytest.raises(UsageError):
        load_baseline(path, [])


def test_junit_has_a_test_a_case_and_the_gate(report):
    root = ElementTree.fromstring(junit_xml(report))
    before, after, gate = root
    counts = {name: before.get(name) for name in ("tests", "failures", "errors", "skipped")}
    assert counts == {"tests": "4", "failures": "1", "errors": "1", "skipped": "1"}
    assert after.get("failures") == "0" and gate.get("failures") == "1"
    failure = before.find("testcase/failure")
    assert failure.get("message") == "the answer lacks /x/" and "<script>" in failure.text


def test_a_leak_of_an_outdated_case_is_told_everywhere(report):
    leak = "leak: document d9"
    leaked = replace(results(True)[2], leaks=(leak,), reasons=("refused", leak))
    found = replace(report, runs=[Run.of("after", [leaked], ASKING)], comparisons=())
    (suite, _) = ElementTree.fromstring(junit_xml(found))
    assert (suite.get("failures"), suite.get("skipped")) == ("1", "0")
    assert leak in suite.find("testcase/failure").get("message")
    assert leak in printed(found) and "outdated, leaked" in html_report(found)


def test_the_page_shows_figures_of_every_run_and_the_right_name_of_each(report):
    first = [each for each in results(False) if each.case.id != "one"]
    second = [replace(each, measures={"only_here": 0.25}) for each in results(False)]
    found = replace(
        report, runs=[Run.of("a", first, ASKING), Run.of("b", second, ASKING)], comparisons=()
    )
    page = html_report(found)
    assert "<td>only_here</td>" in page
    one = page[page.index("<summary>one") :]
    assert "<strong>b</strong>" in one[: one.index("</details>")]


def test_the_html_is_one_file_that_runs_nothing_and_loads_nothing(report):
    page = html_report(report)
    assert "<script" not in page and "&lt;script&gt;alert(1)" in page
    loads = re.findall(r'(?:src|href|url)\s*[=(]\s*["\']?([^"\')> ]+)', page)
    assert [each for each in loads if not each.startswith("#")] == []
    assert page.count("<svg") >= 3 and len(page.encode()) < 500_000
    for told in ("cannot tell", "Nobody looked.", "FAILED", "hard &amp; fast", "Evidence at 7"):
        assert told in page


@pytest.mark.parametrize("name", [r"$\frac{$", "cost $5 or $10", "_old", EVIL, "]]>&\u202e"])
def test_names_are_drawn_as_they_are_written_whatever_they_hold(name):
    for svg in (
        plots.bars([name], {name: [0.5], "other": [0.6]}, title=name),
        plots.depths({name: {1: 0.5}, "other": {1: 0.6}}, title=name),
    ):
        drawn = "".join(ElementTree.fromstring(svg.replace("xlink:href", "href")).itertext())
        assert "<script" not in svg and drawn.count(xml_text(name)) >= 2


def test_the_page_says_that_so_few_cases_have_no_interval(report):
    page = html_report(report)
    assert "with 95 % intervals (none below 10 cases)" in page.partition("<svg")[2]
    assert '<td class="n">none below 10 cases</td>' in page
    assert "none below 10 cases" in printed(report)


def test_names_of_slices_are_escaped_in_plots_too(report):
    assert "hard &amp; fast" in html_report(report).partition("<svg")[2]


def printed(report):
    out = io.StringIO()
    console = Console(file=out, width=200)
    for each in tables(report):
        console.print(each)
    return out.getvalue()


def test_the_table_shows_figures_failures_flips_and_the_gate(report):
    text = printed(report)
    for told in ("hard & fast", "the answer lacks /x/", "gained: one", "FAILED", "outdated"):
        assert told in text


def test_a_run_without_answers_can_be_drawn_and_printed():
    searched = [CaseResult(case=case(), passed=True, found=(2,), measures={"R@8": 1.0})]
    report = Report(
        sets=["s"],
        created=datetime(2026, 11, 30, tzinfo=UTC),
        runs=[Run.of("search", searched, ASKING)],
    )
    assert "<svg" in html_report(report) and list(tables(report)) and report.passed
