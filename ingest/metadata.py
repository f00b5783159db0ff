"""What is known of a document beside its text, merged into the fields of its catalog row.

Three places, the nearest to the text wins, field by field: folder files `_meta.yaml` (outer before
inner), the sidecar `NAME.meta.yaml`, and what the content says of itself (front matter, fields of a
record). Below all of them stands what the format records, such as a canonical address, which never
sets a version, a status or an ACL.

Who may write a document may therefore also say in it who reads it: an `acl` in the content wins
over the folder's. Closed by default: without an `acl` anywhere the source's `default_acl` holds,
and without that nobody reads the document. An `acl` that is not a list of scopes closes it.

A wrong `status`, `version`, `series` or `effective` fails the document, since they decide whether
it is shown. What only describes it (title, url, all other fields) is left out and named instead.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import date
from typing import Any
from urllib.parse import urlsplit

import yaml

from ingest.acl import Closed, field_name, means_acl, readers, with_acl
from quarry.access.labels import clean_text
from quarry.ids import digest
from quarry.records import ParsedDocument, Scalar, Status
from quarry.settings import SourceSettings

MAX_YAML_CHARS = 65_536
"""Longest front matter or metadata file."""
MAX_FIELDS = 64
MAX_TEXT = 1_000
"""Characters of one value."""
MAX_TITLE = 300
MAX_PROBLEMS = 3
"""Wrong fields of one document that are named."""

TEXT_FIELDS = frozenset(
    {"title", "version", "series", "status", "effective", "region", "owner", "url"}
)
"""Kept as written: version 3.10 is not 3.1, region NO is not false."""
_DOCUMENT_FIELDS = frozenset({"title", "version", "series", "status", "effective", "acl", "url"})

_KEY = re.compile(r"[^\w.-]+")
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
_UNSAFE_IN_URL = re.compile(r"[\s<>\"\\\x00-\x1f\x7f\ud800-\udfff]")


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentFields:
    """The fields of `Document` that metadata decides."""

    title: str = ""
    url: str = ""
    series: str = ""
    version: str = ""
    status: Status = Status.CURRENT
    effective: date | None = None
    tenant: str = "default"
    acl: tuple[str, ...] = ()
    metadata: Mapping[str, Scalar] = field(default_factory=dict)
    meta_hash: str = ""
    """Changes when any other field does."""
    problem: str = ""
    """What is wrong with it though it can be indexed, such as an `acl` that closes it."""
    fault: str = ""
    """Why it cannot be indexed; its `acl` and `tenant` hold all the same, for what is served."""


def document_fields(
    parsed: ParsedDocument, beside: Mapping[str, object], source: SourceSettings
) -> DocumentFields:
    """Merges what is known of one document; `beside` is what `Source.metadata` gave.

    A field that decides what is shown and is wrong is named in `fault`; one that only describes is
    left out and told in `problem`, and so is an `acl` that closes the document.
    """
    given = _merged(parsed, beside)
    acl, closed = readers(given["acl"]) if "acl" in given else (source.default_acl or (), "")
    problems = [closed] if closed else []
    described = _description(given, parsed.title, problems)
    fault, standing = "", {}
    try:
        standing = _standing(given)
    except _WrongValue as wrong:
        fault = str(wrong)
    document = DocumentFields(
        tenant=source.tenant,
        acl=acl,
        problem=_told(problems),
        fault=fault,
        **standing,
        **described,
    )
    return _with_hash(document)


def read_mapping(text: str) -> dict[str, Any]:
    """Keys and values of one YAML text; keys as `field_name` spells them, values plain data.

    No tags, no anchors, no aliases, no merge keys, no double keys; booleans are only true and
    false, and dates stay text. Raises ValueError with one sentence without its subject.
    """
    if len(text) > MAX_YAML_CHARS:
        raise ValueError(f"is longer than {MAX_YAML_CHARS} characters.")
    try:
        return _loaded(text)
    except yaml.YAMLError as error:
        raise ValueError(f"is not valid YAML{_where(error)}.") from None
    except RecursionError:
        raise ValueError("is nested too deeply.") from None


def _loaded(text: str) -> dict[str, Any]:
    loader = _Loader(text)
    try:
        node = loader.get_single_node()
        if node is None:
            return {}
        if not isinstance(node, yaml.MappingNode):
            raise ValueError("must hold keys and values.")
        _keep_texts(node)
        return dict(loader.construct_document(node))
    finally:
        loader.dispose()


class _WrongValue(Exception):
    """Names the field that cannot be used; its text becomes the reason of the document."""


def _merged(parsed: ParsedDocument, beside: Mapping[str, object]) -> dict[str, object]:
    given: dict[str, object] = {}
    for key, value in parsed.properties.items():
        usable = isinstance(value, str) and 0 < len(value) <= MAX_TEXT
        if usable and (key == "author" or (key == "url" and _is_web(str(value)))):
            given[key] = value
    for layer in map(with_acl, (beside, parsed.metadata)):
        given.update({k: v for k, v in layer.items() if v is not None or k == "acl"})
    return given


def _standing(given: Mapping[str, object]) -> dict[str, Any]:
    """The fields that decide which of several documents is shown. Raises _WrongValue."""
    return {
        "series": _text(given, "series"),
        "version": _text(given, "version"),
        "status": _status(_text(given, "status")),
        "effective": _effective(_text(given, "effective")),
    }


def _description(
    given: Mapping[str, object], found_title: str, problems: list[str]
) -> dict[str, Any]:
    """The other fields, without those that are wrong, which are added to `problems`."""
    title = url = ""
    try:
        title = _text(given, "title")
    except _WrongValue as wrong:
        problems.append(str(wrong))
    try:
        url = _url(_raw(given, "url"))
    except _WrongValue as wrong:
        problems.append(str(wrong))
    return {
        "title": (title or clean_text(found_title))[:MAX_TITLE],
        "url": url,
        "metadata": _metadata(given, problems),
    }


def _told(problems: list[str]) -> str:
    more = len(problems) - MAX_PROBLEMS
    rest = [f"{more} more of its fields cannot be used."] if more > 0 else []
    return " ".join([*problems[:MAX_PROBLEMS], *rest])


def _text(given: Mapping[str, object], name: str) -> str:
    return _raw(given, name, clean_text)


def _raw(
    given: Mapping[str, object], name: str, cleaned: Callable[[str], str] = lambda text: text
) -> str:
    value = given.get(name, "")
    if isinstance(value, bool) or not isinstance(value, (str, int, float, date)):
        raise _WrongValue(f"Its {name} must be text.")
    text = " ".join(cleaned(str(value)).split())
    if len(text) > MAX_TEXT:
        raise _WrongValue(f"Its {name} is longer than {MAX_TEXT} characters.")
    return text


def _status(text: str) -> Status:
    if not text:
        return Status.CURRENT
    try:
        return Status(text.lower())
    except ValueError:
        known = ", ".join(Status)
        raise _WrongValue(f"Its status must be one of {known}.") from None


def _effective(text: str) -> date | None:
    if not text:
        return None
    try:
        if not _DATE.match(text):
            raise ValueError
        return date.fromisoformat(text[:10])
    except ValueError:
        raise _WrongValue("Its effective must be a date, such as 2026-07-01.") from None


def _url(text: str) -> str:
    if text and not _is_web(text):
        raise _WrongValue(
            "Its url must be a full http:// or https:// address, with a host and no user name."
        )
    return text


def _is_web(text: str) -> bool:
    """Whether a link may lead there: http or https, with a host and without anyone's password."""
    if _UNSAFE_IN_URL.search(text):
        return False
    try:
        parts = urlsplit(text)
        is_web = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # brackets or a port that are none
        return False
    return is_web and "@" not in parts.netloc


def _metadata(given: Mapping[str, object], problems: list[str]) -> dict[str, Scalar]:
    """Everything that has no field of its own, as scalars: `a: {b: 1}` becomes `a.b`."""
    kept: dict[str, Scalar] = {}
    is_closed = isinstance(given.get("acl"), Closed)
    for key, value in given.items():
        if key in _DOCUMENT_FIELDS or (is_closed and means_acl(key)):
            continue
        try:
            kept.update(_flat(key, value, depth=0))
        except _WrongValue as wrong:
            problems.append(str(wrong))
    if len(kept) > MAX_FIELDS:
        problems.append(f"It has {len(kept)} fields of metadata; {MAX_FIELDS} are kept.")
    return dict(sorted(list(kept.items())[:MAX_FIELDS]))


def _flat(key: str, value: object, *, depth: int) -> list[tuple[str, Scalar]]:
    name = _KEY.sub("_", key.strip().lower()).strip("_")[:64]
    if not name or value is None:
        return []
    if isinstance(value, Mapping):
        if depth == 2:
            raise _WrongValue(f"Its field {name} is nested too deeply to be metadata.")
        nested = ((f"{name}.{inner}", item) for inner, item in value.items())
        return [pair for inner, item in nested for pair in _flat(inner, item, depth=depth + 1)]
    if isinstance(value, (list, tuple)):
        if any(isinstance(item, (Mapping, list, tuple)) for item in value):
            raise _WrongValue(f"Its field {name} must be a list of plain values.")
        return [(name, _short(name, ", ".join(str(_scalar(item)) for item in value)))]
    return [(name, _short(name, _scalar(value)))]


def _scalar(value: object) -> Scalar:
    if isinstance(value, bool):
        return value
    if isinstance(value, int):
        return value if -(2**63) <= value < 2**63 else str(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    return clean_text(str(value)).strip()


def _short(name: str, value: Scalar) -> Scalar:
    if isinstance(value, str) and len(value) > MAX_TEXT:
        raise _WrongValue(f"Its field {name} is longer than {MAX_TEXT} characters.")
    return value


def _with_hash(fields: DocumentFields) -> DocumentFields:
    values = {name: getattr(fields, name) for name in DocumentFields.__slots__}
    parts = [f"{name}={value!r}" for name, value in values.items() if name != "meta_hash"]
    return DocumentFields(**values | {"meta_hash": digest(*parts)})


class _Loader(yaml.SafeLoader):
    """Plain data only: what a document says of itself must not grow, repeat or surprise."""

    def compose_node(self, parent: Any, index: Any) -> Any:
        event = self.peek_event()  # type: ignore[no-untyped-call]
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
            raise yaml.constructor.ConstructorError(
                None, None, "anchors and aliases are not read", event.start_mark
            )
        return super().compose_node(parent, index)

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        mapping: dict[Any, Any] = {}
        for key_node, value_node in node.value:
            key = field_name(self.construct_object(key_node, deep=True))
            wrong = {
                "merge keys are not read": key == _MERGE,
                "a key is not plain text": not isinstance(key_node, yaml.ScalarNode),
                "a key is given twice": key in mapping,
            }
            for fault in (fault for fault, applies in wrong.items() if applies):
                raise yaml.constructor.ConstructorError(None, None, fault, key_node.start_mark)
            mapping[key] = self.construct_object(value_node, deep=deep)
        return mapping


_MERGE = "<<"
_Loader.yaml_implicit_resolvers = {}
for _tag, _pattern, _first in (
    ("null", r"~|null|Null|NULL|", ["~", "n", "N", ""]),
    ("bool", r"true|True|TRUE|false|False|FALSE", list("tTfF")),
    ("int", r"[-+]?(?:0|[1-9][0-9]{0,30})", list("-+0123456789")),
    ("float", r"[-+]?(?:0|[1-9][0-9]*)\.[0-9]+(?:[eE][-+]?[0-9]+)?", list("-+0123456789")),
):
    _Loader.add_implicit_resolver(
        f"tag:yaml.org,2002:{_tag}", re.compile(f"^(?:{_pattern})$"), _first
    )


def _keep_texts(node: yaml.MappingNode) -> None:
    for key_node, value_node in node.value:
        is_text = field_name(key_node.value) in TEXT_FIELDS
        if (
            is_text
            and isinstance(value_node, yaml.ScalarNode)
            and not value_node.tag.endswith("null")
        ):
            value_node.tag = "tag:yaml.org,2002:str"


def _where(error: yaml.YAMLError) -> str:
    mark = getattr(error, "problem_mark", None)
    what = (
        getattr(error, "problem", "")
        if isinstance(error, yaml.constructor.ConstructorError)
        else ""
    )
    line = f" in line {mark.line + 1}" if mark else ""
    return f"{line}: {what}" if what else line
