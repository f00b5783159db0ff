"""One module a group of commands; `register` puts them all on the app, in the order of `--help`."""

from __future__ import annotations

import typer

from quarry.cli.commands import doctor, init


def register(app: typer.Typer) -> None:
    app.command("init")(init.init)
    app.command("doctor")(doctor.doctor)
