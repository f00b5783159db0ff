"""Files of many records: JSON lines, CSV and Parquet. One record is one document."""

from __future__ import annotations

import io
import json
import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, zip_longest
from typing import Any

from ingest.acl import acl_within, field_name, means_acl
from ingest.metadata import MAX_TEXT, TEXT_FIELDS
from ingest.parsers.blocks import placed, table
from ingest.parsers.csv_header import NAME_KEYS, TEXT_KEYS, TITLE_KEYS
from ingest.parsers.csv_rows import Row, csv_rows
from ingest.parsers.decoding import decode
from ingest.parsers.plain import text_blocks
from quarry.errors import ParseError
from quarry.ids import digest
from quarry.records import Block, BlockKind, DocState, ParsedDocument, Status

_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
_MAX_NAME = 256
_KEY_END = re.compile(r"[{}\[\],:=]")
"""What parts keys and values where it is written as JSON is, or nearly so."""


class _BadRecord(Exception):
    """A line that is no record; its text says why."""


def parse_jsonl(content: bytes) -> Iterator[ParsedDocument]:
    """One document a line; a bad line is one that ends as corrupt, and the others go on.

    The layout of BEIR corpora (`_id`, `title`, `text`, `metadata`) and any other flat objects.
    """
    names = _Names()
    for number, line in _lines(content):
        where = f"Line {number}"
        fallback = f"line-{number}"
        try:
            yield _document(_object(line), names, fallback, where)
        except _BadRecord as bad:
            yield _unread(names.free(fallback), f"{where} {bad}", line.hex())


def parse_csv(content: bytes, *, tabs: bool) -> Iterator[ParsedDocument]:
    """One document a row below the header row; a row that cannot be read ends as corrupt.

    Raises ParseError (corrupt).
    """
    text = decode(content)
    if text is None:
        raise ParseError(DocState.CORRUPT, "It is not text.")
    names = _Names()
    rows = csv_rows(text, tabs=tabs)
    header = next(rows, Row(line=1))
    for row in rows:
        where, fallback = f"Line {row.line}", f"line-{row.line}"
        if row.fault:
            yield _unread(names.free(fallback), row.fault, where)
        else:
            yield _row_document(header.cells, row.cells, names, fallback, where)


def parse_parquet(content: bytes) -> Iterator[ParsedDocument]:
    """One document a row, read in batches. Raises ParseError (corrupt)."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    names = _Names()
    number = 0
    try:
        for batch in pq.ParquetFile(pa.BufferReader(content)).iter_batches(batch_size=256):
            for row in batch.to_pylist():
                number += 1
                record = {key: _plain(value) for key, value in row.items()}
                yield _document(record, names, f"row-{number}", f"Row {number}")
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, OSError):
        raise ParseError(DocState.CORRUPT, "It is a damaged Parquet file.") from None


class _Names:
    """Record names that have been given out; each is given once."""

    def __init__(self) -> None:
        self._taken: set[str] = set()

    def take(self, name: str) -> bool:
        composed = unicodedata.normalize("NFC", name)  # as ids are made
        if composed in self._taken:
            return False
        self._taken.add(composed)
        return True

    def free(self, name: str) -> str:
        """This name, or one like it that is free."""
        candidate, count = name, 1
        while not self.take(candidate):
            count += 1
            candidate = f"{name}~{count}"
        return candidate


def _lines(content: bytes) -> Iterator[tuple[int, bytes]]:
    """Lines that hold something, numbered from 1, as UTF-8."""
    if content[:2] in (b"\xff\xfe", b"\xfe\xff") or b"\0" in content[:4]:
        content = (decode(content) or "").encode()
    content = content.removeprefix(b"\xef\xbb\xbf")
    for number, line in enumerate(io.BytesIO(content), start=1):
        if line.strip():
            yield number, line


def _object(line: bytes) -> dict[str, Any]:
    try:
        record = json.loads(line, object_pairs_hook=_pairs, parse_constant=str)
    except (ValueError, RecursionError):
        raise _BadRecord("is not valid JSON.") from None
    if not isinstance(record, dict):
        raise _BadRecord("is not a JSON object.")
    return record


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise _BadRecord("gives a key twice.")
    return found


def _document(
    record: Mapping[str, Any], names: _Names, fallback: str, where: str
) -> ParsedDocument:
    content_hash = digest(json.dumps(record, sort_keys=True, ensure_ascii=False, default=str))
    record = {k: _opened(v) if field_name(k) == "metadata" else v for k, v in record.items()}
    name = _name(record) or fallback
    if not names.take(name):
        reason = f"{where} repeats the id of an earlier one."
        return _corrupt(names.free(fallback), reason, content_hash)
    title = _first_text(record, TITLE_KEYS)
    text_key = next((key for key in TEXT_KEYS if _is_text(record.get(key))), "")
    metadata, rest = _sorted_out(record, left_out={text_key, *NAME_KEYS, *TITLE_KEYS})
    if text_key:
        blocks = tuple(chain(text_blocks(record[text_key]), _labelled(rest)))
    else:
        shown = {key: value for key, value in record.items() if key not in NAME_KEYS}
        blocks = placed(chain(_as_row(shown), _labelled(rest)))
    return ParsedDocument(
        record=name,
        title=title or name,
        blocks=blocks,
        metadata=metadata,
        content_hash=content_hash,
        state=DocState.INDEXED if blocks else DocState.EMPTY,
        reason="" if blocks else f"{where} has no text.",
    )


def _row_document(
    header: Sequence[str], row: Sequence[str], names: _Names, fallback: str, where: str
) -> ParsedDocument:
    record: dict[str, object] = {}
    acls: set[str] = set()
    for number, (title, cell) in enumerate(zip_longest(header, row, fillvalue="")):
        key, value = title.strip() or f"column {number + 1}", cell.strip()
        if _is_acl(key):
            acls.add(value)
            continue
        while key in record:
            key = f"{key} {number + 1}"
        if value or means_acl(key):
            record[key] = value
    if acls:
        record["acl"] = _scopes(acls.pop()) if len(acls) == 1 else ""
    return _document(record, names, fallback, where)


def _scopes(cell: str) -> object:
    """One scope, or several as JSON: `["hr", "staff"]`. What is neither closes the row."""
    try:
        held = json.loads(cell)
    except (ValueError, RecursionError):
        return cell
    return held if isinstance(held, list) else cell


def _sorted_out(
    record: Mapping[str, Any], *, left_out: set[str]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Fields that are metadata, and fields too long or too nested for that, which are text.

    What is or is meant for an ACL is never text, and stays even if it is empty, since it closes the
    document; so do two that differ, and one inside another field.
    """
    metadata: dict[str, Any] = {}
    rest: dict[str, Any] = {}
    acls: list[Any] = []
    for key, value in record.items():
        if _is_acl(key):
            acls.append(value)
        elif means_acl(key):
            metadata[key] = value
        elif key in left_out or value is None or value == "":
            continue
        elif field_name(key) == "metadata" and isinstance(value, Mapping):
            acls += [inner for name, inner in value.items() if _is_acl(name)]
            metadata.update({k: v for k, v in value.items() if not _is_acl(k)})
        elif key.lower() in TEXT_FIELDS or _is_plain(value):
            metadata[_meant(key, value)] = value
        else:
            rest[key] = value
    if acls:
        metadata["acl"] = acls[0] if all(each == acls[0] for each in acls) else None
    elif meant := acl_within(
        {key: value if key in left_out else _opened(value) for key, value in record.items()}
    ):
        metadata.setdefault(meant, None)
    return metadata, rest


def _opened(value: object) -> object:
    """What a text holds that is JSON, if an ACL is in it: a CSV cell can nest in no other way, and
    some programs write JSON lines so too. Of what only looks like it, the keys meant for an ACL."""
    if not isinstance(value, str) or not value.lstrip().startswith(("{", "[")):
        return value
    try:
        held = json.loads(value, object_pairs_hook=_pairs)
    except (_BadRecord, ValueError, RecursionError):
        held = dict.fromkeys(filter(means_acl, _KEY_END.split(value)))
    return held if acl_within({"": held}) else value


def _is_acl(key: str) -> bool:
    return field_name(key) == "acl"


def _meant(key: str, value: object) -> str:
    """The field's own name, or `record.NAME` where a record means something else by it.

    The status of a ticket or the address of a shop is not the status or address of the document.
    """
    field, text = key.lower(), str(value)
    ours = {
        "status": text.lower() in frozenset(Status),
        "effective": _DATE.match(text) is not None,
        "url": text.startswith(("https://", "http://")),
    }
    return key if ours.get(field, True) else f"record.{field}"


def _is_plain(value: object) -> bool:
    if isinstance(value, (list, tuple)):
        plain = all(isinstance(item, (str, int, float)) for item in value)
        return plain and len(", ".join(map(str, value))) <= MAX_TEXT
    return isinstance(value, (int, float)) or (isinstance(value, str) and len(value) <= MAX_TEXT)


def _as_row(record: Mapping[str, Any]) -> Iterator[Block]:
    """A record without a text of its own, as a table of one row."""
    cells = {
        k: v for k, v in record.items() if _is_plain(v) and str(v).strip() and not means_acl(k)
    }
    grid = [list(cells), [_shown(value) for value in cells.values()]]
    block = table(grid, header_rows=1) if cells else None
    if block:
        yield block


def _labelled(record: Mapping[str, Any]) -> Iterator[Block]:
    for key, value in record.items():
        yield Block(kind=BlockKind.PARAGRAPH, text=f"{key}: {_shown(value)}")


def _shown(value: object) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, (list, tuple)) and _is_plain(value):
        return ", ".join(map(str, value))
    return json.dumps(value, ensure_ascii=False, default=str)


def _name(record: Mapping[str, Any]) -> str:
    for key in NAME_KEYS:
        value = record.get(key)
        if isinstance(value, (str, int)) and not isinstance(value, bool):
            name = " ".join(str(value).split())
            if 0 < len(name) <= _MAX_NAME:
                return name
    return ""


def _first_text(record: Mapping[str, Any], keys: tuple[str, ...]) -> str:
    return next((" ".join(record[key].split()) for key in keys if _is_text(record.get(key))), "")


def _is_text(value: object) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _corrupt(name: str, reason: str, content: str) -> ParsedDocument:
    return ParsedDocument(
        record=name, state=DocState.CORRUPT, reason=reason, content_hash=digest(content)
    )


def _unread(name: str, reason: str, content: str) -> ParsedDocument:
    return replace(_corrupt(name, reason, content), is_unread=True)


def _plain(value: object) -> object:
    """What JSON has no word for, such as times and decimals, as text."""
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if value is None or isinstance(value, (str, int, float, bool)):
        return value
    return value.hex() if isinstance(value, bytes) else str(value)
