"""`quarry init`: writes a commented settings file."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from quarry.cli.context import ConfigOption, config_path
from quarry.cli.output import print_line
from quarry.cli.templates import config_text
from quarry.errors import UsageError
from quarry.settings import CONFIG_NAME


class Profile(StrEnum):
    EMBEDDED = "embedded"
    CLUSTER = "cluster"


def init(
    context: typer.Context,
    profile: Annotated[
        Profile,
        typer.Option(
            help="embedded: files in data_dir, documents public unless they say otherwise; "
            "cluster: Elasticsearch and Milvus servers, documents closed unless opened."
        ),
    ] = Profile.EMBEDDED,
    force: Annotated[bool, typer.Option("--force", help="Write over an existing file.")] = False,
    config: ConfigOption = None,
) -> None:
    """Write a commented settings file.

    It holds every key with its default and what it means.
    """
    path = config_path(context, config) or Path(CONFIG_NAME)
    if path.exists() and not force:
        raise UsageError(f"{path} exists already; pass --force to write over it.")
    if not path.parent.is_dir():
        raise UsageError(f"There is no folder {path.parent}; create it first.")
    path.write_text(config_text(profile.value), encoding="utf-8")
    print_line(f"Wrote {path}. Next: quarry ingest FOLDER, then quarry ask QUESTION.")
