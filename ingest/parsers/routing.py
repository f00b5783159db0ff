"""Which parser reads a file: by what its bytes are first, by its name second."""

from __future__ import annotations

import io
import re
import zipfile
from enum import StrEnum
from pathlib import PurePosixPath

from ingest.parsers.decoding import decode
from quarry.errors import ParseError
from quarry.records import DocState


class Format(StrEnum):
    PDF = "pdf"
    DOCX = "docx"
    HTML = "html"
    MARKDOWN = "markdown"
    TEXT = "text"
    JSONL = "jsonl"
    CSV = "csv"
    PARQUET = "parquet"


RECORD_FORMATS = frozenset({Format.JSONL, Format.CSV, Format.PARQUET})
"""Formats of which one file holds many documents."""

_BY_NAME = {
    ".md": Format.MARKDOWN,
    ".markdown": Format.MARKDOWN,
    ".mdx": Format.MARKDOWN,
    ".htm": Format.HTML,
    ".html": Format.HTML,
    ".xhtml": Format.HTML,
    ".jsonl": Format.JSONL,
    ".ndjson": Format.JSONL,
    ".csv": Format.CSV,
    ".tsv": Format.CSV,
    ".txt": Format.TEXT,
    ".text": Format.TEXT,
    ".log": Format.TEXT,
    ".rst": Format.TEXT,
    ".adoc": Format.TEXT,
    "": Format.TEXT,
}
_BINARY_NAMES = {
    ".pdf": "a PDF",
    ".docx": "a Word document",
    ".parquet": "a Parquet file",
}
_KNOWN_BINARIES = (
    (b"\x89PNG", "a PNG picture"),
    (b"\xff\xd8\xff", "a JPEG picture"),
    (b"GIF8", "a GIF picture"),
    (b"II*\0", "a TIFF picture"),
    (b"MM\0*", "a TIFF picture"),
    (b"\x1f\x8b", "a gzip archive"),
    (b"7z\xbc\xaf", "a 7z archive"),
    (b"Rar!", "a RAR archive"),
    (b"{\\rtf", "an RTF document"),
    (b"%!PS", "a PostScript document"),
    (b"SQLite format 3", "a SQLite database"),
    (b"\x7fELF", "a program"),
)
_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_ENCRYPTED_OFFICE = "EncryptedPackage".encode("utf-16-le")
_HTML = re.compile(
    r"\s*(?:<\?xml[^>]*\?>\s*)?(?:<!--.*?-->\s*)*<(?:!doctype\s+html|html)\b", re.I | re.S
)
_READ = "PDF, Word (.docx), HTML, Markdown, text, JSONL, CSV and Parquet are read."


def route(content: bytes, address: str) -> Format:
    """The format of a file. Raises ParseError: empty, unsupported, encrypted, or corrupt if the
    bytes are not what the name says."""
    suffix = PurePosixPath(address).suffix.lower()
    if not content.strip(b"\0\t\n\f\r \xef\xbb\xbf\xfe\xff"):
        raise ParseError(DocState.EMPTY, "The file is empty.")
    if b"%PDF-" in content[:1024]:
        return Format.PDF
    if content.startswith(b"PAR1"):
        return Format.PARQUET
    if content.startswith(b"PK\x03\x04"):
        return _zipped(content, suffix)
    if content.startswith(_OLE):
        raise _old_office(content)
    for start, what in _KNOWN_BINARIES:
        if content.startswith(start):
            raise ParseError(DocState.UNSUPPORTED, f"It is {what}; {_READ}")
    return _text_format(content, suffix)


def named_format(address: str) -> Format | None:
    """The format that an address claims by its suffix, whatever its bytes are."""
    suffix = PurePosixPath(address).suffix.lower()
    return Format.PARQUET if suffix == ".parquet" else _BY_NAME.get(suffix)


def _text_format(content: bytes, suffix: str) -> Format:
    if suffix in _BINARY_NAMES:
        raise ParseError(
            DocState.CORRUPT, f"It is named {suffix} but is not {_BINARY_NAMES[suffix]}."
        )
    head = decode(content[:4096])
    if head is None:
        raise ParseError(DocState.UNSUPPORTED, f"It is not text; {_READ}")
    if _HTML.match(head):
        return Format.HTML
    if suffix in _BY_NAME:
        return _BY_NAME[suffix]
    raise ParseError(DocState.UNSUPPORTED, f"Files of the kind {suffix} are not read; {_READ}")


def _zipped(content: bytes, suffix: str) -> Format:
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            names = set(archive.namelist())
    except (zipfile.BadZipFile, ValueError, OSError, NotImplementedError):
        state = DocState.CORRUPT if suffix == ".docx" else DocState.UNSUPPORTED
        raise ParseError(state, "It is a damaged zip archive.") from None
    if "word/document.xml" in names:
        return Format.DOCX
    if suffix == ".docx":
        raise ParseError(DocState.CORRUPT, "It is named .docx but holds no Word document.")
    raise ParseError(DocState.UNSUPPORTED, f"It is a zip archive of another kind; {_READ}")


def _old_office(content: bytes) -> ParseError:
    if _ENCRYPTED_OFFICE in content:
        return ParseError(DocState.ENCRYPTED, "It needs a password.")
    return ParseError(DocState.UNSUPPORTED, f"It is an old Office file; save it as .docx. {_READ}")
