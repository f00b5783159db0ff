"""Reports as JUnit XML, which CI systems show as tests: one a case, one a demand of the gate.

The layout is that of https://github.com/testmoapp/junitxml. An outdated case is skipped,
unless it leaked.
"""

from __future__ import annotations

from collections.abc import Sequence
from xml.etree import ElementTree

from evals.gate import Check
from evals.measuring.results import CaseResult
from evals.reporting.report import Report, Run
from evals.reporting.xml_text import xml_text


def junit_xml(report: Report) -> bytes:
    """UTF-8 XML with its declaration."""
    root = ElementTree.Element("testsuites", name=xml_text(", ".join(report.sets)))
    for run in report.runs:
        _suite(root, run)
    if report.checks:
        _gate(root, report.checks)
    ElementTree.indent(root)
    xml: bytes = ElementTree.tostring(root, encoding="utf-8", xml_declaration=True)
    return xml


def _suite(root: ElementTree.Element, run: Run) -> None:
    suite = ElementTree.SubElement(
        root,
        "testsuite",
        name=xml_text(run.label),
        tests=str(len(run.results)),
        failures=str(sum(map(_failed, run.results))),
        errors=str(sum(map(_broke, run.results))),
        skipped=str(sum(map(_skipped, run.results))),
        time=f"{run.seconds:.3f}",
    )
    for result in run.results:
        _case(suite, run.label, result)


def _case(suite: ElementTree.Element, label: str, result: CaseResult) -> None:
    seconds = (result.search_ms + result.answer_ms) / 1000
    case = ElementTree.SubElement(
        suite,
        "testcase",
        name=xml_text(result.case.id),
        classname=xml_text(label),
        time=f"{seconds:.3f}",
    )
    reasons = xml_text("; ".join(dict.fromkeys((*result.reasons, *result.leaks))))
    if _skipped(result):
        ElementTree.SubElement(case, "skipped", message="outdated: no document says it any more")
    elif _broke(result):
        ElementTree.SubElement(case, "error", message=reasons)
    elif _failed(result):
        failure = ElementTree.SubElement(case, "failure", message=reasons)
        failure.text = xml_text(result.answer)


def _skipped(result: CaseResult) -> bool:
    """An outdated case says nothing of the system, unless it leaked."""
    return result.outdated and not result.leaks


def _broke(result: CaseResult) -> bool:
    return bool(result.error) and not result.outdated


def _failed(result: CaseResult) -> bool:
    return bool(result.leaks) if result.outdated else not (result.passed or result.error)


def _gate(root: ElementTree.Element, checks: Sequence[Check]) -> None:
    failed = [check for check in checks if not check.passed]
    suite = ElementTree.SubElement(
        root, "testsuite", name="gate", tests=str(len(checks)), failures=str(len(failed))
    )
    for check in checks:
        case = ElementTree.SubElement(
            suite, "testcase", name=xml_text(check.what), classname="gate"
        )
        if not check.passed:
            message = xml_text(f"{check.has}, must be {check.demand}")
            ElementTree.SubElement(case, "failure", message=message)
