"""Metrics and logs: what they say, and what they never say."""

from __future__ import annotations

import io
import json
import logging

import pytest
import structlog

from quarry.settings import TelemetrySettings
from quarry.telemetry.logs import PRIVATE, configure_logging
from quarry.telemetry.metrics import TABLE, Metrics


@pytest.fixture
def logs() -> io.StringIO:
    return io.StringIO()


def test_an_event_is_one_line_of_json_with_its_fields(logs: io.StringIO) -> None:
    configure_logging(TelemetrySettings(log_level="info", log_format="json"), stream=logs)
    structlog.get_logger("x").info("indexed", documents=3)
    event = json.loads(logs.getvalue())
    assert (event["event"], event["documents"], event["level"]) == ("indexed", 3, "info")
    assert "timestamp" in event


@pytest.mark.parametrize(("log_format", "named"), [("json", True), ("text", False)])
def test_a_line_of_json_names_the_part_that_wrote_it(
    logs: io.StringIO, log_format: str, named: bool
) -> None:
    settings = TelemetrySettings.model_validate({"log_format": log_format})
    configure_logging(settings, stream=logs, part="gateway")
    structlog.get_logger("x").info("request")
    logging.getLogger("library").warning("from a library")
    assert logs.getvalue().count("gateway") == (2 if named else 0)


@pytest.mark.parametrize("log_format", ["json", "text"])
def test_private_fields_are_redacted_however_deep_they_are(
    logs: io.StringIO, log_format: str
) -> None:
    settings = TelemetrySettings.model_validate({"log_format": log_format})
    configure_logging(settings, stream=logs)
    fields = dict.fromkeys(PRIVATE, "SECRET")
    structlog.get_logger("x").warning("failed", **fields, request={"Token": "SECRET", "n": 5})
    assert "SECRET" not in logs.getvalue()
    assert "5" in logs.getvalue()


def test_an_exception_is_logged_by_type_and_place_without_its_message(logs: io.StringIO) -> None:
    configure_logging(TelemetrySettings(log_format="json"), stream=logs)

    def broken() -> None:
        try:
            raise KeyError("SECRET")
        except KeyError as error:
            raise ValueError("SECRET too") from error

    for log in (structlog.get_logger("x"), logging.getLogger("library")):
        try:
            broken()
        except ValueError:
            log.exception("request_broke")
    assert "SECRET" not in logs.getvalue()
    assert logs.getvalue().count("builtins.KeyError") == 2
    assert logs.getvalue().count("in broken") == 4


def test_lines_of_libraries_come_out_in_the_same_form(logs: io.StringIO) -> None:
    configure_logging(TelemetrySettings(log_format="json"), stream=logs)
    logging.getLogger("library").warning("slow %s", "disk")
    assert json.loads(logs.getvalue())["event"] == "slow disk"


def test_levels_below_the_set_one_are_left_out(logs: io.StringIO) -> None:
    configure_logging(TelemetrySettings(log_level="warning"), stream=logs)
    structlog.get_logger("x").info("quiet")
    logging.getLogger("library").info("quiet")
    assert logs.getvalue() == ""


def test_every_metric_is_named_helped_and_labelled_from_closed_sets() -> None:
    names = [spec.name for spec in TABLE]
    assert len(set(names)) == len(names)
    assert all(name.startswith("quarry_") for name in names)
    assert all(spec.help.endswith(".") for spec in TABLE)
    labels = {label for spec in TABLE for label in spec.labels}
    assert labels == {"endpoint", "status", "stage", "reason"}


def test_two_processes_worth_of_metrics_do_not_meet() -> None:
    one, other = Metrics(), Metrics()
    one.count(TABLE[0], endpoint="/v1/search", status="200")
    assert b'status="200"' in one.render()
    assert b'status="200"' not in other.render()
