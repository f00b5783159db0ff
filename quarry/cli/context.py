"""What every command shares: its settings, and where its log lines go."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from quarry.settings import CONFIG_NAME, Settings, find_config, load_settings

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
    return config or _shared(context).config


def settings_of(
    context: typer.Context,
    config: Path | None,
    *,
    stays: bool = False,
    or_defaults: bool = False,
) -> Settings:
    """The settings of this call, with logging set up as they say.

    A command that `stays` logs what it does; the others log only what is wrong, because what they
    print is the result. `or_defaults`: without a file, the defaults hold. Raises ConfigError.
    """
    named = config_path(context, config)
    if or_defaults and not (named or os.environ.get("QUARRY_CONFIG") or Path(CONFIG_NAME).exists()):
        defaults = Settings()
        settings = defaults.model_copy(update={"data_dir": Path.cwd() / defaults.data_dir})
    else:
        settings = load_settings(find_config(named, os.environ, Path.cwd()))
    from quarry.telemetry.logs import configure_logging

    telemetry = settings.telemetry
    if _shared(context).debug:
        telemetry = telemetry.model_copy(update={"log_level": "debug"})
    elif not stays and telemetry.log_level == "info":
        telemetry = telemetry.model_copy(update={"log_level": "warning"})
    configure_logging(telemetry)
    return settings


def _shared(context: typer.Context) -> Shared:
    return context.find_object(Shared) or Shared()
