"""Settings in words: what a key may hold, shared by `quarry init` and the reference page."""

from __future__ import annotations

import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin

import annotated_types
import yaml
from pydantic import SecretStr
from pydantic.fields import FieldInfo

_WORDS: dict[Any, str] = {
    str: "text",
    int: "whole number",
    float: "number",
    bool: "true or false",
    Path: "path",
    dict[str, Any]: "mapping",
    SecretStr: "secret text",
}


def kind_of(info: FieldInfo) -> str:
    """`whole number, 1 to 64`, or the choices."""
    words = " or ".join(_kinds(info.annotation))
    limits = _limits(info)
    return f"{words}, {limits}" if limits else words


def explained(info: FieldInfo) -> str:
    """The description, with the choices where only some words are allowed."""
    description = info.description or ""
    choices = [kind for kind in _kinds(info.annotation) if ", " in kind]
    return f"{description} [{choices[0]}]" if choices else description


def yaml_value(value: Any) -> str:
    """A value as it stands in a settings file, on one line."""
    if isinstance(value, Path):
        value = str(value)
    if isinstance(value, SecretStr):
        value = value.get_secret_value()
    if isinstance(value, tuple):
        value = list(value)
    text = yaml.safe_dump(value, default_flow_style=True, allow_unicode=True, width=10_000)
    return text.removesuffix("\n").removesuffix("\n...")


def _kinds(annotation: Any) -> Iterator[str]:
    origin = get_origin(annotation)
    if origin in (Union, types.UnionType):
        for part in get_args(annotation):
            if part is not type(None):
                yield from _kinds(part)
        yield "null"
    elif origin is Literal:
        yield ", ".join(str(choice) for choice in get_args(annotation))
    elif origin is tuple:
        yield "list of text"
    else:
        yield _WORDS[annotation]


def _limits(info: FieldInfo) -> str:
    low = high = over = None
    for limit in info.metadata:
        if isinstance(limit, annotated_types.Ge):
            low = limit.ge
        elif isinstance(limit, annotated_types.Le):
            high = limit.le
        elif isinstance(limit, annotated_types.Gt):
            over = limit.gt
    if low is not None and high is not None:
        return f"{low} to {high}"
    if low is not None:
        return f"at least {low}"
    return f"above {over}" if over is not None else ""
