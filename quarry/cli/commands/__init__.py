"""One module a group of commands; `register` puts them all on the app, in the order of `--help`."""

from __future__ import annotations

import typer

from quarry.cli.commands import (
    ask,
    calibrate,
    diagnose,
    doctor,
    documents,
    evaluate,
    evaluate_beir,
    evaluate_sets,
    explain,
    ingest,
    init,
    serve,
    show,
    tune,
    verify,
)


def register(app: typer.Typer) -> None:
    app.command("init")(init.init)
    app.command("ingest")(ingest.ingest)
    app.command("search")(ask.search)
    app.command("ask")(ask.ask)
    app.command("explain")(explain.explain)
    app.command("calibrate")(calibrate.calibrate)
    app.command("serve")(serve.serve)
    app.command("status")(documents.status)
    app.command("documents")(documents.documents)
    app.command("show")(show.show)
    app.command("history")(documents.history)
    app.command("delete")(ingest.delete)
    app.command("verify")(verify.verify)
    app.command("doctor")(doctor.doctor)
    evaluate.app.command("run")(evaluate.run)
    evaluate.app.command("import")(evaluate_sets.import_)
    evaluate.app.command("propose")(evaluate_sets.propose)
    evaluate.app.command("agree")(evaluate_sets.agree)
    evaluate.app.command("inject")(evaluate_sets.inject)
    evaluate.app.command("beir")(evaluate_beir.beir)
    app.add_typer(evaluate.app, name="eval")
    app.command("diagnose")(diagnose.diagnose)
    app.add_typer(tune.app, name="tune")
