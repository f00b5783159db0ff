"""One module a group of commands; `register` puts them all on the app, in the order of `--help`."""

from __future__ import annotations

import typer

from quarry.cli.commands import doctor, documents, ingest, init


def register(app: typer.Typer) -> None:
    app.command("init")(init.init)
    app.command("ingest")(ingest.ingest)
    app.command("status")(documents.status)
    app.command("documents")(documents.documents)
    app.command("history")(documents.history)
    app.command("doctor")(doctor.doctor)
