"""What every command shares: where its settings come from."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from quarry.settings import Settings, find_config, load_settings

ConfigOption = Annotated[
    Path | None,
    typer.Option(
        "--config",
        metavar="FILE",
        help="Settings file; else QUARRY_CONFIG, else quarry.yaml in the working directory.",
        show_default=False,
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Shared:
    """Options given before the command's name."""

    config: Path | None = None
    debug: bool = False


def config_path(context: typer.Context, config: Path | None) -> Path | None:
    """`--config` after the command's name, else the one before it."""
    shared = context.find_object(Shared) or Shared()
    return config or shared.config


def settings_of(context: typer.Context, config: Path | None) -> Settings:
    """The settings of this call. Raises ConfigError."""
    path = find_config(config_path(context, config), os.environ, Path.cwd())
    return load_settings(path)
