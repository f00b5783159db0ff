"""The settings file that `quarry init` writes, made from the settings model, so it cannot drift."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from pydantic import BaseModel

from quarry.cli.describe import explained, yaml_value
from quarry.settings import Settings, SourceSettings
from quarry.settings_file import named_sections_of, section_of

Profile = Literal["embedded", "cluster"]

_HEAD = """\
# Settings of Quarry. A key behind '#' shows its default: take the '#' away to change it.
# Paths are relative to this file. Every key can be given by environment too:
# QUARRY_SERVE__PORT=9000 sets serve.port. 'quarry doctor' checks what is set here.
"""
_WIDTH = 42
"""Column where the comments begin, unless a key is longer."""


def config_text(profile: Profile) -> str:
    """A complete, commented settings file for one profile."""
    values = Settings(profile=profile)
    lines = [_HEAD]
    for name, info in Settings.model_fields.items():
        value = getattr(values, name)
        if named_sections_of(info):
            lines.append(f"\n{name}:  # {info.description}")
            lines.extend(_default_source(profile))
        elif section_of(info):
            lines.append(f"\n{name}:")
            lines.extend(_section(value, indent=1))
        else:
            lines.append(_key(name, yaml_value(value), explained(info), active=True))
    return "\n".join(lines) + "\n"


def _default_source(profile: Profile) -> Iterator[str]:
    """One person's documents are readable to that person; a cluster's are closed until opened."""
    yield "  default:"
    for name, info in SourceSettings.model_fields.items():
        opened = profile == "embedded" and name == "default_acl"
        value = ("public",) if opened else info.default
        yield _key(name, yaml_value(value), explained(info), active=opened, indent=2)


def _section(values: BaseModel, *, indent: int) -> Iterator[str]:
    for name, info in type(values).model_fields.items():
        value = getattr(values, name)
        if section_of(info):
            yield f"{'  ' * indent}{name}:"
            yield from _section(value, indent=indent + 1)
        else:
            yield _key(name, yaml_value(value), explained(info), active=False, indent=indent)


def _key(name: str, value: str, why: str, *, active: bool, indent: int = 0) -> str:
    mark = "" if active else "# "
    return f"{'  ' * indent + mark + name + ': ' + value:<{_WIDTH}}  # {why}"
