"""The values that pass between the parts of Quarry: frozen, without behaviour.

This module is a leaf: it imports nothing of ours. One word means one thing here and everywhere:

- a *document* is what a person would cite; its catalog row decides what readers may see;
- a *revision* is one committed state of a document's chunks, named by a token;
- a *chunk* is a passage of one revision; `chunk_id` is stable while its embedded text is, `row_id`
  names the stored row of that chunk in one revision;
- *labels* are the facts about a document that are copied to its rows, so that stores can filter.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from enum import StrEnum
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Scalar: TypeAlias = str | int | float | bool
Vector: TypeAlias = NDArray[np.float32]
"""One embedding, shape (dimension,), float32."""
Vectors: TypeAlias = NDArray[np.float32]
"""A batch of embeddings, shape (n, dimension), float32."""

PUBLIC = "public"
"""The scope that everybody holds, with or without a name."""


class DocState(StrEnum):
    """How the last attempt to index a document ended. Nothing ends without one of these."""

    INDEXED = "indexed"
    PARTIAL = "partial"
    NEEDS_OCR = "needs_ocr"
    ENCRYPTED = "encrypted"
    EMPTY = "empty"
    CORRUPT = "corrupt"
    UNSUPPORTED = "unsupported"
    TOO_LARGE = "too_large"
    TIMED_OUT = "timed_out"
    FAILED = "failed"
    DELETED = "deleted"


class Status(StrEnum):
    """Where a document stands in its life, as its owner says. Only `current` is served unasked."""

    CURRENT = "current"
    DRAFT = "draft"
    WITHDRAWN = "withdrawn"


class Mode(StrEnum):
    """Which first-stage legs a search uses."""

    HYBRID = "hybrid"
    DENSE = "dense"
    LEXICAL = "lexical"


# ---------------------------------------------------------------------------------- the catalog


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """One catalog row. A document is live (served) exactly when `revision` is not empty.

    `state` and `error` tell how the last attempt ended; a failed update leaves `revision` on the
    last good one. `serial` counts the commits of this row: compare-and-set works on it, 0 means
    that the row does not exist yet.
    """

    doc_id: str
    source: str
    address: str
    """Address in the source's listing; for a record of a JSONL or CSV file, the file's address."""
    uri: str
    """What a citation points to: the address, with `#record` for a record of a file. As the file is
    called, with nothing encoded: it is for people to find it, and no link."""
    url: str = ""
    """Public web address from metadata, if there is one."""
    title: str = ""
    content_hash: str = ""
    meta_hash: str = ""
    recipe: str = ""
    """Fingerprint of the parser settings that read it; another recipe means: read it again."""
    revision: str = ""
    serial: int = 0
    state: DocState = DocState.INDEXED
    error: str = ""
    series: str = ""
    version: str = ""
    status: Status = Status.CURRENT
    effective: date | None = None
    tenant: str = "default"
    acl: tuple[str, ...] = ()
    """Scopes that may read it: `public`, a group's name, or `user:NAME`. Empty: nobody."""
    metadata: Mapping[str, Scalar] = field(default_factory=dict)
    chunk_count: int = 0
    indexed_at: datetime | None = None
    committed_at: datetime | None = None
    """When this row was committed, by the clock of who committed it."""
    deleted_by_hand: bool = False
    """A tombstone that a person made, though its source still has the document: it stays one until
    the content is another than that of `content_hash`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """How far back a catalog's history and the rows of its revisions are whole."""

    since: datetime | None = None
    """All that was served later than this is there still; None: what is replaced goes at once."""
    deleted_since: datetime | None = None
    """Documents deleted later than this are among it; None: what is deleted goes at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceEntry:
    """What the last complete reading of one listed address gave; the plan compares against it.

    A plain file gives one document; a JSONL or CSV file gives many.
    """

    source: str
    address: str
    tag: str
    """Cheap change mark from the listing, such as size and modification time."""
    recipe: str
    state: DocState
    documents: int
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Generation:
    """One catalog table, one text index and one vector collection, built with one fingerprint."""

    name: str
    fingerprint: Mapping[str, Any]
    created_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbedderFingerprint:
    """What makes two embeddings comparable (invariant 4)."""

    model_id: str
    weights_hash: str
    dimension: int
    question_prompt: str
    document_prompt: str
    normalized: bool
    max_tokens: int


# --------------------------------------------------------------------------------------- ingest


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceItem:
    """One listed address, before it is read."""

    source: str
    address: str
    """Relative to the source, NFC, `/` between parts."""
    uri: str
    tag: str
    size: int
    """Bytes."""


class BlockKind(StrEnum):
    HEADING = "heading"
    PARAGRAPH = "paragraph"
    LIST_ITEM = "list_item"
    TABLE = "table"
    CODE = "code"


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """One structural element of a parsed document, in reading order."""

    kind: BlockKind
    text: str
    level: int = 0
    """Heading level 1–6, or list nesting depth from 0."""
    page: int | None = None
    """1-based page of the source, where the format has pages."""
    last_page: int | None = None
    """Page on which it ends, if that is another one."""
    start: int = 0
    end: int = 0
    """Character offsets: in the decoded source for text formats, else in the extracted text."""
    header: tuple[str, ...] = ()
    """Column names of a table."""
    rows: tuple[tuple[str, ...], ...] = ()
    """Body rows of a table, spans repeated so that every row has len(header) cells."""
    language: str = ""
    """Language tag of a code block, if given."""
    anchor: str = ""
    """Link target of a heading, if the source names one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedDocument:
    """What a parser made of one document: blocks, or a state that says why there are none."""

    record: str = ""
    """Name of the record inside its file for formats that hold many; empty for a whole file."""
    title: str = ""
    blocks: tuple[Block, ...] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict)
    """What its author says of it in the content: front matter, or the other fields of a record."""
    properties: Mapping[str, Scalar] = field(default_factory=dict)
    """What the format itself records, such as author and canonical address; anything else wins."""
    state: DocState = DocState.INDEXED
    reason: str = ""
    pages: int = 0
    content_hash: str = ""
    is_unread: bool = False
    """It stands for a line that cannot be read: which record that is, and whose, is not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """A passage of one revision of a document, as it is stored and cited."""

    row_id: str
    """`chunk_id.revision`: the key of this row in both stores."""
    chunk_id: str
    """From doc_id, the embedded text and its occurrence number: same text, same id."""
    doc_id: str
    revision: str
    ordinal: int
    """Position in the document, from 0."""
    text: str
    """The passage itself, as quoted to readers."""
    header: str
    """Title, version, scope and section path, put on top of `text` before embedding."""
    section: tuple[str, ...] = ()
    anchor: str = ""
    pages: tuple[int, int] | None = None
    """First and last page, 1-based."""
    span: tuple[int, int] = (0, 0)
    """Character offsets as in `Block`."""
    tokens: int = 0
    """Length of header and text in the embedder's tokens, special tokens included."""
    text_hash: str = ""
    """Hash of the embedded text (header and text): equal hash, equal vector."""
    identifiers: tuple[str, ...] = ()
    """Codes such as E-1042 in header and text, normalised by `quarry.text.identifiers`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Labels:
    """Facts of a document that are copied to its rows, so that a store can filter for recall."""

    source: str
    tenant: str
    acl: tuple[str, ...]
    series: str
    version: str
    status: Status
    effective: date | None
    metadata: Mapping[str, Scalar]


@dataclass(frozen=True, slots=True, kw_only=True)
class TextRow:
    chunk: Chunk
    labels: Labels


@dataclass(frozen=True, slots=True, kw_only=True)
class VectorRow:
    row_id: str
    chunk_id: str
    doc_id: str
    revision: str
    labels: Labels
    vector: Vector


@dataclass(frozen=True, slots=True, kw_only=True)
class RowRef:
    """A row's key and whose it is, as `row_refs` and `scan` list it."""

    row_id: str
    doc_id: str
    revision: str


# ---------------------------------------------------------------------------------------- serve


@dataclass(frozen=True, slots=True, kw_only=True)
class Principal:
    """Who asks. No name and no groups is everybody: public documents only."""

    user: str = ""
    groups: tuple[str, ...] = ()
    tenant: str = "default"


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """One row found by a store, before the catalog has been asked (invariant 2)."""

    row_id: str
    doc_id: str
    revision: str
    score: float
    """Inner product, or BM25."""
    exact: bool = False
    """Whether it holds an identifier of the question; such rows stand before all others."""
    chunk: Chunk | None = None
    """The passage, from stores that give it at no extra cost."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Signals:
    """Why a candidate stands where it stands; ranks are 1-based, None: not found by that leg."""

    dense_rank: int | None = None
    dense_score: float | None = None
    lexical_rank: int | None = None
    lexical_score: float | None = None
    fused_score: float | None = None
    rerank_score: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A chunk that passed the catalog check, with the catalog row that let it pass."""

    chunk: Chunk
    document: Document
    signals: Signals = Signals()
    score: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class StageRecord:
    """What one stage did, for the person who asked: never a word about what they may not read."""

    stage: str
    ms: float
    count: int
    """Items that left the stage."""
    detail: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchRequest:
    question: str
    principal: Principal = Principal()
    mode: Mode = Mode.HYBRID
    top_k: int = 10
    filter: str = ""
    """Text in the filter language of `quarry.access`."""
    all_versions: bool = False
    rerank: bool = True
    conversation: tuple[Message, ...] = ()
    """What was said before, oldest first, by `user` and `assistant`."""
    as_of: datetime | None = None
    """Search what was served at this time, with a time zone; None: what is served now."""
    deadline_s: float = 30.0
    """Seconds that this request may take from its arrival."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchResult:
    candidates: tuple[Candidate, ...]
    generation: str
    degraded: tuple[str, ...] = ()
    trace: tuple[StageRecord, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """A numbered source of one answer."""

    label: str
    """`S1`, `S2`, … in the order of the prompt."""
    chunk: Chunk
    document: Document
    text: str
    """What the generator reads: the chunk, with neighbours where they were added."""
    score: float = 0.0
    tokens: int = 0
    """Of the source as it stands in the prompt, as the generator counts them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    role: str
    content: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """One generation: chat messages for models, question and evidence for extraction."""

    question: str
    evidence: tuple[Evidence, ...]
    messages: tuple[Message, ...]
    max_tokens: int
    request_id: str = ""


class StopReason(StrEnum):
    END = "end"
    LENGTH = "length"
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """A part of a generated text; the last one carries the stop reason and the usage."""

    text: str = ""
    stop: StopReason | None = None
    prompt_tokens: int = 0
    completion_tokens: int = 0


class AnswerStatus(StrEnum):
    ANSWERED = "answered"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True, kw_only=True)
class Citation:
    label: str
    doc_id: str
    uri: str
    title: str
    section: str
    pages: tuple[int, int] | None
    quote: str
    url: str = ""
    """Public address from the document's metadata."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Doubt:
    """A sentence of an answer that its sources may not bear."""

    sentence: str
    reason: str
    """`uncited`, `numbers`, `words`, `negation`, `meaning`, or `language`: words of two languages
    cannot be compared."""
    labels: tuple[str, ...]
    """The sources that it names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """Status `refused` has no citations and the fixed refusal text (invariant 8)."""

    status: AnswerStatus
    text: str
    citations: tuple[Citation, ...]
    generation: str
    doubts: tuple[Doubt, ...] = ()
    cut: bool = False
    """Whether the token limit ended it; if refused, it may not have come to its citations."""
    degraded: tuple[str, ...] = ()
    timings_ms: Mapping[str, float] = field(default_factory=dict)
    trace: tuple[StageRecord, ...] = ()
