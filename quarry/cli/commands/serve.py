"""`quarry serve`: the HTTP API on this machine."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from quarry.cli.context import ConfigOption, settings_of
from quarry.cli.output import print_line


def serve(
    context: typer.Context,
    host: Annotated[
        str | None, typer.Option("--host", metavar="ADDRESS", help="In place of serve.host.")
    ] = None,
    port: Annotated[
        int | None,
        typer.Option(
            "--port", min=0, max=65535, metavar="N", help="In place of serve.port; 0: a free one."
        ),
    ] = None,
    config: ConfigOption = None,
) -> None:
    """Serve search and answers over HTTP until it is stopped.

    While it runs, search, ask and explain of the same data folder go through it, with the settings
    that it was started with; they say so where yours are others, and refuse where yours name
    another embedder or index. Its address and a local token, which may ask as anybody, are in
    data_dir/server.json for those who can read that folder.
    """
    settings = settings_of(context, config, stays=True)
    given = {"host": host, "port": port}
    wanted = {name: value for name, value in given.items() if value is not None}
    settings = settings.model_copy(update={"serve": settings.serve.model_copy(update=wanted)})
    from serve.serving.app import run

    run(settings, on_ready=_tell)


def _tell(url: str) -> None:
    print_line(f"Serving at {url}; the API is described at {url}/docs. Ctrl-C stops it.")
    sys.stdout.flush()
