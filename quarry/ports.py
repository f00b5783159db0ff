"""The seams of Quarry: what the core asks of sources, parsers, models and stores.

Every port has an in-memory implementation that ships (`quarry.stores.memory`,
`quarry.models.fakes`) and one contract suite in `tests/contract` that each implementation inherits.
All methods raise only errors of `quarry.errors`. Store methods are safe to call from several
threads.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Collection, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Protocol, TypeAlias, runtime_checkable

from quarry.access import Filter
from quarry.errors import Conflict, RowsRejected
from quarry.records import (
    Chunk,
    DocState,
    Document,
    EmbedderFingerprint,
    Generation,
    Hit,
    Kept,
    Message,
    ParsedDocument,
    Piece,
    Prompt,
    RowRef,
    SourceEntry,
    SourceItem,
    TextRow,
    Vector,
    VectorRow,
    Vectors,
)

# -------------------------------------------------------------------------------------- ingest


class Source(Protocol):
    """A place that documents come from."""

    @property
    def name(self) -> str: ...

    def list(self) -> Iterator[SourceItem]:
        """All addresses, without reading content. Raises SourceNotFound."""
        ...

    def read(self, item: SourceItem) -> bytes: ...

    def metadata(self, item: SourceItem) -> Mapping[str, object]:
        """Metadata kept beside the content (sidecar and folder files), innermost wins."""
        ...


class Parser(Protocol):
    """Turns the bytes of one address into documents. Runs in a process that may be killed."""

    def parse(self, content: bytes, item: SourceItem) -> Iterator[ParsedDocument]:
        """Yields one document, or one a record. Raises ParseError with the state it ends in."""
        ...


class TokenCounter(Protocol):
    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Tokens of each text, special tokens and prompts included."""
        ...


# -------------------------------------------------------------------------------------- models


class Embedder(TokenCounter, Protocol):
    @property
    def fingerprint(self) -> EmbedderFingerprint: ...

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """Embeddings in the order of `texts`, shape (n, dimension), float32, unit length."""
        ...

    def embed_question(self, text: str) -> Vector:
        """Shape (dimension,), float32, unit length; uses the model's question prompt."""
        ...

    def embed_questions(self, texts: Sequence[str]) -> Vectors:
        """`embed_question` of each, in order, shape (n, dimension); for servers that batch."""
        ...


class Reranker(Protocol):
    @property
    def name(self) -> str: ...

    @property
    def fuses(self) -> bool:
        """True: its ranks are fused with the first stage; False: its scores decide alone."""
        ...

    def score(self, question: str, passages: Sequence[str]) -> list[float]:
        """One finite score a passage, higher is better, in the order of `passages`."""
        ...


class Entailment(Protocol):
    """Judges whether one text follows from another."""

    @property
    def name(self) -> str: ...

    def entails(self, pairs: Sequence[tuple[str, str]]) -> list[float]:
        """For each (passage, sentence) the probability that the passage entails the sentence."""
        ...


class Generator(TokenCounter, Protocol):
    @property
    def name(self) -> str: ...

    def count_prompt(self, messages: Sequence[Message]) -> int:
        """Tokens of a whole prompt as the model reads it, its chat template included."""
        ...

    def stream(self, prompt: Prompt) -> AsyncGenerator[Piece, None]:
        """The answer in pieces; the last one has `stop`. Closing the iterator cancels."""
        ...


@runtime_checkable
class CallsEndpoint(Protocol):
    """A model that is asked over the network, which may refuse."""

    async def check(self) -> None:
        """Raises ConfigError for a refused key, ModelError where nothing answers."""
        ...


@runtime_checkable
class OwnsProcesses(Protocol):
    """A model that runs in processes of its own."""

    def check_health(self) -> None:
        """Raises ModelError once they have died."""
        ...

    def close(self) -> None:
        """Ends them; nothing may be asked afterwards."""
        ...


# -------------------------------------------------------------------------------------- stores


class VectorStore(Protocol):
    """Rows of one generation: a vector and labels, keyed by row_id. A cache (invariant 2)."""

    def ensure(self, dimension: int) -> None:
        """Creates what is missing; does nothing if it is there."""
        ...

    def upsert(self, rows: Sequence[VectorRow]) -> None:
        """Writes rows; visible to `row_refs` and `fetch` on return. Raises RowsRejected."""
        ...

    def fetch(self, row_ids: Collection[str]) -> dict[str, Vector]:
        """Vectors of the rows that exist; sees every completed write."""
        ...

    def present(self, row_ids: Collection[str]) -> set[str]:
        """Those of the rows that exist; sees every completed write."""
        ...

    def row_refs(self, doc_ids: Collection[str]) -> list[RowRef]:
        """All rows of these documents, of any revision; sees every completed write."""
        ...

    def delete(self, row_ids: Collection[str]) -> None:
        """Rows that are not there are ignored."""
        ...

    def search(
        self, vector: Vector, *, limit: int, where: Filter, without: Collection[str] = ()
    ) -> list[Hit]:
        """The nearest rows by inner product that match `where`, best first; ties by row_id.

        Rows of the revisions `without` are left out.
        """
        ...

    def scan(self, *, after: str = "", limit: int = 1000) -> list[RowRef]:
        """Rows in the order of row_id, from the first one greater than `after`."""
        ...

    def count(self) -> int: ...

    def flush(self) -> None:
        """Makes writes durable and fast to search; called once at the end of a run."""
        ...

    def drop(self) -> None:
        """Removes the generation's rows for good."""
        ...

    def close(self) -> None: ...


class TextStore(Protocol):
    """Rows of one generation: a chunk's text and labels, with BM25. A cache (invariant 2)."""

    def ensure(self) -> None: ...

    def upsert(self, rows: Sequence[TextRow]) -> None:
        """Writes rows; visible to `row_refs`, `fetch` on return. Raises RowsRejected."""
        ...

    def fetch(self, row_ids: Collection[str]) -> dict[str, Chunk]:
        """The rows that exist; sees every completed write."""
        ...

    def row_refs(self, doc_ids: Collection[str]) -> list[RowRef]:
        """All rows of these documents, of any revision; sees every completed write."""
        ...

    def unsearchable(self, doc_ids: Collection[str]) -> set[str]:
        """Rows of these documents that `search` cannot find as it should, for the store has lost
        what it searches them by: words, labels or codes. Sees every completed write."""
        ...

    def chunks(self, doc_id: str, revision: str, ordinals: range) -> list[Chunk]:
        """Published chunks of one revision by position, in order; used for neighbours."""
        ...

    def find_text(self, text_hashes: Collection[str]) -> dict[str, str]:
        """A row_id for each published text hash, so that its vector can be used again."""
        ...

    def delete(self, row_ids: Collection[str]) -> None:
        """Rows that are not there are ignored."""
        ...

    def search(
        self, question: str, *, limit: int, where: Filter, without: Collection[str] = ()
    ) -> list[Hit]:
        """BM25 (k1 1.2, b 0.75) over header and text, best first; ties by row_id.

        A row that holds an identifier of the question (`Hit.exact`) stands before every row that
        does not; scores are BM25 alone. Rows of the revisions `without` are left out.
        """
        ...

    def publish(self) -> None:
        """Makes all completed writes visible to `search`."""
        ...

    def scan(self, *, after: str = "", limit: int = 1000) -> list[RowRef]: ...

    def count(self) -> int: ...

    def drop(self) -> None: ...

    def close(self) -> None: ...


CommitResult: TypeAlias = Document | Conflict | RowsRejected
"""The row as it stands now, or why it was not committed."""


class Catalog(Protocol):
    """The one commit point. Reads see every completed commit."""

    def ensure(self) -> None: ...

    def get(self, doc_ids: Collection[str]) -> dict[str, Document]:
        """Rows as the last completed commit left each, tombstones included; unknown ids are
        left out."""
        ...

    def commit(self, document: Document) -> Document:
        """Compare-and-set: stores the row with serial + 1 if the stored serial is
        `document.serial` (0: no row yet), and returns it; else raises Conflict. Raises
        RowsRejected for a row that the store cannot hold.

        A snapshot goes to `history` in the same atomic step.
        """
        ...

    def commit_many(self, documents: Sequence[Document]) -> list[CommitResult]:
        """`commit` for each document on its own, in order; a Conflict or RowsRejected is given, not
        raised."""
        ...

    def series(self, names: Collection[str]) -> dict[str, list[Document]]:
        """Live documents of each series."""
        ...

    def scan(
        self,
        *,
        source: str = "",
        address: str = "",
        state: DocState | None = None,
        after: str = "",
        limit: int = 1000,
    ) -> list[Document]:
        """Rows in the order of doc_id, from the first one greater than `after`."""
        ...

    def counts(self, *, source: str = "") -> dict[DocState, int]:
        """Rows by state, tombstones included: of all sources or of one."""
        ...

    def history(self, doc_id: str) -> list[Document]:
        """Committed snapshots of a document, oldest first; the last one is its row.

        What was replaced stays until it is trimmed; a catalog opened without a retention forgets it
        in the same step that replaces it.
        """
        ...

    def histories(self, doc_ids: Collection[str]) -> dict[str, list[Document]]:
        """`history` of each document that has one, each as of one moment."""
        ...

    def members(self, series: Collection[str]) -> set[str]:
        """Documents that one of the snapshots in their history puts into one of these series."""
        ...

    def expired(self, before: datetime, *, after: str = "", limit: int = 1000) -> list[str]:
        """Documents with snapshots replaced before `before`: ids in order, from the first one
        greater than `after`."""
        ...

    def trim_history(self, doc_ids: Collection[str], *, before: datetime) -> int:
        """Forgets snapshots of these documents that were replaced before `before`; gives how many.

        A snapshot is replaced at the `committed_at` of the next one; the last one is never.
        """
        ...

    def kept(self) -> Kept:
        """What was last given to `keep`; at first, nothing is kept."""
        ...

    def keep(self, kept: Kept) -> None:
        """Says how far back the past is whole; believed by who sweeps and by who goes back."""
        ...

    def sources(self) -> list[str]:
        """Names of the sources that have entries, sorted."""
        ...

    def entries(self, source: str) -> Iterator[SourceEntry]: ...

    def entry(self, source: str, address: str) -> SourceEntry | None: ...

    def put_entry(self, entry: SourceEntry) -> None: ...

    def delete_entry(self, source: str, address: str) -> None: ...

    def drop(self) -> None: ...

    def close(self) -> None: ...


class Registry(Protocol):
    """Names the generations and the live one: a single small record, switched atomically."""

    def generations(self) -> list[Generation]: ...

    def live(self) -> Generation | None: ...

    def create(self, generation: Generation) -> None:
        """Raises Conflict if the name is taken."""
        ...

    def switch(self, name: str, *, expected: str) -> None:
        """Makes `name` live if `expected` is live now ("": none) and `name` was created; else
        raises Conflict."""
        ...

    def remove(self, name: str) -> None:
        """Forgets a generation; an unknown one is ignored. Raises Conflict if it is live."""
        ...

    def close(self) -> None: ...
