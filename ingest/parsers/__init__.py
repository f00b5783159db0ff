"""Parsers: the bytes of one address to documents in blocks.

`parse_item` runs them where it is called; `ingest.parsers.sandbox` runs it in a process that can be
killed. Documents are hostile input: nothing here resolves entities, follows links or runs macros.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import PurePosixPath

from ingest.parsers.blocks import says_something
from ingest.parsers.decoding import decode
from ingest.parsers.routing import RECORD_FORMATS, Format, route
from quarry.errors import ParseError
from quarry.ids import digest
from quarry.records import DocState, ParsedDocument, SourceItem
from quarry.settings import IngestSettings, Settings

PARSERS_VERSION = "14"
"""Raised when a parser of ours gives other blocks or metadata for the same bytes, or a document
another uri."""

_LIBRARIES = (
    "charset-normalizer",
    "markdown-it-py",
    "mdit-py-plugins",
    "pymupdf",
    "python-docx",
    "selectolax",
)
_OCR_LIBRARY = "rapidocr-onnxruntime"


def parse_item(
    content: bytes, item: SourceItem, settings: IngestSettings
) -> Iterator[ParsedDocument]:
    """One document, or one a record as they are read; each with a title and a content hash.

    Raises ParseError with the state that the whole address ends in. A document that is yielded as
    indexed or partial has text; a bad record is yielded in its own state.
    """
    if len(content) > settings.max_bytes:
        raise ParseError(
            DocState.TOO_LARGE,
            f"It has {len(content)} bytes, and ingest.max_bytes allows {settings.max_bytes}.",
        )
    kind = route(content, item.address)
    if kind in RECORD_FORMATS:
        yield from _records(kind, content, item)
        return
    try:
        parsed = _document(kind, content, settings)
    except MemoryError:
        raise ParseError(
            DocState.TOO_LARGE,
            f"It needs more memory than ingest.parse_memory_mb allows "
            f"({settings.parse_memory_mb} MB).",
        ) from None
    if not any(says_something(block) for block in parsed.blocks):
        raise ParseError(DocState.EMPTY, "No text was found in it.")
    yield replace(
        parsed,
        title=parsed.title or PurePosixPath(item.address).stem,
        content_hash=hashlib.blake2b(content, digest_size=16).hexdigest(),
    )


def recipe(settings: Settings) -> str:
    """Fingerprint of all that decides what the parsers make of given bytes.

    Another recipe means: read it again. So switching OCR on reads the scans.
    """
    names = [*_LIBRARIES, *([_OCR_LIBRARY] if settings.ingest.ocr else [])]
    return digest(PARSERS_VERSION, *(f"{name}=={_version(name)}" for name in names), size=8)


def _document(kind: Format, content: bytes, settings: IngestSettings) -> ParsedDocument:
    match kind:
        case Format.PDF:
            from ingest.parsers.pdf.document import parse_pdf

            return parse_pdf(content, ocr=settings.ocr, timeout_s=settings.parse_timeout_s)
        case Format.DOCX:
            from ingest.parsers.docx import parse_docx

            return parse_docx(content, memory_mb=settings.parse_memory_mb)
        case Format.HTML:
            from ingest.parsers.html import declared_encoding, parse_html

            return parse_html(_text(content, declared_encoding(content)))
        case Format.MARKDOWN:
            from ingest.parsers.markdown import parse_markdown

            return parse_markdown(_text(content))
        case _:
            from ingest.parsers.plain import text_blocks

            return ParsedDocument(blocks=tuple(text_blocks(_text(content))))


def _records(kind: Format, content: bytes, item: SourceItem) -> Iterator[ParsedDocument]:
    from ingest.parsers.tabular import parse_csv, parse_jsonl, parse_parquet

    found = 0
    documents = (
        parse_jsonl(content)
        if kind is Format.JSONL
        else parse_parquet(content)
        if kind is Format.PARQUET
        else parse_csv(content, tabs=item.address.lower().endswith(".tsv"))
    )
    for document in documents:
        found += 1
        yield document
    if not found:
        raise ParseError(DocState.EMPTY, "It holds no records.")


def _text(content: bytes, declared: str = "") -> str:
    text = decode(content, declared)
    if text is None:
        raise ParseError(DocState.CORRUPT, "It is not text in any known encoding.")
    return text


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "none"


__all__ = ["PARSERS_VERSION", "parse_item", "recipe"]
