"""The command `quarry`. Heavy packages are imported inside the commands that need them."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from quarry.cli import commands
from quarry.cli.context import Shared
from quarry.cli.failures import guarded
from quarry.cli.output import print_line, tolerate_any_text

HELP = """Cited answers over a large, changing, permissioned body of documents.

Begin with: quarry init, quarry ingest FOLDER, quarry ask QUESTION.
"""

app = typer.Typer(
    name="quarry",
    help=HELP,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


def _version(asked: bool) -> None:
    if asked:
        from importlib.metadata import version

        print_line(f"quarry {version('quarry-rag')}")
        raise typer.Exit


@app.callback()
def shared_options(
    context: typer.Context,
    config: Annotated[
        Path | None,
        typer.Option("--config", metavar="FILE", help="As --config of each command."),
    ] = None,
    debug: Annotated[
        bool, typer.Option("--debug", help="Show the traceback of an unexpected error.")
    ] = False,
    version: Annotated[
        bool,
        typer.Option("--version", callback=_version, is_eager=True, help="Print the version."),
    ] = False,
) -> None:
    """Options before the name of a command hold for all of them."""
    context.obj = Shared(config=config, debug=debug)


commands.register(app)


def run(arguments: Sequence[str]) -> int:
    """One call of the command line; gives its exit code and never raises."""
    tolerate_any_text()
    arguments = list(arguments) or ["--help"]
    return guarded(
        lambda: app(args=arguments, prog_name="quarry", standalone_mode=False),
        debug="--debug" in arguments,
    )


def main() -> None:
    # gRPC reads these when it is imported, which only the commands do. Ray forks, and a fork beside
    # the threads of gRPC (Milvus Lite has some) can hang; what gRPC itself would print is told by
    # the errors that it raises.
    os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    sys.exit(run(sys.argv[1:]))


if __name__ == "__main__":
    main()
