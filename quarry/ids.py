"""Identity: what a source, a document, a chunk, a revision and a stored row are called.

All ids are lower-case hexadecimal or ASCII, at most 80 characters, and safe in URLs, file names and
store expressions. Only the name of a source keeps letters of any script.
"""

from __future__ import annotations

import hashlib
import re
import secrets
import unicodedata

RECORD_SUFFIXES = frozenset({".jsonl", ".ndjson", ".csv", ".tsv", ".parquet"})
"""Of files that hold many documents, in small letters: their uris are `ADDRESS#RECORD`."""


def digest(*parts: str, size: int = 16) -> str:
    """BLAKE2b of the parts, `size` bytes as hexadecimal; parts cannot run into each other."""
    hasher = hashlib.blake2b(digest_size=size)
    for part in parts:
        data = part.encode("utf-8", "surrogatepass")
        hasher.update(len(data).to_bytes(8, "big"))
        hasher.update(data)
    return hasher.hexdigest()


def slug(text: str) -> str:
    """The name of a source: lower-case letters and digits of any script, with single dashes for all
    else. A slug is its own slug; one without a letter or digit is empty."""
    composed = unicodedata.normalize("NFC", text).lower()
    return re.sub(r"[^\w]+|_+", "-", composed).strip("-")[:64].rstrip("-")


def doc_id(source: str, address: str, record: str = "") -> str:
    """From where the document is, never from what it says; equal for NFC and NFD spellings."""
    return digest(*(unicodedata.normalize("NFC", part) for part in (source, address, record)))


def chunk_id(document: str, embedded_text: str, occurrence: int) -> str:
    """Stable while the embedded text is; `occurrence` counts equal texts in one document from 0."""
    return digest(document, embedded_text, str(occurrence))


def new_token(serial: int) -> str:
    """A revision token for one attempt that started from a catalog row of this serial."""
    return f"{serial:08d}-{secrets.token_hex(6)}"


def token_serial(token: str) -> int:
    """The serial of the catalog row that the attempt started from."""
    return int(token.partition("-")[0])


def row_id(chunk: str, token: str) -> str:
    return f"{chunk}.{token}"


def chunk_of(row: str) -> str:
    """The chunk that a row is of."""
    return row.partition(".")[0]


def token_of(row: str) -> str:
    """The revision that a row belongs to."""
    return row.partition(".")[2]
