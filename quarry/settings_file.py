"""How a settings file and its environment overlay are read and checked, for any settings model.

`quarry.settings` holds the keys; this module knows none of them. All errors are ConfigError: one
sentence that names the key and never shows a value, because a value may be a secret.
"""

from __future__ import annotations

import difflib
import re
import types
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin

import yaml
from pydantic import BaseModel, ConfigDict, SecretStr, ValidationError
from pydantic.fields import FieldInfo

from quarry.errors import ConfigError
from quarry.ids import slug

# Kubernetes gives every container the addresses of services; one named quarry would look like ours.
_SERVICE_LINK = re.compile(r"(\w+_)?(SERVICE_(HOST|PORT(_\w+)?)|PORT_\d+_(TCP|UDP|SCTP)(_\w+)?)")
_SERVICE_ADDRESS = re.compile(r"(tcp|udp|sctp)://")


class Section(BaseModel):
    """Settings of one part. A key that is not known is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class _Loader(yaml.SafeLoader):
    """Plain YAML, where a key that is given twice is an error instead of a lost value."""

    def compose_mapping_node(self, anchor: Any) -> yaml.MappingNode:
        node = super().compose_mapping_node(anchor)
        seen: set[str] = set()
        for key_node, _ in node.value:
            if not isinstance(key_node, yaml.ScalarNode):
                continue
            if key_node.value in seen:
                raise yaml.constructor.ConstructorError(
                    None, None, f"'{key_node.value}' is given twice", key_node.start_mark
                )
            seen.add(key_node.value)
        return node

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        made: dict[Any, Any] = super().construct_mapping(node, deep=deep)
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode) and not isinstance(self.construct_object(key), str):
                problem = "a name that looks like a number, a date, yes or no must stand in quotes"
                raise yaml.constructor.ConstructorError(None, None, problem, key.start_mark)
        return made

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        try:
            return super().construct_object(node, deep=deep)
        except ValueError:  # without a line, and at times with the value
            problem = "a value looks like a date or a number and is none; put it in quotes"
            raise yaml.constructor.ConstructorError(None, None, problem, node.start_mark) from None


_UNQUOTED = (
    ("undefined alias", "a value that begins with * must stand in quotes"),
    ("constructor for the tag", "a value that begins with ! must stand in quotes"),
    ("undefined tag handle", "a value that begins with ! must stand in quotes"),
)
"""Problems that YAML would tell with the value itself."""


def read_yaml(path: Path, *, named_by: str = "") -> dict[str, Any]:
    """The keys and values of one file; an empty file has none.

    `named_by` is the setting that names the file. Raises ConfigError with path and line.
    """
    try:
        raw = yaml.load(path.read_text(encoding="utf-8"), Loader=_Loader)  # noqa: S506 - a SafeLoader
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        where = f", line {mark.line + 1}" if mark else ""
        raise ConfigError(f"{path}{where} is not valid YAML: {_problem(error)}.") from None
    except OSError as error:
        check = named_by or "the path"
        raise ConfigError(f"{path} cannot be read ({error.strerror}); check {check}.") from error
    except (UnicodeDecodeError, yaml.YAMLError) as error:
        raise ConfigError(f"{path} is not valid YAML: {_first_line(error)}.") from None
    except RecursionError:
        raise ConfigError(f"{path} is not valid YAML: it is nested too deeply.") from None
    if raw is None:
        return {}
    if not isinstance(raw, dict) or not all(isinstance(key, str) for key in raw):
        raise ConfigError(f"{path} must hold named keys and values at its top level.")
    return raw


def line_of(path: Path, keys: Sequence[str | int]) -> str:
    """`, line N` for where the last of these keys that the file has stands; empty if none does.

    Keys lead from the top down, numbers into lists. It is for messages: what fails is not told.
    """
    try:
        node = yaml.compose(path.read_text(encoding="utf-8"), Loader=_Loader)
    except (OSError, ValueError, RecursionError, yaml.YAMLError):
        return ""
    mark = None
    for key in keys:
        found = next((pair for pair in _inside(node) if pair[0] == str(key)), None)
        if found is None:
            break
        mark, node = found[1:]
    return f", line {mark.line + 1}" if mark else ""


def _inside(node: yaml.Node | None) -> Iterator[tuple[str, yaml.Mark, yaml.Node]]:
    """Names or numbers of what a node holds, and where each stands."""
    if isinstance(node, yaml.MappingNode):
        for name, value in node.value:
            yield str(name.value), name.start_mark, value
    elif isinstance(node, yaml.SequenceNode):
        for number, value in enumerate(node.value):
            yield str(number), value.start_mark, value


def _problem(error: yaml.MarkedYAMLError) -> str:
    problem = error.problem or "it cannot be parsed"
    return next((told for found, told in _UNQUOTED if found in problem), problem)


def section_of(info: FieldInfo) -> type[BaseModel] | None:
    """The model of a field that is a section of its own; None for a plain value."""
    kind = info.annotation
    return kind if isinstance(kind, type) and issubclass(kind, BaseModel) else None


def named_sections_of(info: FieldInfo) -> type[BaseModel] | None:
    """The model of a field that maps names to sections, such as `sources`; None for others."""
    if get_origin(info.annotation) is not dict:
        return None
    inner = get_args(info.annotation)[1]
    return inner if isinstance(inner, type) and issubclass(inner, BaseModel) else None


def is_secret(info: FieldInfo) -> bool:
    return SecretStr in _alternatives(info.annotation)


def drop_empty_sections(model: type[BaseModel], raw: dict[str, Any]) -> None:
    """Removes sections without keys: a file with every key commented out means all defaults."""
    for name, info in model.model_fields.items():
        inner = section_of(info)
        if (inner or named_sections_of(info)) and name in raw and raw[name] is None:
            del raw[name]
        elif inner and isinstance(raw.get(name), dict):
            drop_empty_sections(inner, raw[name])
        elif named_sections_of(info) and isinstance(raw.get(name), dict):
            raw[name] = {key: {} if value is None else value for key, value in raw[name].items()}


def overlay(
    raw: dict[str, Any],
    environ: Mapping[str, str],
    model: type[BaseModel],
    *,
    prefix: str,
    ignored: frozenset[str],
) -> None:
    """Lays PREFIX_SECTION__KEY variables over the file; a name that fits no key is an error."""
    for name in sorted(environ):
        if not name.startswith(prefix) or name in ignored:
            continue
        parts = name.removeprefix(prefix).lower().split("__")
        info = _field_at(model, parts)
        if info is None:
            if _is_service_link(name.removeprefix(prefix), environ[name]):
                continue
            near = _nearest(".".join(parts), model)
            hint = prefix + near.upper().replace(".", "__") if near else f"{prefix}SECTION__KEY"
            raise ConfigError(f"{name} names no setting; use {hint}, or unset it.")
        target = raw
        if named_sections_of(model.model_fields[parts[0]]):
            parts[1] = _spelt(parts[1], raw.get(parts[0]))
        for part in parts[:-1]:
            if target.get(part) is None:
                target[part] = {}
            target = target[part]
            if not isinstance(target, dict):
                raise ConfigError(f"{name} cannot be set: '{part}' is not a section in the file.")
        target[parts[-1]] = _environment_value(info, environ[name])


def explain(error: ValidationError, origin: str, model: type[BaseModel]) -> ConfigError:
    """The first thing that is wrong, as one sentence."""
    first = error.errors(include_input=False, include_url=False)[0]
    key = ".".join(str(part) for part in first["loc"])
    more = f" ({error.error_count() - 1} more)" if error.error_count() > 1 else ""
    if first["type"] == "extra_forbidden":
        near = _nearest(key, model)
        hint = f"did you mean '{near}'?" if near else "'quarry init' writes all of them."
        return ConfigError(f"{origin}: unknown key '{key}'; {hint}{more}")
    if first["type"] == "tuple_type":
        return ConfigError(f"{origin}: '{key}' must be a list, such as [a, b].{more}")
    if first["type"] == "model_type":
        return ConfigError(f"{origin}: '{key}' must be a section with keys below it.{more}")
    message = first["msg"].removeprefix("Value error, ").rstrip(".")
    message = message[:1].lower() + message[1:] if first["type"] != "value_error" else message
    if not key:
        return ConfigError(f"{origin}: {message}.{more}")
    return ConfigError(f"{origin}: '{key}' is not right: {message}.{more}")


def model_anchored(model: str, base: Path) -> str:
    """A model's folder made absolute; a hub id, and a name of another kind, stay as they are."""
    path = Path(model).expanduser()
    is_path = model.startswith((".", "~")) or (bool(model) and (base / path).is_dir())
    return str(base / path) if is_path else model


def model_name(model: str) -> str:
    """What a model is called wherever it is: a folder may move."""
    return Path(model).name if Path(model).is_absolute() else model


def key_paths(model: type[BaseModel], prefix: str = "") -> Iterator[tuple[str, FieldInfo]]:
    """Every key that can be set, dotted, in the order of the model; NAME stands for a free name."""
    for name, info in model.model_fields.items():
        inner = section_of(info)
        named = named_sections_of(info)
        if inner:
            yield from key_paths(inner, f"{prefix}{name}.")
        elif named:
            yield from key_paths(named, f"{prefix}{name}.NAME.")
        else:
            yield f"{prefix}{name}", info


def _nearest(key: str, model: type[BaseModel]) -> str:
    paths = [path for path, _ in key_paths(model)]
    section, _, last = key.rpartition(".")
    named = section.partition(".")[0] + ".NAME."  # a free name says nothing about what is meant
    inside = [path.removeprefix(named) for path in paths if path.startswith(named)]
    if section and inside:
        return next(
            (f"{section}.{near}" for near in difflib.get_close_matches(last, inside, 1)), ""
        )
    known = [path for path in paths if "NAME" not in path]
    sections = sorted({path.partition(".")[0] for path in known})
    return next(iter(difflib.get_close_matches(key, known + sections, n=1, cutoff=0.75)), "")


def _field_at(model: type[BaseModel], parts: list[str]) -> FieldInfo | None:
    head, *rest = parts
    info = model.model_fields.get(head)
    if info is None:
        return None
    inner = section_of(info)
    if inner:
        return _field_at(inner, rest) if rest else None
    named = named_sections_of(info)
    if named:
        return _field_at(named, rest[1:]) if len(rest) > 1 and rest[0] else None
    return None if rest else info


def _spelt(name: str, named: Any) -> str:
    """How the file spells this name of a section: a variable has neither capitals nor dashes."""
    keys = named if isinstance(named, dict) else {}
    return next((key for key in keys if slug(str(key)) == slug(name)), name)


def _is_service_link(rest: str, value: str) -> bool:
    if _SERVICE_LINK.fullmatch(rest):
        return True
    return rest.endswith("PORT") and _SERVICE_ADDRESS.match(value) is not None


def _environment_value(info: FieldInfo, text: str) -> Any:
    """YAML rules for numbers, booleans and lists; text stays text, whatever it looks like."""
    if any(_is_text(kind) for kind in _alternatives(info.annotation)):
        return text
    try:
        value = yaml.safe_load(text)
    except (ValueError, yaml.YAMLError):
        return text
    return text if value is None and text.strip().lower() not in ("null", "~") else value


def _alternatives(annotation: Any) -> tuple[Any, ...]:
    is_union = get_origin(annotation) in (Union, types.UnionType)
    return get_args(annotation) if is_union else (annotation,)


def _is_text(kind: Any) -> bool:
    if get_origin(kind) is Literal:
        return True
    return isinstance(kind, type) and issubclass(kind, str | SecretStr | Path)


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0].rstrip(".")
