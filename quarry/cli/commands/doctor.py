"""`quarry doctor`: what is here, what is missing, and the command that fixes it."""

from __future__ import annotations

import dataclasses

import typer

from quarry.cli.check import Check, Verdict
from quarry.cli.checks import environment_checks, settings_checks
from quarry.cli.context import ConfigOption, JsonOption, settings_of
from quarry.cli.output import one_line, print_json, print_line
from quarry.errors import ConfigError

_MARKS = {Verdict.OK: "ok", Verdict.NOTE: "--", Verdict.MISSING: "!!"}


def doctor(
    context: typer.Context, as_json: JsonOption = False, config: ConfigOption = None
) -> None:
    """Check what is here, and name what would mend it.

    Looks at versions, the data folder, models, stores, what the index was built with, ports,
    extras, and the files that the settings name; exits with 1 if something that the settings need
    is missing or does not fit.
    """
    checks = list(environment_checks())
    try:
        checks.extend(settings_checks(settings_of(context, config)))
    except ConfigError as error:
        checks.append(
            Check(
                group="settings",
                name="file",
                verdict=Verdict.MISSING,
                detail=str(error),
                fix="correct the file, or write one with: quarry init",
            )
        )
    healthy = all(check.verdict is not Verdict.MISSING for check in checks)
    if as_json:
        print_json({"ok": healthy, "checks": [dataclasses.asdict(check) for check in checks]})
    else:
        _print(checks)
    raise typer.Exit(0 if healthy else 1)


def _print(checks: list[Check]) -> None:
    group = ""
    for check in checks:
        if check.group != group:
            group = check.group
            print_line(f"{group}")
        print_line(f"  {_MARKS[check.verdict]} {check.name:<22} {one_line(check.detail)}")
        if check.fix:
            print_line(f"       {'':<20} → {check.fix}")
    missing = sum(check.verdict is Verdict.MISSING for check in checks)
    print_line("Everything is in place." if not missing else f"{missing} to mend (!!).")
